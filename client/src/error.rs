//! The errors that end the daemon: a person has to act on each.

use crate::trainers::{gpus::GpuError, runner::RunnerError};
use sojourn_http::{AuthoritiesError, ServersError, TlsFault};
use std::{io, path::PathBuf};

/// An error that ends the daemon. Temporary faults (an unreachable server, a full disk) never do.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum ClientError {
    /// A server's address can't be used.
    #[error(transparent)]
    Address(#[from] ServersError),
    #[error("`{url}` is no address of a metadata service: {reason}")]
    Metadata { url: String, reason: String },
    #[error("a client needs at least one slot")]
    NoSlots,
    /// The authorities to trust can't be had.
    #[error(transparent)]
    Authorities(#[from] AuthoritiesError),
    #[error("the server at `{url}` can't be trusted: {fault}")]
    Untrusted { url: String, fault: TlsFault },
    /// The GPUs that were asked for can't be used.
    #[error(transparent)]
    Gpus(#[from] GpuError),
    /// The data folder isn't the one any more that the daemon began with.
    #[error(
        "the data folder `{}` was deleted, moved or replaced while the client ran: start the client again; \
         where `identity.json` is gone too, it enrols anew and needs a token", path.display()
    )]
    FolderGone { path: PathBuf },
    #[error("this machine is not enrolled yet and there is no enrolment token")]
    NoToken,
    #[error("the server refused to enrol this machine: {reason}")]
    EnrolmentRefused { reason: String },
    /// The server doesn't take this host's own token any more.
    #[error(
        "the server no longer takes this machine's token ({reason}): it was revoked, or it is \
         another server's; remove `{}` to enrol again", identity.display()
    )]
    Revoked { reason: String, identity: PathBuf },
    /// The server doesn't know this host any more.
    #[error(
        "the server doesn't know this machine ({reason}): it was away for so long that it was forgotten, or the server is another \
         one; to enrol again, start the client with an enrolment token (`--token-file`), or remove `{}` and do so", identity.display()
    )]
    Forgotten { reason: String, identity: PathBuf },
    /// Another machine works with this one's identity, and had it first.
    #[error(
        "another machine works with this machine's identity, of which this is a copy (a data folder, an image or a snapshot was copied): \
         to enrol this machine, start the client with an enrolment token (`--token-file`), or remove `{}` and do so", identity.display()
    )]
    Copied { identity: PathBuf },
    /// The data folder was made on another machine.
    #[error(
        "the data folder's identity belongs to another machine: the folder was copied or moved here. To enrol this machine, start the \
         client with an enrolment token (`--token-file`). Where the folder was moved, and no other machine has it, remove `{}`",
        record.display()
    )]
    OtherMachine { identity: PathBuf, record: PathBuf },
    #[error("server and client speak different protocol versions: {reason}")]
    Protocol { reason: String },
    #[error(
        "another client already runs on the data folder `{}`: to train more units at once, stop it and start it with more `--slots`; \
         to run a second client on this machine, give it a folder of its own with `--data DIR`", path.display()
    )]
    FolderInUse { path: PathBuf },
    #[error(
        "the path of the data folder `{}` isn't UTF-8, which trainers need: name another folder with `--data`", path.display()
    )]
    FolderName { path: PathBuf },
    #[error("the data folder's `{}` can't be used", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("`{}` is not an identity that this version of the client can read", path.display())]
    Identity { path: PathBuf, source: serde_json::Error },
    #[error("the trainer can't be started")]
    Trainer(#[source] RunnerError),
    /// The trainers' arithmetic differs, so the machine has no single numeric class.
    #[error("the trainers of this machine don't calculate alike")]
    Unlike(#[source] RunnerError),
    #[error("the HTTP client can't be set up")]
    Http(#[source] reqwest::Error),
}
