//! The files of a unit: blobs that lie on the host's disk.

use crate::error::TrainError;
use sojourn_protocol::digest::Digest;
use std::{collections::BTreeMap, fs, io, path::PathBuf};

/// The files of a unit, by blob.
pub(crate) type Files = BTreeMap<Digest, PathBuf>;

/// The bytes of a blob's file, if they are the blob's: a file in a cache may have been altered since it
/// was checked, and nothing may be trained on that.
pub(crate) fn read(files: &Files, blob: Digest) -> Result<Vec<u8>, TrainError> {
    let path = files.get(&blob).ok_or(TrainError::NoFile(blob))?;
    let bytes = fs::read(path).map_err(|source| match source.kind() {
        // Somebody has deleted it, as a whole cache may be: the unit isn't to blame.
        io::ErrorKind::NotFound => TrainError::Damaged(blob),
        _ => TrainError::File { verb: "read", path: path.clone(), source },
    })?;
    if Digest::of(&bytes) == blob { Ok(bytes) } else { Err(TrainError::Damaged(blob)) }
}
