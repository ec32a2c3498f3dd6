//! A machine whose identity is of no use any more, since the server has forgotten it or it is another machine's: it enrols again where it
//! has an enrolment token. Its identity is set aside, and comes back as long as the machine has no other one: when the attempt has
//! ended, or at the next start where it was killed.

use crate::{config::ClientConfig, error::ClientError, storage::folder::Folder};
use sojourn_files::if_exists;
use std::{fs, path::PathBuf};

/// Which of its attempts to work a client begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The one with the identity that there is.
    First,
    /// The one to enrol again, with the identity of before set aside.
    Again,
}

impl Attempt {
    /// Brings an identity back that a daemon had set aside before it was killed. That daemon is gone, since this one holds the
    /// folder's lock.
    pub(crate) fn begin(self, folder: &Folder) -> Result<(), ClientError> {
        match self {
            Self::First => SetAside::of(folder.identity()).bring_back(),
            Self::Again => Ok(()),
        }
    }
}

/// The identity of before, in a file of its own.
pub(crate) struct SetAside {
    identity: PathBuf,
    aside: PathBuf,
}

impl SetAside {
    fn of(identity: PathBuf) -> Self {
        let aside = identity.with_extension("forgotten");
        Self { identity, aside }
    }

    /// Sets the identity aside if a daemon has ended because the identity is of no use, and there is a token to enrol with.
    pub(crate) fn after(
        ended: &Result<(), ClientError>,
        config: &ClientConfig,
    ) -> Result<Option<Self>, ClientError> {
        let Err(error) = ended else { return Ok(None) };
        let (ClientError::Forgotten { identity, .. }
        | ClientError::Copied { identity }
        | ClientError::OtherMachine { identity, .. }) = error
        else {
            return Ok(None);
        };
        if config.token.is_none() {
            return Ok(None);
        }
        let this = Self::of(identity.clone());
        fs::rename(identity, &this.aside)
            .map_err(|source| ClientError::Folder { path: identity.clone(), source })?;
        tracing::warn!(reason = %error, "enrolling this machine again");
        Ok(Some(this))
    }

    /// Brings the identity back where the daemon that was to have another one has got none, however it ended.
    pub(crate) fn settle(self, ended: Result<(), ClientError>) -> Result<(), ClientError> {
        self.bring_back()?;
        ended
    }

    /// The machine has another identity: the one that was set aside goes, with its token.
    pub(crate) fn delete(identity: PathBuf) -> Result<(), ClientError> {
        Self::of(identity).bring_back()
    }

    fn bring_back(self) -> Result<(), ClientError> {
        if self.identity.exists() {
            // The token of another machine, perhaps.
            return if_exists(fs::remove_file(&self.aside))
                .map(drop)
                .map_err(|source| ClientError::Folder { path: self.aside, source });
        }
        if_exists(fs::rename(&self.aside, &self.identity))
            .map_err(|source| ClientError::Folder { path: self.identity, source })?;
        Ok(())
    }
}
