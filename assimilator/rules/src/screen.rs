//! Screening: is an upload what its unit asked for? These checks need no other bytes
//! (docs/internals/merging.md).

use crate::refusal::Refusal;
use sojourn_codec::{Dtype, TensorSpec, TensorView, decode};
use sojourn_model::{BufferKind, CheckpointLayout, LINEAGE, Lineage, Moment, Role};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    quantity::to_u64,
    report::Trained,
    unit::Hop,
};

/// An upload that has passed.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked<'a> {
    /// The upload's name as a blob.
    pub checkpoint: BlobRef,
    /// The upload's lineage, which agrees with the unit and the report.
    pub lineage: Lineage,
    /// The upload's tensors, exactly those of the layout, in the same order.
    pub tensors: Vec<TensorView<'a>>,
}

/// Checks an upload against the unit that it is for and the report that came with it. `found` is the digest that its
/// bytes were found to have when they were read: they are not hashed again.
///
/// # Errors
/// The first thing that is wrong, from the outside in: base, size, digest, encoding, names, types,
/// shapes, lineage, values.
pub fn screen<'a>(
    layout: &CheckpointLayout,
    hop: &Hop,
    trained: &Trained,
    found: Digest,
    upload: &'a [u8],
) -> Result<Checked<'a>, Refusal> {
    if trained.base != hop.base.version() {
        return Err(Refusal::Base { expected: hop.base.version(), actual: trained.base });
    }
    let bytes = to_u64(upload.len());
    let checkpoint = check_name(trained.checkpoint, BlobRef { sha256: found, bytes })?;
    let tensors = decode(upload)?;
    check_tensors(layout.tensors(), &tensors)?;
    let lineage = check_lineage(hop, trained, &tensors)?;
    check_values(layout, &tensors)?;
    Ok(Checked { checkpoint, lineage, tensors })
}

fn check_name(reported: BlobRef, found: BlobRef) -> Result<BlobRef, Refusal> {
    if found.bytes != reported.bytes {
        return Err(Refusal::Size { expected: reported.bytes, actual: found.bytes });
    }
    if found.sha256 != reported.sha256 {
        return Err(Refusal::Digest { expected: reported.sha256, actual: found.sha256 });
    }
    Ok(found)
}

/// Are these the tensors that there must be, which are in name order?
fn check_tensors(specs: &[TensorSpec], tensors: &[TensorView<'_>]) -> Result<(), Refusal> {
    let spec = |tensor: &TensorView<'_>| TensorSpec {
        name: tensor.name.clone(),
        dtype: tensor.dtype,
        shape: tensor.shape.clone(),
    };
    let tensors: Vec<TensorSpec> = tensors.iter().map(spec).collect();
    check_specs(specs, &tensors)
}

/// As [`check_tensors`], of what a header says.
pub(crate) fn check_specs<'a>(
    specs: &[TensorSpec],
    tensors: impl IntoIterator<Item = &'a TensorSpec>,
) -> Result<(), Refusal> {
    // Both are in name order without duplicates, so one walk finds whatever differs.
    let mut came = tensors.into_iter().peekable();
    for spec in specs {
        let Some(tensor) = came.next_if(|tensor| tensor.name <= spec.name) else {
            return Err(Refusal::MissingTensor(spec.name.clone()));
        };
        let name = || tensor.name.clone();
        if tensor.name != spec.name {
            return Err(Refusal::UnknownTensor(name()));
        }
        if tensor.dtype != spec.dtype {
            let (expected, actual) = (spec.dtype, tensor.dtype);
            return Err(Refusal::Dtype { tensor: name(), expected, actual });
        }
        if tensor.shape != spec.shape {
            let (expected, actual) = (spec.shape.clone(), tensor.shape.clone());
            return Err(Refusal::Shape { tensor: name(), expected, actual });
        }
    }
    match came.next() {
        None => Ok(()),
        Some(tensor) => Err(Refusal::UnknownTensor(tensor.name.clone())),
    }
}

fn check_lineage(
    hop: &Hop,
    trained: &Trained,
    tensors: &[TensorView<'_>],
) -> Result<Lineage, Refusal> {
    let tensor = tensors
        .iter()
        .find(|tensor| tensor.name == LINEAGE)
        .ok_or_else(|| Refusal::MissingTensor(LINEAGE.into()))?;
    let numbers: Vec<i64> = tensor.i64s()?.collect();
    let lineage = Lineage::from_numbers(&numbers)?;
    if lineage.trial != hop.trial {
        return Err(Refusal::Trial { expected: hop.trial, actual: lineage.trial });
    }
    let says = lineage.position;
    // Of several hops, the one that it ended in.
    let mut spans = hop.segments();
    let span = spans.find(|span| {
        let start = span.start;
        (lineage.hop_seed, says.epoch, says.shard) == (span.seed, start.epoch, start.shard)
    });
    let Some(span) = span else {
        return Err(Refusal::Hop { epoch: says.epoch, shard: says.shard });
    };
    let position =
        |what, expected: String, actual| Err(Refusal::Position { what, expected, actual });
    let Some(must) = span.position_at(says.batch) else {
        let (start, batches) = (span.start.batch, span.end.batch);
        let expected = format!("above {start} and at most {batches}");
        return position("checkpoint's batch", expected, u64::from(says.batch));
    };
    if says.step != must.step {
        return position("checkpoint's step", must.step.to_string(), says.step);
    }
    let end = trained.end;
    if (end.epoch, end.shard) != (says.epoch, says.shard) {
        return Err(Refusal::Hop { epoch: end.epoch, shard: end.shard });
    }
    if end.batch != says.batch {
        return position("reported batch", says.batch.to_string(), u64::from(end.batch));
    }
    if end.step != says.step {
        return position("reported step", says.step.to_string(), end.step);
    }
    Ok(lineage)
}

/// All values are finite; means of squares aren't negative either. The tensors are those of the layout.
fn check_values(layout: &CheckpointLayout, tensors: &[TensorView<'_>]) -> Result<(), Refusal> {
    for (tensor, (_, role)) in tensors.iter().zip(layout.roles()) {
        if tensor.dtype != Dtype::F32 {
            continue;
        }
        let bad = tensor.f32s()?.enumerate().find(|(_, value)| !value.is_finite());
        if let Some((index, value)) = bad {
            return Err(Refusal::NonFinite { tensor: tensor.name.clone(), index, value });
        }
        match role {
            Role::Optimizer(Moment::Second) | Role::Buffer(BufferKind::Variance) => {}
            Role::Parameter | Role::Buffer(_) | Role::Optimizer(Moment::First) | Role::Lineage => {
                continue;
            }
        }
        if let Some((index, value)) = tensor.f32s()?.enumerate().find(|(_, value)| *value < 0.0) {
            return Err(Refusal::Negative { tensor: tensor.name.clone(), index, value });
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
