//! A machine that the server has forgotten: it enrols again where it has an enrolment token. Its identity is set aside, and comes
//! back where the server doesn't let it enrol.

use crate::{config::ClientConfig, error::ClientError};
use std::{fs, path::PathBuf};

/// The identity of before, in a file of its own.
pub(crate) struct SetAside {
    identity: PathBuf,
    aside: PathBuf,
}

impl SetAside {
    /// Sets the identity aside if a daemon has ended because the server doesn't know it, and there is a token to enrol with.
    pub(crate) fn after(
        ended: &Result<(), ClientError>,
        config: &ClientConfig,
    ) -> Result<Option<Self>, ClientError> {
        let Err(ClientError::Forgotten { identity, reason }) = ended else { return Ok(None) };
        if config.token.is_none() {
            return Ok(None);
        }
        let aside = identity.with_extension("forgotten");
        fs::rename(identity, &aside)
            .map_err(|source| ClientError::Folder { path: identity.clone(), source })?;
        tracing::warn!(reason, "the server doesn't know this machine any more; enrolling it again");
        Ok(Some(Self { identity: identity.clone(), aside }))
    }

    /// Brings the identity back where the daemon that was to have another one was refused.
    pub(crate) fn settle(self, ended: Result<(), ClientError>) -> Result<(), ClientError> {
        if matches!(ended, Err(ClientError::EnrolmentRefused { .. })) && !self.identity.exists() {
            fs::rename(&self.aside, &self.identity)
                .map_err(|source| ClientError::Folder { path: self.identity.clone(), source })?;
        }
        ended
    }
}
