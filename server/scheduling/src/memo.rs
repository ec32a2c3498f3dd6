//! Remembers the inputs of a decision, so that it is made again only when they have changed.

/// The inputs of the last decision, if it still holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memo<K> {
    inputs: Option<K>,
}

impl<K> Default for Memo<K> {
    fn default() -> Self {
        Self { inputs: None }
    }
}

impl<K: PartialEq> Memo<K> {
    /// Remembers the inputs. True where they differ from those before, or the decision was invalidated.
    pub fn changed(&mut self, inputs: K) -> bool {
        let changed = self.inputs.as_ref() != Some(&inputs);
        if changed {
            self.inputs = Some(inputs);
        }
        changed
    }

    /// Has the decision made again, whatever the inputs are.
    pub fn invalidate(&mut self) {
        self.inputs = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_other_inputs_or_an_invalidation_count_as_a_change() {
        let mut memo = Memo::default();
        assert!(memo.changed(1), "nothing was decided before");
        assert!(!memo.changed(1));
        assert!(memo.changed(2));
        memo.invalidate();
        assert!(memo.changed(2));
        assert!(!memo.changed(2));
    }
}
