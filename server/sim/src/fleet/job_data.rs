//! Shards of a job that is not really trained: how many, and of how many rows.

use super::{
    job::{Cost, Fleet, count, index},
    quantity::{float, whole},
    scenario::{JobEntry, ShardSizes},
};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    manifest::{DataManifest, Labels, Scaling, Shard, Targets},
    quantity::SaturatingFrom as _,
    spec::JobSpec,
};
use sojourn_workgen::shards::{Load, rows_by_weight};

/// Shards that nobody looks into.
pub(crate) fn made_up_data(
    entry: &JobEntry,
    name: &str,
    [seed, n]: [u64; 2],
    shards: u32,
    fleet: Fleet<'_>,
    shape: Vec<u32>,
    labels: Labels,
) -> Result<DataManifest, String> {
    let rows = match entry.shard_sizes {
        ShardSizes::Equal => rows_by_weight(entry.rows, &vec![1; index(shards)]),
        ShardSizes::Speed => {
            let speeds = fleet.hosts.iter().map(|host| host.flops).cycle().take(index(shards));
            rows_by_weight(entry.rows, &speeds.collect::<Vec<_>>())
        }
    };
    let bytes_of = |rows: u64| {
        let ratio = float(rows) / float(entry.rows.max(1));
        whole(float(entry.data_bytes.0) * ratio).unwrap_or(0)
    };
    let shard = |place: u64, rows: u64| {
        let sha256 = Digest::of(format!("shard {seed} {n} {place}").as_bytes());
        let rows_u32 = u32::try_from(rows).map_err(|_| {
            format!("a shard of `{name}` has {rows} rows: make more shards of fewer rows")
        })?;
        Ok::<Shard, String>(Shard {
            blob: BlobRef { sha256, bytes: bytes_of(rows) },
            rows: rows_u32,
        })
    };
    let train = (0..).zip(&rows).map(|(place, rows)| shard(place, *rows));
    Ok(DataManifest {
        columns: Vec::new(),
        shape,
        features: Vec::new(),
        labels,
        categories: Vec::new(),
        fill: Vec::new(),
        scaling: Scaling::None,
        targets: Targets::Plain,
        train: train.collect::<Result<_, _>>()?,
        valid: vec![Shard {
            blob: BlobRef { bytes: bytes_of(entry.valid_rows), ..shard(u64::MAX, 1)?.blob },
            rows: u32::saturating_from(entry.valid_rows.max(1)),
        }],
        test: Vec::new(),
    })
}

/// The load from which the number of shards follows, where a scenario doesn't say that number.
pub(crate) fn load(
    entry: &JobEntry,
    spec: &JobSpec,
    costs: &[Cost],
    trials: &[usize],
    shape: &[u32],
    outputs: u32,
) -> Result<Load, String> {
    let all = sojourn_workgen::trials(spec).map_err(|error| error.to_string())?;
    let known = Load::of(&all, shape, outputs, entry.rows, spec.placement.replicas);
    let known = known.map_err(|error| error.to_string())?;
    let flops: f64 = trials.iter().filter_map(|cost| costs.get(*cost)).map(|cost| cost.flops).sum();
    Ok(Load {
        bytes: entry.data_bytes.0,
        flops: whole(flops / float(count(trials.len()).max(1))).unwrap_or(u64::MAX),
        checkpoint: match (&entry.file, entry.checkpoint_bytes) {
            (Some(_), None) => known.checkpoint,
            (_, bytes) => bytes.map_or(0, |bytes| bytes.0),
        },
        ..known
    })
}
