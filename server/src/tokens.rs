//! The tokens of machines, of users and of assimilators are the same at all servers of a journal.

use crate::{
    folder::{DataFolder, FolderError},
    journal::{JournalError, OpenJournal},
};
use std::{fmt, path::Path};

/// Why tokens could not be settled on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokensError {
    /// The folder can't be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The journal's storage can't be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// The tokens that all servers of a journal share.
#[derive(Clone)]
pub struct SharedTokens {
    /// With it a machine becomes a host.
    pub enrol: String,
    /// The right of users.
    pub admin: String,
    /// With it a process assimilates.
    pub assimilator: String,
}

impl fmt::Debug for SharedTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedTokens")
    }
}

/// The tokens that the journal holds, or else the folder's. Both have them then.
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
