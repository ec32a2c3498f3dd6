//! How a returned checkpoint changes its trial's: merge rules over slices of numbers.

/// What a rule may know of a returned checkpoint besides its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Versions that the trial has made since the one that training started from.
    pub staleness: u32,
    /// The epoch of the unit.
    pub epoch: u32,
    /// Units of the trial that were out when this one came, itself included.
    pub in_flight: u32,
}

/// Why a rule can't take a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// The slices aren't of one model.
    #[error("tensors of {current}, {base} and {returned} numbers can't be merged")]
    Length {
        /// Of the current version.
        current: usize,
        /// Of the base.
        base: usize,
        /// Of what came back.
        returned: usize,
    },
    /// The rule takes no late results.
    #[error(
        "rule `{rule}` takes only what was trained from the current version, this is {staleness} versions late"
    )]
    Stale {
        /// The rule.
        rule: &'static str,
        /// How late it is.
        staleness: u32,
    },
}

/// A rule: a function of (current W, base W_b, returned W_c, arrival), one tensor at a time.
///
/// Pure: the same numbers give the same numbers on any machine, because the order of merges is
/// replayed from the journal.
pub trait MergeRule {
    /// The word that job files use.
    fn name(&self) -> &'static str;

    /// Changes `current` by what came back.
    ///
    /// # Errors
    /// [`MergeError::Length`] where the slices differ in length, [`MergeError::Stale`] where the rule
    /// takes no result this late; `current` is then as it was.
    fn merge(
        &self,
        current: &mut [f32],
        base: &[f32],
        returned: &[f32],
        arrival: Arrival,
    ) -> Result<(), MergeError>;
}

/// `W <- W_c`: hop order. Takes only what was trained from the current version (invariant H2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replace;

impl MergeRule for Replace {
    fn name(&self) -> &'static str {
        "replace"
    }

    fn merge(
        &self,
        current: &mut [f32],
        base: &[f32],
        returned: &[f32],
        arrival: Arrival,
    ) -> Result<(), MergeError> {
        if current.len() != base.len() || current.len() != returned.len() {
            let (current, base, returned) = (current.len(), base.len(), returned.len());
            return Err(MergeError::Length { current, base, returned });
        }
        if arrival.staleness != 0 {
            return Err(MergeError::Stale { rule: self.name(), staleness: arrival.staleness });
        }
        current.copy_from_slice(returned);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: Arrival = Arrival { staleness: 0, epoch: 0, in_flight: 1 };

    #[test]
    fn replace_takes_what_came_back() {
        let mut current = [1.0, 2.0];
        Replace.merge(&mut current, &[1.0, 2.0], &[-0.0, 4.0], FRESH).unwrap();
        assert_eq!(current.map(f32::to_bits), [-0.0f32, 4.0].map(f32::to_bits));
    }

    #[test]
    fn what_cannot_be_merged_changes_nothing() {
        let mut current = [1.0, 2.0];
        let late = Arrival { staleness: 1, ..FRESH };
        let error = Replace.merge(&mut current, &[1.0, 2.0], &[3.0, 4.0], late);
        assert_eq!(error, Err(MergeError::Stale { rule: "replace", staleness: 1 }));
        let error = Replace.merge(&mut current, &[1.0, 2.0], &[3.0], FRESH);
        assert_eq!(error, Err(MergeError::Length { current: 2, base: 2, returned: 1 }));
        assert_eq!(current, [1.0, 2.0]);
    }
}
