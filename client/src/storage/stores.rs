//! The file of the stores that this machine may be sent to: those that the server named at enrolment, and those that the owner
//! accepted. The rule is in `sojourn-http`.

use super::folder::write_lasting_secret;
use serde::{Deserialize, Serialize};
use sojourn_files::if_exists;
use sojourn_http::KnownStores;
use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The format of the file.
const FORMAT: u32 = 1;
/// The most stores that are kept.
const MAX_STORES: usize = 64;
/// The most characters of one.
const MAX_STORE_CHARACTERS: usize = 300;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    format: u32,
    stores: BTreeSet<String>,
}

/// The stores, in memory and on the disk.
#[derive(Debug)]
pub(crate) struct Stores {
    path: PathBuf,
    known: Arc<KnownStores>,
}

impl Stores {
    /// Reads the file into `known`. Without one, the server named nothing.
    ///
    /// # Errors
    /// A file that can't be read or understood.
    pub(crate) fn open(path: PathBuf, known: Arc<KnownStores>) -> io::Result<Self> {
        if let Some(text) = if_exists(fs::read(&path))? {
            let contents: Contents = serde_json::from_slice(&text)?;
            if contents.format != FORMAT {
                let message = format!("format {} is not {FORMAT}", contents.format);
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            known.set(Some(contents.stores));
        }
        Ok(Self { path, known })
    }

    /// Keeps what the server named as the machine enrolled. It may have named nothing.
    ///
    /// # Errors
    /// Where the file can't be written.
    pub(crate) fn name(path: &Path, stores: Option<Vec<String>>) -> io::Result<()> {
        match stores {
            Some(stores) => {
                let usable = stores.into_iter().filter(|store| is_store(store)).take(MAX_STORES);
                write(path, &usable.collect())
            }
            // Of another server, to which this machine belonged.
            None => if_exists(fs::remove_file(path)).map(drop),
        }
    }

    /// Takes a store that the owner accepts.
    ///
    /// # Errors
    /// In words for the owner: where the server named none, so that all are accepted; or where it can't be kept.
    pub(crate) fn accept(&self, store: &str) -> Result<(), String> {
        let Some(mut stores) = self.known.known() else {
            return Err("the server named no stores when this machine enrolled: it may lead to any on the internet, and in \
                        its own network"
                .to_owned());
        };
        if !is_store(store) {
            return Err(format!(
                "`{store}` is no store: `https://HOST` or `https://HOST:PORT` is wanted"
            ));
        }
        if stores.len() >= MAX_STORES && !stores.contains(store) {
            return Err(format!("{MAX_STORES} stores are accepted already"));
        }
        stores.insert(store.to_owned());
        write(&self.path, &stores).map_err(|error| format!("can't keep it: {error}"))?;
        self.known.set(Some(stores));
        Ok(())
    }

    /// The stores; `None` where the server named none.
    pub(crate) fn known(&self) -> Option<Vec<String>> {
        self.known.known().map(|stores| stores.into_iter().collect())
    }

    /// The last one that was refused.
    pub(crate) fn refused(&self) -> Option<String> {
        self.known.refused()
    }
}

/// Is it a scheme, a host, and perhaps a port, as [`sojourn_http::known_stores::store_of`] writes them?
fn is_store(text: &str) -> bool {
    let url: Option<reqwest::Url> = Some(text)
        .filter(|text| text.len() <= MAX_STORE_CHARACTERS)
        .and_then(|text| text.parse().ok());
    url.is_some_and(|url| sojourn_http::known_stores::store_of(&url) == text)
}

fn write(path: &Path, stores: &BTreeSet<String>) -> io::Result<()> {
    let contents = Contents { format: FORMAT, stores: stores.clone() };
    write_lasting_secret(path, &serde_json::to_vec_pretty(&contents)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> Stores {
        Stores::open(path.to_owned(), Arc::default()).unwrap()
    }

    #[test]
    fn named_and_accepted_stores_outlive_the_daemon() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stores.json");
        let none = open(&path);
        assert_eq!(none.known(), None);
        let why = none.accept("https://b.example").unwrap_err();
        assert!(why.contains("named no stores"), "{why}");

        let bad =
            ["https://a.example/path", "nonsense", "https://a.example:443"].map(str::to_owned);
        let named = bad.into_iter().chain(["https://a.example".to_owned()]).collect();
        Stores::name(&path, Some(named)).unwrap();
        let stores = open(&path);
        assert_eq!(stores.known().unwrap(), ["https://a.example"]);
        assert!(stores.accept("b.example").unwrap_err().contains("is no store"));
        stores.accept("http://b.example:9000").unwrap();
        let both = ["http://b.example:9000", "https://a.example"];
        assert_eq!(stores.known().unwrap(), both);
        assert_eq!(open(&path).known().unwrap(), both);

        Stores::name(&path, None).unwrap();
        assert_eq!(open(&path).known(), None);
        fs::write(&path, "{").unwrap();
        Stores::open(path, Arc::default()).unwrap_err();
    }
}
