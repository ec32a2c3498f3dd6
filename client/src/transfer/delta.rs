//! A finished checkpoint as its difference from the base that it was trained from, in a file beside it.

use super::Fetcher;
use crate::{storage::cache::Pin, transfer::Bandwidth};
use sojourn_codec::delta::{self, Named};
use sojourn_protocol::{
    api::MAX_DELTA_CHECKPOINT,
    digest::{BlobRef, Digest},
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Instant,
};

/// A delta may have at most so many percent of the checkpoint's size: a larger one isn't worth the server's time.
const MAX_PERCENT: u64 = 95;

/// A delta on disk; deleted when this is dropped.
#[derive(Debug)]
pub(crate) struct Delta {
    pub(crate) blob: BlobRef,
    pub(crate) base: Digest,
    pub(crate) path: PathBuf,
}

impl Drop for Delta {
    fn drop(&mut self) {
        // Gone with its result, perhaps.
        let _ = fs::remove_file(&self.path);
    }
}

/// The delta of the checkpoint `whole` in the file `path`, if its base is in the cache and a delta saves time.
pub(crate) async fn delta(
    fetcher: &Fetcher,
    bandwidth: &Bandwidth,
    base: BlobRef,
    whole: BlobRef,
    path: &Path,
) -> Option<Delta> {
    let fits = base.bytes == whole.bytes && whole.bytes <= MAX_DELTA_CHECKPOINT;
    if !fits || !bandwidth.delta_policy.pays(whole.bytes, bandwidth.upload.rate()) {
        return None;
    }
    let base = fetcher.at_hand(base).await?;
    // One at a time: each holds both checkpoints in memory.
    let _alone = bandwidth.encoding.lock().await;
    let begun = Instant::now();
    let path = path.to_owned();
    let made = tokio::task::spawn_blocking(move || make(&base, whole, &path)).await;
    match made.map_err(io::Error::other).flatten() {
        Ok((delta, bytes)) => {
            bandwidth.delta_policy.made(whole.bytes, bytes, begun.elapsed());
            delta
        }
        Err(error) => {
            tracing::debug!(%error, "no delta is made of a checkpoint; it is sent whole");
            None
        }
    }
}

/// The delta, if it is small enough, and its size. Blocks.
fn make(base: &Pin, whole: BlobRef, path: &Path) -> io::Result<(Option<Delta>, u64)> {
    let bytes = [fs::read(base.path())?, fs::read(path)?];
    let [base_bytes, new] = &bytes;
    let named = |digest: Digest, bytes| Named { digest: digest.0, bytes };
    let encoded = delta::encode(named(base.digest(), base_bytes), named(whole.sha256, new));
    let encoded = encoded.map_err(io::Error::other)?;
    let blob = BlobRef { sha256: Digest::of(&encoded), bytes: encoded.len() as u64 };
    if blob.bytes.saturating_mul(100) > whole.bytes.saturating_mul(MAX_PERCENT) {
        return Ok((None, blob.bytes));
    }
    let delta = Delta { blob, base: base.digest(), path: path.with_extension("delta") };
    fs::write(&delta.path, encoded)?;
    Ok((Some(delta), blob.bytes))
}
