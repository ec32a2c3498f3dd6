//! The tokens of machines and of users are the same at all servers of a journal.

use crate::{
    folder::{DataFolder, FolderError},
    journal::{JournalError, OpenJournal},
};
use std::path::Path;

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

/// The enrolment and the admin token, which all servers of a journal share: those that it holds, or else the
/// folder's. Both have them then.
///
/// # Errors
/// Where the journal's storage or the folder can't be used.
pub fn settle_tokens(
    folder: &DataFolder,
    journals: &dyn OpenJournal,
) -> Result<(String, String), TokensError> {
    let shared = |name: &str, file: &Path| -> Result<String, TokensError> {
        let mine = folder.token(file)?;
        let shared = journals.secret(name, &mine)?;
        if shared != mine {
            folder.set_token(file, &shared)?;
        }
        Ok(shared)
    };
    let enrol = shared("enrol-token", &folder.enrol_token_file())?;
    Ok((enrol, shared("admin-token", &folder.admin_token_file())?))
}
