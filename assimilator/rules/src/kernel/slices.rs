//! A pass over the numbers of one tensor.

use super::{
    BLOCK, cut, cut_mut,
    element::Element,
    loops,
    loops::{Compensation, Scalars},
};
use crate::pass::{Pass, Step};
use rayon::prelude::*;

/// The numbers that a pass reads and writes, place by place: a model's as `E`, a rule's as `S`.
#[derive(Debug)]
pub struct Slices<'a, E, S> {
    /// `W`; afterwards the next version's.
    pub current: &'a mut [E],
    /// `W_b`; empty for what is blended without being clipped.
    pub base: &'a [E],
    /// `W_c`.
    pub returned: &'a [E],
    /// `sum`; empty where the rule keeps none.
    pub sum: &'a mut [S],
    /// `m`; empty where the rule keeps none.
    pub momentum: &'a mut [S],
    /// `v`; empty where the rule keeps none.
    pub mean_square: &'a mut [S],
}

/// Slices that don't fit each other, or not the pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the slice of {what} has {actual} numbers, the model has {expected}")]
pub struct Lengths {
    /// Of what.
    pub what: &'static str,
    /// The model's.
    pub expected: usize,
    /// The number that it has.
    pub actual: usize,
}

impl<E: Element, S: Element> Slices<'_, E, S> {
    /// The first numbers, and the others.
    pub(crate) fn split_at(self, at: usize) -> (Self, Self) {
        let Self { current, base, returned, sum, momentum, mean_square } = self;
        let (current, later_current) = cut_mut(current, at);
        let (base, later_base) = cut(base, at);
        let (returned, later_returned) = cut(returned, at);
        let (sum, later_sum) = cut_mut(sum, at);
        let (momentum, later_momentum) = cut_mut(momentum, at);
        let (mean_square, later_mean_square) = cut_mut(mean_square, at);
        let later = Self {
            current: later_current,
            base: later_base,
            returned: later_returned,
            sum: later_sum,
            momentum: later_momentum,
            mean_square: later_mean_square,
        };
        (Self { current, base, returned, sum, momentum, mean_square }, later)
    }

    fn blocks(mut self) -> Vec<Self> {
        let mut blocks = Vec::with_capacity(self.current.len().div_ceil(BLOCK));
        while self.current.len() > BLOCK {
            let (block, later) = self.split_at(BLOCK);
            blocks.push(block);
            self = later;
        }
        blocks.push(self);
        blocks
    }

    fn check(&self, pass: &Pass) -> Result<(), Lengths> {
        let expected = self.current.len();
        let want = |what, actual, needed: bool| {
            if needed && actual != expected {
                return Err(Lengths { what, expected, actual });
            }
            Ok(())
        };
        let blends = matches!(pass, Pass::Blend { scale: 1.0, .. });
        let keeps = matches!(
            pass,
            Pass::Gather { .. } | Pass::GatherAndAdd { .. } | Pass::GatherAndStep { .. }
        );
        let step = match pass {
            Pass::GatherAndStep { step, .. } => step.momentum,
            _ => None,
        };
        want("the base", self.base.len(), !blends)?;
        want("the returned model", self.returned.len(), true)?;
        want("the sum", self.sum.len(), keeps)?;
        want("the momentum", self.momentum.len(), step.is_some())?;
        let compensates = matches!(pass, Pass::Compensate { .. });
        want("the mean square", self.mean_square.len(), compensates)
    }
}

impl Pass {
    /// Makes the pass, its blocks side by side on the threads of rayon's pool.
    ///
    /// # Errors
    /// [`Lengths`] where slices that the pass needs aren't as long as the model's; nothing is changed then.
    pub fn apply<E: Element, S: Element>(&self, slices: Slices<'_, E, S>) -> Result<(), Lengths> {
        slices.check(self)?;
        slices.blocks().into_par_iter().for_each(|block| self.run(block));
        Ok(())
    }

