//! Counts of an evaluation beside the loss: hits among the largest outputs, and rows by class.

use crate::{arrays::ArrayTally, error::TrainError};
use sojourn_protocol::{
    metrics::{ByClass, ClassDetail, ClassTotals, Confusion},
    spec::Loss,
};
use tch::{Device, Kind, Tensor};

/// Is a class predicted, by the largest output?
pub(crate) fn predicts_classes(loss: Loss) -> bool {
    matches!(loss, Loss::CrossEntropy)
}

/// The class of each row's largest output, the first of equal ones.
pub(crate) fn predict(outputs: &Tensor) -> Result<Tensor, TrainError> {
    Ok(outputs.f_argmax(-1, false)?)
}

/// How many rows' labels were predicted: a number that is still on the device.
pub(crate) fn hits(predicted: &Tensor, y: &Tensor) -> Result<Tensor, TrainError> {
    Ok(predicted.f_eq_tensor(y)?.f_count_nonzero(None)?)
}

/// Rows whose label was predicted.
pub(crate) fn count_hits(predicted: &Tensor, y: &Tensor) -> Result<u64, TrainError> {
    Ok(u64::try_from(hits(predicted, y)?.f_int64_value(&[])?)?)
}

/// Rows whose label is among the `k` largest outputs, the first of equal ones first: so a model whose
/// outputs are all the same gets no more than k classes right, and k = 1 is accuracy.
pub(crate) fn count_top_k(outputs: &Tensor, y: &Tensor, k: u32) -> Result<u64, TrainError> {
    let (_, classes) = outputs.size2()?;
    let labels = y.f_unsqueeze(1)?;
    let own = outputs.f_gather(1, &labels, false)?;
    let classes = Tensor::f_arange(classes, (Kind::Int64, outputs.device()))?;
    let tied = outputs.f_eq_tensor(&own)?.f_logical_and(&classes.f_lt_tensor(&labels)?)?;
    let before = outputs.f_gt_tensor(&own)?.f_logical_or(&tied)?;
    let rank = before.f_sum_dim_intlist([1i64].as_slice(), false, Kind::Int64)?;
    Ok(u64::try_from(rank.f_lt(i64::from(k))?.f_count_nonzero(None)?.f_int64_value(&[])?)?)
}

/// The counts over all shards of an evaluation, beside the sums of each.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) by_class: ClassTally,
    pub(crate) arrays: ArrayTally,
}

/// Rows by class, added up chunk by chunk.
#[derive(Debug)]
pub(crate) struct ClassTally {
    classes: i64,
    counts: Counts,
}

/// 64-bit counts on the CPU.
#[derive(Debug)]
enum Counts {
    Nothing,
    /// `[classes]` each.
    Totals {
        labelled: Tensor,
        predicted: Tensor,
        correct: Tensor,
    },
    /// `[classes * classes]`, a line for each class of labels.
    Confusion(Tensor),
}

impl ClassTally {
    /// Nothing counted yet.
    pub(crate) fn new(detail: ClassDetail, classes: u32) -> Result<Self, TrainError> {
        let classes = i64::from(classes);
        let zeros = |size: i64| Tensor::f_zeros([size], (Kind::Int64, Device::Cpu));
        let counts = match detail {
            ClassDetail::Nothing => Counts::Nothing,
            ClassDetail::Totals => Counts::Totals {
                labelled: zeros(classes)?,
                predicted: zeros(classes)?,
                correct: zeros(classes)?,
            },
            ClassDetail::Confusion => Counts::Confusion(zeros(classes.saturating_mul(classes))?),
        };
        Ok(Self { classes, counts })
    }

    /// Counts rows with labels `y` that were taken for `predicted`, both `[rows]` class indices.
    pub(crate) fn take(&mut self, predicted: &Tensor, y: &Tensor) -> Result<(), TrainError> {
        if matches!(self.counts, Counts::Nothing) {
            return Ok(());
        }
        let classes = self.classes;
        let (best, y) = (predicted.f_to_device(Device::Cpu)?, y.f_to_device(Device::Cpu)?);
        let add = |to: &mut Tensor, of: &Tensor, size: i64| -> Result<(), TrainError> {
            let _ = to.f_add_(&of.f_bincount(None::<&Tensor>, size)?)?;
            Ok(())
        };
        match &mut self.counts {
            Counts::Nothing => Ok(()),
            Counts::Totals { labelled, predicted, correct } => {
                add(labelled, &y, classes)?;
                add(predicted, &best, classes)?;
                add(correct, &y.f_masked_select(&best.f_eq_tensor(&y)?)?, classes)
            }
            Counts::Confusion(matrix) => {
                let pairs = y.f_mul_scalar(classes)?.f_add(&best)?;
                add(matrix, &pairs, classes.saturating_mul(classes))
            }
        }
    }

    /// The counts.
    pub(crate) fn finish(self) -> Result<Option<ByClass>, TrainError> {
        Ok(match &self.counts {
            Counts::Nothing => None,
            Counts::Totals { labelled, predicted, correct } => Some(ByClass::Totals(ClassTotals {
                labelled: numbers(labelled)?,
                predicted: numbers(predicted)?,
                correct: numbers(correct)?,
            })),
            Counts::Confusion(matrix) => {
                let line = usize::try_from(self.classes)?.max(1);
                let lines = numbers(matrix)?;
                let lines = lines.chunks_exact(line).map(<[u64]>::to_vec).collect();
                Some(ByClass::Confusion(Confusion(lines)))
            }
        })
    }
}

fn numbers(counts: &Tensor) -> Result<Vec<u64>, TrainError> {
    let counts = Vec::<i64>::try_from(counts)?;
    Ok(counts.into_iter().map(u64::try_from).collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(rows: &[&[f32]]) -> Tensor {
        let columns = i64::try_from(rows[0].len()).unwrap();
        Tensor::from_slice(&rows.concat()).view([-1, columns])
    }

    #[test]
    fn the_label_is_among_the_k_largest() {
        let outputs = outputs(&[
            &[0.1, 0.7, 0.2, 0.0],
            &[0.9, 0.5, 0.6, 0.7],
            // All the same: the first are the largest.
            &[0.5, 0.5, 0.5, 0.5],
            &[0.5, 0.5, 0.5, 0.5],
        ]);
        let y = Tensor::from_slice(&[1i64, 2, 1, 3]);
        let hits = [1, 2, 3, 4].map(|k| count_top_k(&outputs, &y, k).unwrap());
        assert_eq!(hits, [1, 2, 3, 4]);
        let best = Vec::<i64>::try_from(predict(&outputs).unwrap()).unwrap();
        assert_eq!(best, [1, 0, 0, 0], "k = 1 is accuracy");
    }

    #[test]
    fn rows_are_counted_by_label_and_prediction_over_chunks() {
        let chunks = [([0i64, 1, 2], [0i64, 2, 2]), ([1, 1, 0], [1, 2, 0])];
        let count = |detail| {
            let mut tally = ClassTally::new(detail, 3).unwrap();
            for (y, best) in &chunks {
                tally.take(&Tensor::from_slice(best), &Tensor::from_slice(y)).unwrap();
            }
            tally.finish().unwrap()
        };
        let matrix = Confusion(vec![vec![2, 0, 0], vec![0, 1, 2], vec![0, 0, 1]]);
        assert_eq!(count(ClassDetail::Totals), Some(ByClass::Totals(matrix.totals())));
        assert_eq!(count(ClassDetail::Confusion), Some(ByClass::Confusion(matrix)));
        assert_eq!(count(ClassDetail::Nothing), None);
    }
}
