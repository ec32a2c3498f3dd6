//! Shards of a job's data made anew, with rows shared out by their labels.

use sojourn_codec::{CodecError, Dtype, Tensor, TensorView, decode, encode};
use sojourn_ingest::Ingested;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    error::error_chain,
    manifest::{Labels, Shard},
    quantity::{SaturatingFrom as _, to_u64},
};
use std::{fs, path::Path};

/// Rows as shards have them.
#[derive(Default)]
struct Rows {
    /// Numbers of a row.
    features: usize,
    x: Vec<f32>,
    y: Vec<i64>,
}

/// Makes the training shards anew, as many and as large as they are.
///
/// # Errors
/// Where labels are no classes, and what the disk says.
pub(super) fn apply(
    mut made: Ingested,
    out: &Path,
    skew: f64,
    seed: u64,
) -> Result<Ingested, String> {
    if made.manifest.labels == Labels::Number {
        return Err("`skew` is one of classes, and labels are numbers here".into());
    }
    let mut all = Rows::default();
    for shard in &made.manifest.train {
        let path = made.files.get(&shard.blob.sha256).ok_or("a shard is nowhere")?;
        let file = fs::read(path).map_err(|error| format!("`{}`: {error}", path.display()))?;
        all.add(&file).map_err(|error| error_chain(&error))?;
    }
    let shards = u32::saturating_from(made.manifest.train.len());
    made.manifest.train.clear();
    for rows in sojourn_sim::fleet::shared_out(&all.y, shards, skew, seed) {
        let file = all.shard(&rows).map_err(|error| error_chain(&error))?;
        let sha256 = Digest::of(&file);
        let path = out.join(sha256.to_string());
        fs::write(&path, &file).map_err(|error| format!("`{}`: {error}", path.display()))?;
        let bytes = to_u64(file.len());
        let blob = BlobRef { sha256, bytes };
        let rows = u32::saturating_from(rows.len());
        made.manifest.train.push(Shard { blob, rows });
        made.files.insert(sha256, path);
    }
    Ok(made)
}

impl Rows {
    fn add(&mut self, file: &[u8]) -> Result<(), CodecError> {
        let tensors = decode(file)?;
        let of = |name: &str| tensors.iter().find(|tensor| tensor.name == name);
        let (Some(x), Some(y)) = (of("x"), of("y")) else { return Ok(()) };
        self.features = features(x);
        match x.dtype {
            Dtype::U8 => self.x.extend(x.u8s()?.iter().copied().map(f32::from)),
            _ => self.x.extend(x.f32s()?),
        }
        self.y.extend(y.i64s()?);
        Ok(())
    }

    fn shard(&self, rows: &[usize]) -> Result<Vec<u8>, CodecError> {
        let row = |row: &usize| self.x.chunks_exact(self.features.max(1)).nth(*row);
        let x: Vec<f32> = rows.iter().filter_map(row).flatten().copied().collect();
        let y: Vec<i64> = rows.iter().filter_map(|row| self.y.get(*row)).copied().collect();
        let count = |count: usize| to_u64(count);
        let shape = [count(rows.len()), count(self.features)];
        encode(&[Tensor::f32("x", shape, &x), Tensor::i64("y", [count(rows.len())], &y)])
    }
}

/// Numbers of a row.
fn features(x: &TensorView<'_>) -> usize {
    x.shape.last().and_then(|features| usize::try_from(*features).ok()).unwrap_or(0)
}
