//! Writes a job's data, once it is counted, as shards with their manifest.

use crate::{
    Ingested,
    bounds::SharedBounds,
    columns::ColumnData,
    data::Data,
    error::IngestError,
    plan::{Cut, Part, Plan},
    progress::Progress,
    shards::{ColumnShards, RowLayout, ShardSet},
};
use sojourn_protocol::{
    manifest::{DataManifest, Labels, Scaling, Shard, Targets},
    spec::{JobSpec, Scale, ScaleLabel},
};
use std::path::Path;

/// Writes rows of numbers.
pub(crate) fn rows(
    spec: &JobSpec,
    mut data: Data,
    cut: &Cut,
    (out_dir, bounds): (&Path, &SharedBounds),
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Ingested, IngestError> {
    let plan = data.plan(spec, cut)?;
    let rows = RowLayout {
        features: data.width,
        element_of: &|from| data.element(from),
        labels: &data.labels,
    };
    let mut shards = ShardSet::create(out_dir, &plan, rows, bounds)?;
    let sums = data.cut(&plan, Some(&mut shards), progress)?;
    let scaling = match spec.data.scale {
        Scale::None => Scaling::None,
        Scale::Constant(factor) => Scaling::Constant(factor),
        // The caller has it: it came with a model.
        Scale::Given(blob) => Scaling::Standard(blob),
        Scale::Standard => Scaling::Standard(shards.add_blob(&sums.features.encode()?)?),
    };
    let targets = match (&data.labels, spec.data.scale_label) {
        (Labels::Classes(names), _) => {
            let weights = spec.training.class_weights.weights(names, sums.class_rows());
            weights.map_or(Targets::Plain, Targets::Weighted)
        }
        (Labels::Number, ScaleLabel::None) | (Labels::None, _) => Targets::Plain,
        (Labels::Number, ScaleLabel::Given(scaling)) => Targets::Standard(scaling),
        (Labels::Number, ScaleLabel::Standard) => Targets::Standard(sums.label_scaling()),
    };
    let (blobs, files) = shards.publish(out_dir)?;
    let manifest = DataManifest {
        train: shards_of(&plan, &blobs, Part::Train),
        valid: shards_of(&plan, &blobs, Part::Valid),
        test: shards_of(&plan, &blobs, Part::Test),
        columns: Vec::new(),
        shape: data.shape,
        features: data.features,
        labels: data.labels,
        categories: data.categories,
        fill: data.fill,
        scaling,
        targets,
    };
    Ok(Ingested { manifest, files })
}

/// Writes columns by name.
pub(crate) fn columns(
    spec: &JobSpec,
    mut data: ColumnData,
    cut: &Cut,
    (out_dir, bounds): (&Path, &SharedBounds),
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Ingested, IngestError> {
    let plan = data.plan(spec, cut)?;
    let mut shards = ColumnShards::create(out_dir, &plan, &data.columns, bounds)?;
    data.cut(&plan, Some(&mut shards), progress)?;
    let (blobs, files) = shards.publish(out_dir)?;
    let manifest = DataManifest {
        train: shards_of(&plan, &blobs, Part::Train),
        valid: shards_of(&plan, &blobs, Part::Valid),
        test: shards_of(&plan, &blobs, Part::Test),
        columns: data.columns,
        shape: Vec::new(),
        features: Vec::new(),
        labels: Labels::None,
        categories: Vec::new(),
        fill: Vec::new(),
        scaling: Scaling::None,
        targets: Targets::Plain,
    };
    Ok(Ingested { manifest, files })
}

/// The shards of a part, out of those of a plan.
fn shards_of(plan: &Plan, blobs: &[Shard], part: Part) -> Vec<Shard> {
    let blobs = blobs.iter().zip(plan.shards());
    blobs.filter(|(_, (of, _))| *of == part).map(|(shard, _)| *shard).collect()
}
