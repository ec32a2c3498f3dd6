//! `replaced-limits.json`: limits of flags and the environment that the owner has replaced through `ctl`. A service is started with the
//! same flags each time; the owner's later word holds until a flag says something else.

use crate::storage::folder::write_lasting_secret;
use serde::{Deserialize, Serialize};
use sojourn_files::if_exists;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

/// The name of the file in the data folder.
const REPLACED_FILE: &str = "replaced-limits.json";
/// The format of the file.
const FORMAT: u32 = 1;

/// Values that flags give and that don't hold any more, by limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Replaced {
    /// Nowhere for a client without a data folder.
    path: Option<PathBuf>,
    values: BTreeMap<String, String>,
    /// Is there less than the file says?
    is_changed: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    format: u32,
    limits: BTreeMap<String, String>,
}

impl Replaced {
    /// Reads the file of a data folder, which may be missing.
    pub(super) fn read(data: &Path) -> io::Result<Self> {
        let path = data.join(REPLACED_FILE);
        let values = match if_exists(fs::read(&path))? {
            None => BTreeMap::new(),
            Some(text) => {
                let Contents { format, limits } = serde_json::from_slice(&text)?;
                if format != FORMAT {
                    let message = format!("format {format} is not {FORMAT}");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, message));
                }
                limits
            }
        };
        Ok(Self { path: Some(path), values, is_changed: false })
    }

    /// The path of the file in a data folder.
    pub(super) fn path_in(data: &Path) -> PathBuf {
        data.join(REPLACED_FILE)
    }

    /// Has the owner replaced this value of a flag?
    pub(super) fn has(&self, limit: &str, value: &str) -> bool {
        self.values.get(limit).is_some_and(|replaced| replaced == value)
    }

    /// The values, by limit.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(limit, value)| (limit.as_str(), value.as_str()))
    }

    /// Keeps those values that flags still give.
    pub(super) fn retain(&mut self, is_given: impl Fn(&str, &str) -> bool) {
        let before = self.values.len();
        self.values.retain(|limit, value| is_given(limit, value));
        self.is_changed |= self.values.len() != before;
    }

    /// The owner replaces a flag's value.
    pub(super) fn insert(&mut self, limit: &str, value: &str) {
        self.values.insert(limit.to_owned(), value.to_owned());
        self.is_changed = true;
    }

    /// Writes the file, where something has changed.
    pub(super) fn write(&mut self) -> io::Result<()> {
        let Some(path) = self.path.as_ref().filter(|_| self.is_changed) else { return Ok(()) };
        let contents = Contents { format: FORMAT, limits: self.values.clone() };
        write_lasting_secret(path, &serde_json::to_vec_pretty(&contents)?)?;
        self.is_changed = false;
        Ok(())
    }
}
