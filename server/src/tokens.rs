//! The server's own tokens, of users, of machines that enrol and of assimilators. All servers of a journal share them.
//!
//! A server keeps their hashes: in its data folder, and beside the journal, where that is shared. The tokens themselves are in
//! files of the folder as the credentials of commands on this machine; a server never needs these files.

use crate::{
    data_folder::{DataFolder, DataFolderError, new_token},
    journal::{Journal, JournalError, NoteStore, OpenJournal},
};
use parking_lot::{Mutex, RwLock};
use sojourn_files::{Access, Durability, if_exists};
use sojourn_protocol::{
    digest::{Digest, ParseDigestError},
    tokens::ServerToken,
};
use std::{
    collections::BTreeMap,
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// Why the tokens can't be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokensError {
    /// The folder can't be used.
    #[error(transparent)]
    Folder(#[from] DataFolderError),
    /// The journal's storage can't be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The file of the hashes was altered.
    #[error(
        "`{}` doesn't hold the hashes of the server's tokens; without that file, the server takes the tokens in the files beside it",
        path.display()
    )]
    Hashes {
        /// The file.
        path: PathBuf,
        /// The fault in the file.
        source: serde_json::Error,
    },
    /// The journal's storage holds something else than a hash.
    #[error("the hash of the {name} token in the journal's storage can't be read")]
    Shared {
        /// The token.
        name: &'static str,
        /// The fault in the hash.
        source: ParseDigestError,
    },
    /// Another server has the journal.
    #[error("another server has become the active one: ask that one to replace its token")]
    NotActive,
}

/// The hashes of the tokens, by token.
type Hashes = BTreeMap<ServerToken, Digest>;

/// The server's own tokens, as hashes.
pub struct ServerTokens {
    hashes: RwLock<Hashes>,
    folder: PathBuf,
    journals: Arc<dyn OpenJournal>,
    /// Held while a token is replaced.
    rotating: Mutex<()>,
}

impl fmt::Debug for ServerTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerTokens")
    }
}

/// Compares in constant time.
fn same(a: Digest, b: Digest) -> bool {
    let different = a.0.iter().zip(&b.0).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(different) == 0
}

fn file_error(path: &Path) -> impl FnOnce(io::Error) -> DataFolderError {
    |source| DataFolderError::File { path: path.to_owned(), source }
}

impl ServerTokens {
    /// The journal's tokens, or the folder's if the journal has none. Both have their hashes afterwards. A deployment in
    /// which the tokens themselves were kept beside the journal is changed to hashes; its tokens stay the same.
    ///
    /// # Errors
    /// Where the journal's storage or the folder can't be used.
    pub fn settle(
        folder: &DataFolder,
        journals: Arc<dyn OpenJournal>,
    ) -> Result<Self, TokensError> {
        let tokens = Self {
            hashes: RwLock::default(),
            folder: folder.root().to_owned(),
            journals,
            rotating: Mutex::default(),
        };
        let kept = tokens.read_hashes()?;
        let mut hashes = Hashes::new();
        for which in ServerToken::ALL {
            hashes.insert(which, tokens.settle_one(which, kept.get(&which).copied())?);
        }
        if hashes != kept {
            tokens.write_hashes(&hashes)?;
        }
        *tokens.hashes.write() = hashes;
        Ok(tokens)
    }

