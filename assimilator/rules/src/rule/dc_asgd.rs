//! `dc-asgd`: a late change is corrected for what others have made meanwhile.

use super::MergeRule;
use crate::{arrival::Arrival, overlap::Overlap, pass::Pass, rule::Slot, state::Counters};

/// With `l` for `lambda` and `b` for `decay`, number by number: `v <- b v + (1 - b) D^2`, then
/// `W <- W + D - min(l D^2 / sqrt(v), 1) (W - W_b)`.
///
/// Delay Compensated ASGD with the adaptive `lambda` (Zheng et al., 2017, "Asynchronous Stochastic Gradient Descent with Delay
/// Compensation", equations 10 and 14): the gradient at `W` is taken from that at `W_b` by its Taylor expansion, with the square of the
/// gradient in place of the Hessian's diagonal. With `D` the change that a learning rate `n` makes of a gradient `g`, `n l g^2 / sqrt(v)`
/// is `l D^2 / sqrt(v)` whatever `n` is. The bound of 1 is ours: no more is taken back than others have changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DcAsgd {
    /// `l`.
    pub lambda: f64,
    /// `b`.
    pub decay: f64,
}

impl MergeRule for DcAsgd {
    fn slots(&self) -> &'static [Slot] {
        &[Slot::MeanSquare]
    }

    fn pass(&self, _: &Counters, _: Arrival, _: Overlap) -> Pass {
        Pass::Compensate { gain: 1.0, lambda: self.lambda, decay: self.decay }
    }
}
