//! The names of uploads.

use sojourn_protocol::{digest::Digest, ids::LeaseId};
use std::{fmt, str::FromStr};

/// The name of an upload: one upload at a time has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UploadName {
    /// The result of a lease.
    Lease(LeaseId),
    /// The result of a lease as a delta, which is yet to be decoded.
    Delta(LeaseId),
    /// A blob of its own.
    Blob(Digest),
}

impl fmt::Display for UploadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UploadName::Lease(lease) => write!(f, "lease-{lease}"),
            UploadName::Delta(lease) => write!(f, "delta-{lease}"),
            UploadName::Blob(digest) => write!(f, "blob-{digest}"),
        }
    }
}

impl FromStr for UploadName {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (kind, id) = text.split_once('-').ok_or(())?;
        match kind {
            "lease" => id.parse().map(UploadName::Lease).map_err(drop),
            "delta" => id.parse().map(UploadName::Delta).map_err(drop),
            "blob" => id.parse().map(UploadName::Blob).map_err(drop),
            _ => Err(()),
        }
    }
}
