//! The lineage of a checkpoint: its trial and its position.

use crate::error::ModelError;
use sojourn_protocol::{
    ids::{Epoch, ShardId, TrialId},
    position::Position,
};

/// The trial, the hop and the position of a checkpoint; kept inside it as the tensor `lineage`, so
/// that a checkpoint taken for another is found out by its own bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lineage {
    /// Seed of the hop that made it; of the initial weights where none did.
    pub hop_seed: u64,
    /// The trial.
    pub trial: TrialId,
    /// Where it stands.
    pub position: Position,
}

impl Lineage {
    /// Numbers in the tensor.
    pub const LENGTH: u64 = 6;

    /// The lineage of version 0, made from `seed`: everything else is 0.
    #[must_use]
    pub const fn initial(seed: u64) -> Self {
        let position = Position { epoch: Epoch(0), shard: ShardId(0), batch: 0, step: 0 };
        Self { hop_seed: seed, trial: TrialId(0), position }
    }

    /// The tensor's numbers: hop seed (its bits), trial, epoch, shard, batch, step (its bits).
    #[must_use]
    pub const fn to_numbers(&self) -> [i64; 6] {
        let Position { epoch, shard, batch, step } = self.position;
        [
            self.hop_seed.cast_signed(),
            widen(self.trial.0),
            widen(epoch.0),
            widen(shard.0),
            widen(batch),
            step.cast_signed(),
        ]
    }

    /// The lineage that a tensor's numbers say.
    ///
    /// # Errors
    /// [`ModelError::Lineage`] for another count, or a number that doesn't fit its meaning.
    pub fn from_numbers(numbers: &[i64]) -> Result<Self, ModelError> {
        let &[hop_seed, trial, epoch, shard, batch, step] = numbers else {
            let text = format!("has {} numbers, not {}", numbers.len(), Self::LENGTH);
            return Err(ModelError::Lineage(text));
        };
        let narrow = |name: &str, number: i64| {
            u32::try_from(number)
                .map_err(|_| ModelError::Lineage(format!("says {name} {number}, out of range")))
        };
        Ok(Self {
            hop_seed: hop_seed.cast_unsigned(),
            trial: TrialId(narrow("trial", trial)?),
            position: Position {
                epoch: Epoch(narrow("epoch", epoch)?),
                shard: ShardId(narrow("shard", shard)?),
                batch: narrow("batch", batch)?,
                step: step.cast_unsigned(),
            },
        })
    }
}

// A cast, because `From` can't be called in a `const fn`.
const fn widen(number: u32) -> i64 {
    number as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_round_trip(hop_seed: u64, trial: u32, epoch: u32, shard: u32, batch: u32, step: u64) {
            let position = Position { epoch: Epoch(epoch), shard: ShardId(shard), batch, step };
            let lineage = Lineage { hop_seed, trial: TrialId(trial), position };
            prop_assert_eq!(Lineage::from_numbers(&lineage.to_numbers()), Ok(lineage));
        }
    }

    #[test]
    fn bad_numbers_are_refused() {
        assert!(Lineage::from_numbers(&[0; 5]).is_err());
        let error = Lineage::from_numbers(&[0, -1, 0, 0, 0, 0]).unwrap_err();
        assert_eq!(error.to_string(), "the lineage says trial -1, out of range");
        assert_eq!(Lineage::initial(u64::MAX).to_numbers(), [-1, 0, 0, 0, 0, 0]);
    }
}
