//! Loss and hits over the batches of a hop, read from the device as rarely as it pays.

use crate::{
    batch::Batch,
    error::TrainError,
    objective::BatchLoss,
    tally::{hits, predict},
};
use sojourn_protocol::report::Sums;
use tch::{Device, Tensor};

/// Batches between two readings on a device with a queue of work, which a reading waits for.
const QUEUED: usize = 64;

/// Sums over batches.
#[derive(Debug)]
pub(crate) struct BatchSums {
    sums: Sums,
    /// The reported loss over the loss of a batch: see [`crate::targets::loss_unit`].
    loss_unit: f64,
    /// The stages of the batch that has not ended.
    stages: Option<BatchLoss>,
    unread: Vec<Unread>,
    /// Read when so many are unread: at once on a CPU, which has no queue.
    most: usize,
}

/// Which batch of a hop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// The trial's step.
    pub(crate) step: u64,
    /// The batch's number in the shard.
    pub(crate) batch: u32,
}

/// The result of a batch, still on the device.
#[derive(Debug)]
struct Unread {
    place: Place,
    rows: i64,
    mean: Tensor,
    hits: Option<Tensor>,
}

impl BatchSums {
    /// Nothing yet. A batch's loss counts `loss_unit` times.
    pub(crate) fn new(counts_hits: bool, loss_unit: f64, device: Device) -> Self {
        let sums = Sums { correct: counts_hits.then_some(0), ..Sums::default() };
        let most = if device == Device::Cpu { 1 } else { QUEUED };
        Self { sums, loss_unit, stages: None, unread: Vec::with_capacity(most), most }
    }

    /// Takes the loss of one stage of a batch; those of several are added up.
    pub(crate) fn add_stage(&mut self, loss: BatchLoss) -> Result<(), TrainError> {
        let BatchLoss { mean, outputs } = loss;
        // Not the graph behind it, which would keep the batch in memory.
        let mean = mean.f_detach()?;
        let mean = match self.stages.take() {
            None => mean,
            Some(before) => before.mean.f_add(&mean)?,
        };
        self.stages = Some(BatchLoss { mean, outputs });
        Ok(())
    }

    /// Ends a batch, whose stages have been added. An error may be that of a batch before.
    pub(crate) fn add(&mut self, place: Place, batch: &Batch) -> Result<(), TrainError> {
        let text = "a batch has no loss";
        let stages = self.stages.take().ok_or_else(|| TrainError::Unit(text.into()))?;
        let BatchLoss { mean, outputs } = stages;
        let hits = match (self.sums.correct, outputs) {
            (Some(_), Some(outputs)) => {
                let y = batch.y()?;
                Some(tch::no_grad(|| hits(&predict(&outputs)?, y))?)
            }
            _ => None,
        };
        self.unread.push(Unread { place, rows: batch.rows(), mean, hits });
        if self.unread.len() >= self.most { self.read() } else { Ok(()) }
    }

    /// The sums of all batches so far.
    pub(crate) fn so_far(&mut self) -> Result<Sums, TrainError> {
        self.read()?;
        Ok(self.sums.clone())
    }

    fn read(&mut self) -> Result<(), TrainError> {
        for Unread { place: Place { step, batch }, rows, mean, hits } in self.unread.drain(..) {
            let mean = mean.f_double_value(&[])?;
            if !mean.is_finite() {
                let text =
                    format!("the loss of step {step} (batch {batch} of the shard) is {mean}");
                return Err(TrainError::NonFinite(text));
            }
            self.sums.rows += u64::try_from(rows)?;
            #[expect(clippy::cast_precision_loss, reason = "a batch has fewer than 2^53 rows")]
            let weight = rows as f64;
            self.sums.loss += mean * weight * self.loss_unit;
            if let (Some(correct), Some(hits)) = (&mut self.sums.correct, hits) {
                *correct += u64::try_from(hits.f_int64_value(&[])?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Y;

    fn labelled(y: &Tensor) -> Batch {
        Batch::new([Y.to_owned()].into(), vec![y.shallow_clone()], y.size1().unwrap())
    }

    #[test]
    fn sums_do_not_depend_on_when_they_are_read() {
        let outputs = Tensor::from_slice2(&[[1.0f32, 2.0], [4.0, 3.0]]);
        let y = Tensor::from_slice(&[1i64, 1]);
        let sums = |most| {
            let mut sums = BatchSums { most, ..BatchSums::new(true, 1.0, Device::Cpu) };
            for (step, mean) in (0u64..).zip([0.25f64, 0.5, 1.5]) {
                let place = Place { step, batch: 0 };
                let outputs = Some(outputs.shallow_clone());
                sums.add_stage(BatchLoss { mean: Tensor::from(mean), outputs }).unwrap();
                sums.add(place, &labelled(&y)).unwrap();
            }
            sums.so_far().unwrap()
        };
        let expected = Sums { rows: 6, loss: 4.5, correct: Some(3), ..Sums::default() };
        for most in [1, 2, QUEUED] {
            assert_eq!(sums(most), expected);
        }
    }

    #[test]
    fn the_first_batch_that_is_not_finite_is_named() {
        let y = Tensor::from_slice(&[1.0f32]);
        let mut sums = BatchSums { most: QUEUED, ..BatchSums::new(false, 1.0, Device::Cpu) };
        for (step, mean) in [(7, 1.0), (8, f64::NAN), (9, f64::INFINITY)] {
            sums.add_stage(BatchLoss { mean: Tensor::from(mean), outputs: None }).unwrap();
            sums.add(Place { step, batch: 3 }, &labelled(&y)).unwrap();
        }
        let error = sums.so_far().unwrap_err().to_string();
        assert_eq!(error, "the loss of step 8 (batch 3 of the shard) is NaN");
    }
}
