//! Moves finished blobs to their names.

use crate::error::IngestError;
use sojourn_protocol::digest::{BlobRef, Digest};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Moves every blob to its name in `out_dir`: all of them or none.
pub(super) fn publish(
    blobs: &[(BlobRef, PathBuf)],
    out_dir: &Path,
) -> Result<BTreeMap<Digest, PathBuf>, IngestError> {
    let mut files: BTreeMap<Digest, PathBuf> = BTreeMap::new();
    let mut made: Vec<PathBuf> = Vec::new();
    for (blob, path) in blobs {
        let name = out_dir.join(blob.sha256.to_string());
        // An equal blob may lie there already, from this run or one before: it is the same bytes.
        let is_new = !name.exists();
        if let Err(error) = fs::rename(path, &name) {
            for path in made {
                // Best effort: the error that is returned says more than one from here.
                let _ = fs::remove_file(path);
            }
            return Err(IngestError::io("write", &name)(error));
        }
        if is_new {
            made.push(name.clone());
        }
        files.insert(blob.sha256, name);
    }
    Ok(files)
}