    /// Makes the pass over one block, whose slices are as long as they have to be.
    pub(crate) fn run<E: Element, S: Element>(&self, block: Slices<'_, E, S>) {
        let Slices { current, base, returned, sum, momentum, mean_square } = block;
        match *self {
            Self::Blend { take: 0.0, .. } => {}
            Self::Blend { take: 1.0, scale: 1.0 } => loops::copy(current, returned),
            Self::Blend { take, scale } => {
                let (keep, take) = (single(1.0 - take), single(take));
                if scale >= 1.0 {
                    loops::blend(current, returned, keep, take);
                } else {
                    loops::blend_scaled(current, base, returned, keep, take, single(scale));
                }
            }
            Self::Add { gain } => loops::add(current, base, returned, single(gain)),
            Self::AddNew { gain, back } => {
                loops::add_new(current, base, returned, single(gain), single(back));
            }
            Self::Compensate { gain, lambda, decay } => {
                let by = Compensation {
                    gain: single(gain),
                    lambda: single(lambda),
                    decay: single(decay),
                    fresh: single(1.0 - decay),
                };
                loops::compensate(current, mean_square, base, returned, by);
            }
            Self::Gather { weight } => loops::gather(sum, base, returned, single(weight)),
            Self::GatherAndAdd { weight, gain } => {
                let (weight, gain) = (single(weight), single(gain));
                loops::gather_and_add(current, sum, base, returned, weight, gain);
            }
            Self::GatherAndStep { weight, gain, step } => {
                let by = scalars(weight, gain, step);
                if step.momentum.is_some() {
                    loops::gather_and_step_with_momentum(
                        current, sum, momentum, base, returned, by,
                    );
                } else {
                    loops::gather_and_step(current, sum, base, returned, by);
                }
            }
        }
    }
}

fn scalars(weight: f64, gain: f64, step: Step) -> Scalars {
    let (decay, lead) = step.momentum.map_or((0.0, 0.0), |by| (by.decay, by.lead));
    Scalars {
        weight: single(weight),
        gain: single(gain),
        share: single(step.share),
        rate: single(step.rate),
        decay: single(decay),
        lead: single(lead),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rounded once, to what the loops compute in")]
const fn single(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_that_do_not_fit_are_refused() {
        let step = Step { share: 1.0, rate: 1.0, momentum: None };
        let refused = |pass: Pass, base: &[f32], returned: &[f32], sum: &mut [f32]| {
            let mut current = [1.0; 3];
            let slices = Slices {
                current: &mut current,
                base,
                returned,
                sum,
                momentum: &mut [],
                mean_square: &mut [],
            };
            let error = pass.apply(slices).unwrap_err().what;
            assert_eq!(current, [1.0; 3]);
            error
        };
        let three = [0.0; 3];
        let add = Pass::Add { gain: 1.0 };
        assert_eq!(refused(add, &three[..2], &three, &mut []), "the base");
        assert_eq!(refused(add, &three, &[], &mut []), "the returned model");
        assert_eq!(refused(Pass::Gather { weight: 1.0 }, &three, &three, &mut []), "the sum");
        let stepping = |step| Pass::GatherAndStep { weight: 1.0, gain: 1.0, step };
        assert_eq!(refused(stepping(step), &three, &three, &mut [0.0; 4]), "the sum");
        let momentum = Some(crate::pass::Momentum { decay: 0.9, lead: 0.9 });
        let pass = stepping(Step { momentum, ..step });
        assert_eq!(refused(pass, &three, &three, &mut [0.0; 3]), "the momentum");
        let late = Pass::Compensate { gain: 1.0, lambda: 2.0, decay: 0.9 };
        assert_eq!(refused(late, &three, &three, &mut [0.0; 3]), "the mean square");
        let clipped = Pass::Blend { take: 0.5, scale: 0.5 };
        assert_eq!(refused(clipped, &[], &three, &mut []), "the base");
    }
}
