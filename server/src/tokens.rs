//! The tokens of machines, users and assimilators. All servers of a journal share them.

use crate::{
    data_folder::{DataFolder, DataFolderError},
    journal::{JournalError, OpenJournal},
};
use std::{fmt, path::Path};

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
}

/// The tokens that all servers of a journal share.
#[derive(Clone)]
pub struct SharedTokens {
    /// Lets a machine enrol as a host.
    pub enrol: String,
    /// Gives the rights of users.
    pub admin: String,
    /// Lets a process assimilate.
    pub assimilator: String,
}

impl fmt::Debug for SharedTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedTokens")
    }
}

/// The journal's tokens, or the folder's if the journal has none. Both have them afterwards.
///
/// # Errors
/// Where the journal's storage or the folder can't be used.
pub fn settle_tokens(
    folder: &DataFolder,
    journals: &dyn OpenJournal,
) -> Result<SharedTokens, TokensError> {
    let shared = |name: &str, file: &Path| -> Result<String, TokensError> {
        let mine = folder.token(file)?;
        let shared = journals.secret(name, &mine)?;
        if shared != mine {
            folder.set_token(file, &shared)?;
        }
        Ok(shared)
    };
    Ok(SharedTokens {
        enrol: shared("enrol-token", &folder.enrol_token_file())?,
        admin: shared("admin-token", &folder.admin_token_file())?,
        assimilator: shared("assimilator-token", &folder.assimilator_token_file())?,
    })
}
