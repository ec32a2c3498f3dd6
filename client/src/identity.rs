//! This machine's identity at the server. Enrolling makes it once; it is kept in a file that only its owner reads.

use crate::{
    api::Api,
    contact::Contact,
    error::ClientError,
    forgotten::SetAside,
    storage::{
        folder::{Folder, write_lasting_secret},
        machine::{Belongs, MachineRecord},
        stores::Stores,
    },
};
use serde::{Deserialize, Serialize};
use sojourn_files::if_exists;
use sojourn_http::{Backoff, CallError};
use sojourn_protocol::{
    api::{EnrolAnswer, EnrolRequest},
    error::ErrorKind,
    ids::HostId,
};
use std::{fmt, fs, io, path::Path};

/// Logged where the machine's results are verified by default.
const VERIFIED: &str = "the server has results of this machine trained again by another party: all at first, and 1 in 20 once its owner is \
    trusted; a job may say otherwise";

/// The format of the file.
const FORMAT: u32 = 1;

/// A host's id and its own token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Identity {
    format: u32,
    /// The host.
    pub(crate) host: HostId,
    /// The host's token.
    pub(crate) token: String,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Identity {
    /// The stored identity; `None` where the machine hasn't enrolled.
    pub(crate) fn load(path: &Path) -> Result<Option<Self>, ClientError> {
        let text = if_exists(fs::read(path));
        let text = text.map_err(|source| ClientError::Folder { path: path.to_owned(), source })?;
        let Some(text) = text else { return Ok(None) };
        let unreadable = |source| ClientError::Identity { path: path.to_owned(), source };
        let identity: Self = serde_json::from_slice(&text).map_err(unreadable)?;
        if identity.format != FORMAT {
            let message = format!("format {} is not {FORMAT}", identity.format);
            return Err(unreadable(serde::de::Error::custom(message)));
        }
        Ok(Some(identity))
    }

    fn store(&self, path: &Path) -> Result<(), ClientError> {
        let refuse = |source| ClientError::Folder { path: path.to_owned(), source };
        let text = serde_json::to_vec_pretty(self).map_err(|e| refuse(io::Error::other(e)))?;
        // Lasting: without it the machine would enrol twice, and half of it would be refused at each start.
        write_lasting_secret(path, &text).map_err(refuse)
    }

    /// The stored identity, or a new one: enrols with `token`, however long the server is away. What the server names as its
    /// stores is kept too.
    pub(crate) async fn load_or_enrol(
        folder: &Folder,
        name: &str,
        token: Option<&str>,
        api: &Api,
        contact: &Contact,
        backoff: &mut Backoff,
    ) -> Result<Self, ClientError> {
        let (path, here) = (&folder.identity(), MachineRecord::here(name));
        if let Some(identity) = Self::load(path)? {
            check_machine(folder, &here)?;
            return Ok(identity);
        }
        let token = token.ok_or(ClientError::NoToken)?;
        let answer = enrol(name, token, api, contact, backoff).await?;
        let EnrolAnswer { host, token, stores, verified } = answer;
        // Before the identity: with that alone, the server could lead anywhere.
        let path_of_stores = folder.stores();
        Stores::name(&path_of_stores, stores)
            .map_err(|source| ClientError::Folder { path: path_of_stores, source })?;
        let identity = Self { format: FORMAT, host, token };
        write_machine(folder, &here)?;
        identity.store(path)?;
        SetAside::delete(path.clone())?;
        tracing::info!(%host, name, "enrolled");
        if verified {
            tracing::info!("{VERIFIED}");
        }
        Ok(identity)
    }
}

/// The name under which the machine enrolled, where it is another one than this.
pub(crate) fn enrolled_name(folder: &Folder, name: &str) -> Option<String> {
    let record = MachineRecord::read(&folder.machine()).ok().flatten()?;
    let enrolled = record.name().filter(|enrolled| *enrolled != name)?;
    tracing::warn!(
        name,
        enrolled,
        "the name isn't used: the server knows this machine by the name under which it enrolled"
    );
    Some(enrolled.to_owned())
}

/// Refuses an identity that belongs to another machine.
fn check_machine(folder: &Folder, here: &MachineRecord) -> Result<(), ClientError> {
    let path = folder.machine();
    let record = match MachineRecord::read(&path) {
        Ok(record) => record.unwrap_or_default(),
        Err(error) => {
            // The server tells two machines with one identity apart too.
            tracing::warn!(%error, file = %path.display(), "it isn't known which machine the identity belongs to");
            return Ok(());
        }
    };
    if record.belongs(here) == Belongs::Elsewhere {
        return Err(ClientError::OtherMachine { identity: folder.identity(), record: path });
    }
    let completed = record.completed(here);
    if completed != record { write_machine(folder, &completed) } else { Ok(()) }
}

fn write_machine(folder: &Folder, record: &MachineRecord) -> Result<(), ClientError> {
    let path = folder.machine();
    record.write(&path).map_err(|source| ClientError::Folder { path, source })
}

async fn enrol(
    name: &str,
    token: &str,
    api: &Api,
    contact: &Contact,
    backoff: &mut Backoff,
) -> Result<EnrolAnswer, ClientError> {
    let request = EnrolRequest { name: name.to_owned() };
    loop {
        let failure = match api.enrol(token, &request).await {
            Ok(answer) => {
                contact.made();
                return Ok(answer);
            }
            Err(failure) => failure,
        };
        let reason = failure.to_string();
        match &failure {
            CallError::Refused { error, .. } => match error.kind {
                ErrorKind::UnsupportedProtocol => return Err(ClientError::Protocol { reason }),
                ErrorKind::Unauthorized | ErrorKind::Forbidden | ErrorKind::Invalid => {
                    return Err(ClientError::EnrolmentRefused { reason });
                }
                _ => {}
            },
            CallError::Protocol { .. } => return Err(ClientError::Protocol { reason }),
            CallError::Untrusted { fault, .. } if fault.is_the_callers() => {
                return Err(api.untrusted(fault));
            }
            CallError::Unreachable { .. }
            | CallError::Untrusted { .. }
            | CallError::InvalidResponse { .. } => {}
        }
        contact.lost(&failure);
        contact.pause(backoff, failure.retry_after()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_private_and_a_damaged_one_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("identity.json");
        assert_eq!(Identity::load(&path).unwrap(), None);
        let identity = Identity { format: FORMAT, host: HostId(3), token: "secret".into() };
        identity.store(&path).unwrap();
        assert_eq!(Identity::load(&path).unwrap(), Some(identity.clone()));
        assert!(!format!("{identity:?}").contains("secret"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        for bad in ["{", "{}", r#"{"format":2,"host":1,"token":"t"}"#] {
            fs::write(&path, bad).unwrap();
            let error = Identity::load(&path).unwrap_err();
            assert!(error.to_string().contains("identity.json"), "{error}");
        }
    }
}
