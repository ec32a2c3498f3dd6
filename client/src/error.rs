//! Why the daemon ends other than by being asked to: every variant is for a person to act on.

use crate::trainers::{gpus::GpuError, runner::RunnerError};
use sojourn_http::{AuthoritiesError, ServersError, TlsFault};
use std::{io, path::PathBuf};

/// What ends the daemon. Trouble that passes (a server that is away, a full disk) never does.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A server's address can't be used.
    #[error(transparent)]
    Address(#[from] ServersError),
    /// The metadata service's address can't be used.
    #[error("`{url}` is no address of a metadata service: {reason}")]
    Metadata {
        /// The text that was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Zero slots.
    #[error("a client needs at least one slot")]
    NoSlots,
    /// The authorities to trust can't be had.
    #[error(transparent)]
    Authorities(#[from] AuthoritiesError),
    /// The server at the address isn't one that this machine can speak with securely.
    #[error("the server at `{url}` can't be trusted: {fault}")]
    Untrusted {
        /// The address.
        url: String,
        /// The fault.
        fault: TlsFault,
    },
    /// The GPUs that were asked for can't be used.
    #[error(transparent)]
    Gpus(#[from] GpuError),
    /// The data folder isn't the one any more that the daemon began with.
    #[error(
        "the data folder `{}` was deleted, moved or replaced while the client ran: start the client again; \
         where `identity.json` is gone too, it enrols anew and needs a token", path.display()
    )]
    FolderGone {
        /// The folder.
        path: PathBuf,
    },
    /// There is no identity yet and no token to get one with.
    #[error("this machine is not enrolled yet and there is no enrolment token")]
    NoToken,
    /// The server doesn't take the enrolment token.
    #[error("the server refused to enrol this machine: {reason}")]
    EnrolmentRefused {
        /// The server's words.
        reason: String,
    },
    /// The server doesn't take this host's own token any more.
    #[error(
        "the server no longer takes this machine's token ({reason}): it was revoked, or it is \
         another server's; remove `{}` to enrol again", identity.display()
    )]
    Revoked {
        /// The server's words.
        reason: String,
        /// Where the token is kept.
        identity: PathBuf,
    },
    /// The server speaks another version of the wire format.
    #[error("server and client speak different protocol versions: {reason}")]
    Protocol {
        /// Which.
        reason: String,
    },
    /// Two daemons on one data folder.
    #[error("another client already runs on the data folder `{}`", path.display())]
    FolderInUse {
        /// The folder.
        path: PathBuf,
    },
    /// The data folder can't be used.
    #[error("the data folder's `{}` can't be used", path.display())]
    Folder {
        /// What exactly.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The stored identity isn't one.
    #[error("`{}` is not an identity that this version of the client can read", path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// The trainer can't be started.
    #[error("the trainer can't be started")]
    Trainer(#[source] RunnerError),
    /// Their arithmetic isn't one, so the machine can't be of one numeric class.
    #[error("the trainers of this machine don't calculate alike")]
    Unlike(#[source] RunnerError),
    /// The HTTP client can't be made.
    #[error("the HTTP client can't be set up")]
    Http(#[source] reqwest::Error),
}