    /// The token's hash, as the journal's storage has it afterwards.
    fn settle_one(&self, which: ServerToken, kept: Option<Digest>) -> Result<Digest, TokensError> {
        let plain_name = which.file();
        // As versions before this one kept it there.
        let plain = self.journals.existing_secret(&plain_name)?;
        let file = self.secret_in(&self.file(which))?;
        let mut made = None;
        let mine = match plain.as_ref().or(if kept.is_none() { file.as_ref() } else { None }) {
            Some(token) => Digest::of(token.as_bytes()),
            None => match kept {
                Some(kept) => kept,
                None => {
                    let token = new_token().map_err(DataFolderError::NoRandomness)?;
                    Digest::of(made.insert(token).as_bytes())
                }
            },
        };
        let shared = self.journals.secret(&hash_name(which), &mine.to_string())?;
        let shared = parse(which, &shared)?;
        if plain.is_some() {
            self.journals.remove_secret(&plain_name)?;
        }
        let is_it = |token: &String| Digest::of(token.as_bytes()) == shared;
        // A token that was made before a crash, and may not have been told to anybody.
        let next = self.secret_in(&self.next_file(which))?.filter(is_it);
        if !file.as_ref().is_some_and(is_it) {
            if let Some(token) = next.or(made.filter(is_it)).or(plain.filter(is_it)) {
                self.write_secret(&self.file(which), &token)?;
            } else if file.is_some() {
                tracing::warn!(
                    file = %self.file(which).display(),
                    "the token in this file isn't the deployment's: commands on this machine need another one"
                );
            }
        }
        let path = self.next_file(which);
        if_exists(fs::remove_file(&path)).map_err(file_error(&path))?;
        Ok(shared)
    }

    /// Which of the server's own tokens has this hash?
    pub(crate) fn which(&self, sha256: Digest) -> Option<ServerToken> {
        let hashes = self.hashes.read();
        // All are compared, so that the time says nothing.
        let found = hashes.iter().filter(|(_, own)| same(sha256, **own));
        found.map(|(which, _)| *which).fold(None, |_, which| Some(which))
    }

    /// The token itself, where its file is in the data folder.
    ///
    /// # Errors
    /// Where the file can't be read.
    pub fn local_secret(&self, which: ServerToken) -> Result<Option<String>, TokensError> {
        let own = self.hashes.read().get(&which).copied();
        let token = self.secret_in(&self.file(which))?;
        Ok(token.filter(|token| own == Some(Digest::of(token.as_bytes()))))
    }

    /// Replaces one of the tokens. The one before opens nothing from now on.
    ///
    /// # Errors
    /// [`TokensError::NotActive`], or where the journal's storage or the folder can't be used.
    pub(crate) fn rotate(&self, which: ServerToken) -> Result<String, TokensError> {
        let _one_at_a_time = self.rotating.lock();
        if !self.journals.is_ours() {
            return Err(TokensError::NotActive);
        }
        let token = new_token().map_err(DataFolderError::NoRandomness)?;
        let sha256 = Digest::of(token.as_bytes());
        // First where it is found after a crash: else nobody might have the last way in.
        self.write_secret(&self.next_file(which), &token)?;
        let mut hashes = self.hashes.read().clone();
        self.share(which, sha256)?;
        let before = hashes.insert(which, sha256);
        if let Err(error) = self.write_hashes(&hashes) {
            if let Some(before) = before {
                self.share(which, before)?;
            }
            return Err(error);
        }
        *self.hashes.write() = hashes;
        let (next, path) = (self.next_file(which), self.file(which));
        fs::rename(&next, &path).map_err(file_error(&path))?;
        Ok(token)
    }

    /// Replaces a hash for all servers.
    fn share(&self, which: ServerToken, sha256: Digest) -> Result<(), TokensError> {
        let shared = self.journals.set_secret(&hash_name(which), &sha256.to_string());
        shared.map_err(|error| match error {
            JournalError::Fenced => TokensError::NotActive,
            other => other.into(),
        })
    }

    /// Reads the hashes beside the journal again: another server may have replaced a token meanwhile.
    pub(crate) fn reload(&self) -> Result<(), TokensError> {
        let _one_at_a_time = self.rotating.lock();
        let mut hashes = self.hashes.read().clone();
        for (which, sha256) in &mut hashes {
            let shared = self.journals.secret(&hash_name(*which), &sha256.to_string())?;
            *sha256 = parse(*which, &shared)?;
        }
        if hashes != *self.hashes.read() {
            self.write_hashes(&hashes)?;
            *self.hashes.write() = hashes;
        }
        Ok(())
    }

