//! Some shards of a job's data, as far as they say themselves what they are: their headers, and the range of their labels.

use super::{CheckError, beginning, range, said};
use sojourn_blobs::BlobStore;
use sojourn_codec::{CodecError, Layout, decode_header};
use sojourn_model::shard::{Y, check_shard};
use sojourn_protocol::manifest::{DataManifest, Labels, Shard};

/// Shards of each split whose headers are read: from the first to the last one, evenly.
const MAX_SHARDS: usize = 32;
/// Bytes in which a header is looked for. Longer ones are left to trainers.
const MAX_HEADER: u64 = 64 << 10;
/// Bytes of the shards of one job that are looked at: the store hashes a blob whole when it is read first since the server's start.
const MAX_BYTES: u64 = 512 << 20;
/// Bytes of labels that are read of one job, 8 each.
const MAX_LABELS: u64 = 4 << 20;

/// Can models be trained on a job's shards, as the manifest describes them?
pub(super) async fn check(store: &BlobStore, data: &DataManifest) -> Result<(), CheckError> {
    let (mut labels_left, mut bytes_left) = (MAX_LABELS, MAX_BYTES);
    let splits = [("training", &data.train), ("validation", &data.valid), ("test", &data.test)];
    for (split, shards) in splits {
        for (number, shard) in some_of(shards) {
            // Of each split one at least.
            match bytes_left.checked_sub(shard.blob.bytes) {
                Some(left) => bytes_left = left,
                None if number == 0 => {}
                None => continue,
            }
            let wrong = |why: String| CheckError::invalid(format!("{split} shard {number}: {why}"));
            let blob = shard.blob.sha256;
            let Some(start) = beginning(store, blob, MAX_HEADER).await? else { continue };
            let layout = match decode_header(&start) {
                Ok(layout) => layout,
                Err(CodecError::Truncated { .. }) if shard.blob.bytes > MAX_HEADER => continue,
                Err(error) => return Err(wrong(said(&error))),
            };
            if layout.file_bytes() != shard.blob.bytes {
                let (own, stored) = (layout.file_bytes(), shard.blob.bytes);
                return Err(wrong(format!("its header says {own} bytes, and it has {stored}")));
            }
            let tensors: Vec<_> = layout.tensors().iter().map(|(spec, _)| spec.clone()).collect();
            check_shard(&tensors, shard, data).map_err(wrong)?;
            if let Labels::Classes(names) = &data.labels {
                let checked = check_labels(store, shard, &layout, names.len(), &mut labels_left);
                checked.await?.map_err(wrong)?;
            }
        }
    }
    Ok(())
}

/// The first shard, the last one, and those between them, evenly.
fn some_of(shards: &[Shard]) -> impl Iterator<Item = (usize, &Shard)> {
    let step = shards.len().div_ceil(MAX_SHARDS).max(1);
    let last = shards.len().saturating_sub(1);
    let all = shards.iter().enumerate();
    all.filter(move |(number, _)| number.is_multiple_of(step) || *number == last)
}

/// Are the labels of a shard indices of classes? As many of them are read as are left to read.
async fn check_labels(
    store: &BlobStore,
    shard: &Shard,
    layout: &Layout,
    classes: usize,
    left: &mut u64,
) -> Result<Result<(), String>, CheckError> {
    let Some(place) = layout.range(Y) else { return Ok(Ok(())) };
    let bytes = (place.end - place.start).min(*left) / 8 * 8;
    if bytes == 0 {
        return Ok(Ok(()));
    }
    *left -= bytes;
    let labels = range(store, shard.blob.sha256, place.start..place.start + bytes).await?;
    let labels = labels.unwrap_or_default();
    let (numbers, _) = labels.as_chunks::<8>();
    let mut numbers = numbers.iter().map(|number| i64::from_le_bytes(*number));
    let is_class = |label: i64| usize::try_from(label).is_ok_and(|label| label < classes);
    let wrong = numbers.find(|label| !is_class(*label));
    Ok(wrong.map_or(Ok(()), |label| {
        Err(format!(
            "a label is class {label}, and the manifest has {classes} classes, counted from 0"
        ))
    }))
}
