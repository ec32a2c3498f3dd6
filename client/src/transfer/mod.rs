//! Bytes between server and disk: hashed as they stream, taken up again where they broke off.

mod bandwidth;
mod delta;
mod delta_policy;
mod download;
mod moving;
mod part;
mod speed;
mod upload;

pub(crate) use bandwidth::Bandwidth;
pub use bandwidth::Rates;
pub(crate) use delta::{Delta, delta};
pub(crate) use download::{FetchError, Fetcher, SharedDownload};
pub(crate) use upload::{Outgoing, UploadError, upload};

use sojourn_protocol::digest::{Digest, Hasher};
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// Bytes read at once.
const READ: usize = 256 << 10;

/// The SHA-256 of a file. Blocks.
pub(crate) fn digest_of_file(path: &Path) -> io::Result<Digest> {
    let mut file = File::open(path)?;
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; READ];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(hasher.finish());
        }
        hasher.update(buffer.get(..read).unwrap_or_default());
    }
}