    /// The file with the token itself, for commands on this machine.
    pub(crate) fn file(&self, which: ServerToken) -> PathBuf {
        self.folder.join(which.file())
    }

    fn next_file(&self, which: ServerToken) -> PathBuf {
        self.folder.join(format!("{}-token.next", which.name()))
    }

    fn hashes_file(&self) -> PathBuf {
        self.folder.join("token-hashes.json")
    }

    fn read_hashes(&self) -> Result<Hashes, TokensError> {
        let path = self.hashes_file();
        match if_exists(fs::read(&path)).map_err(file_error(&path))? {
            None => Ok(Hashes::new()),
            Some(bytes) => serde_json::from_slice(&bytes)
                .map_err(|source| TokensError::Hashes { path, source }),
        }
    }

    fn write_hashes(&self, hashes: &Hashes) -> Result<(), TokensError> {
        let path = self.hashes_file();
        let bytes = serde_json::to_vec(hashes)
            .map_err(|source| TokensError::Hashes { path: path.clone(), source })?;
        sojourn_files::write(&path, &bytes, Access::Owner, Durability::Synced)
            .map_err(file_error(&path))?;
        Ok(())
    }

    fn secret_in(&self, path: &Path) -> Result<Option<String>, TokensError> {
        let text = if_exists(fs::read_to_string(path)).map_err(file_error(path))?;
        Ok(text.map(|text| text.trim().to_owned()).filter(|token| !token.is_empty()))
    }

    fn write_secret(&self, path: &Path, token: &str) -> Result<(), TokensError> {
        let text = format!("{token}\n");
        sojourn_files::write(path, text.as_bytes(), Access::Owner, Durability::Synced)
            .map_err(file_error(path))?;
        Ok(())
    }
}

fn hash_name(which: ServerToken) -> String {
    format!("{}-token-sha256", which.name())
}

fn parse(which: ServerToken, sha256: &str) -> Result<Digest, TokensError> {
    sha256.parse().map_err(|source| TokensError::Shared { name: which.name(), source })
}

/// Opens a journal, and reads the tokens beside it again each time: a server that takes over may have stood by while another
/// one replaced them.
pub(crate) struct WithTokens {
    pub(crate) journals: Arc<dyn OpenJournal>,
    pub(crate) tokens: Arc<ServerTokens>,
}

impl OpenJournal for WithTokens {
    fn open(&self) -> Result<Box<dyn Journal>, JournalError> {
        let journal = self.journals.open()?;
        self.tokens.reload().map_err(|error| match error {
            TokensError::Journal(error) => error,
            other => JournalError::Storage(other.into()),
        })?;
        Ok(journal)
    }

    fn is_shared(&self) -> bool {
        self.journals.is_shared()
    }

    fn held_for(&self) -> Duration {
        self.journals.held_for()
    }

    fn is_ours(&self) -> bool {
        self.journals.is_ours()
    }

    fn keep_note(&self, notes: Arc<dyn NoteStore>) {
        self.journals.keep_note(notes);
    }

    fn advertise(&self, url: &str) {
        self.journals.advertise(url);
    }

    fn durability(&self) -> Option<&str> {
        self.journals.durability()
    }

    fn secret(&self, name: &str, mine: &str) -> Result<String, JournalError> {
        self.journals.secret(name, mine)
    }

    fn existing_secret(&self, name: &str) -> Result<Option<String>, JournalError> {
        self.journals.existing_secret(name)
    }

    fn set_secret(&self, name: &str, value: &str) -> Result<(), JournalError> {
        self.journals.set_secret(name, value)
    }

    fn remove_secret(&self, name: &str) -> Result<(), JournalError> {
        self.journals.remove_secret(name)
    }

    fn leave(&self) {
        self.journals.leave();
    }
}
