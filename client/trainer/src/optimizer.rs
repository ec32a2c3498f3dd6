//! The update rules of PyTorch 2.11's `SGD`, `Adam` and `AdamW`, over flat tensors.
//!
//! Written in plain operations because `tch` exposes no optimiser's state, and the state hops with
//! the parameters. The state's tensors are those of `sojourn_model::optimizer_slots`, in its order.

use crate::{error::TrainError, model::Model, moves::Part};
use sojourn_protocol::spec::{DecayScope, Optimizer, OptimizerName};
use tch::{Kind, Tensor};

/// An optimiser for models of one size.
#[derive(Debug)]
pub(crate) struct Update {
    optimizer: Optimizer,
    clip_norm: Option<f64>,
    /// As large as the weights; its content never outlives a step.
    scratch: Tensor,
    decay: Decay,
    /// `-lr` as a number that `addcmul_` takes.
    rate: Tensor,
}

/// How `weight_decay` acts on the weights.
#[derive(Debug)]
enum Decay {
    None,
    /// L2: the decay of all weights, as a number that `addcmul_` takes.
    Penalty(Tensor),
    /// L2: the decay of each weight, 0 beside matrices.
    PenaltyEach(Tensor),
    /// AdamW: this decay of all weights.
    Decoupled(f64),
    /// AdamW: this decay of the weights of matrices, and for each weight whether it is one of these.
    DecoupledMatrices(f64, Tensor),
}

impl Update {
    /// The optimiser of a trial, with what it needs for each step allocated once.
    pub(crate) fn new(
        optimizer: Optimizer,
        clip_norm: Option<f64>,
        model: &Model,
    ) -> Result<Self, TrainError> {
        let Optimizer { lr, momentum, beta1, beta2, eps, weight_decay, .. } = optimizer;
        for (name, value, good) in [
            ("lr", lr, lr > 0.0),
            ("momentum", momentum, (0.0..1.0).contains(&momentum)),
            ("beta1", beta1, (0.0..1.0).contains(&beta1)),
            ("beta2", beta2, (0.0..1.0).contains(&beta2)),
            ("eps", eps, eps > 0.0),
            ("weight_decay", weight_decay, weight_decay >= 0.0),
            ("clip_norm", clip_norm.unwrap_or(1.0), clip_norm.is_none_or(|norm| norm > 0.0)),
        ] {
            if !good || !value.is_finite() {
                return Err(TrainError::Unit(format!("`{name}` can't be {value}")));
            }
        }
        let place = (Kind::Float, model.weights.device());
        let number = |value: f64| Tensor::f_full([0i64; 0], value, place);
        Ok(Self {
            optimizer,
            clip_norm,
            scratch: model.weights.f_zeros_like()?,
            decay: Decay::of(&optimizer, model)?,
            rate: number(0.0)?,
        })
    }

    /// Moves what a stage of a step moves along the gradient, which is used up. `step` counts from 1 over the
    /// whole trial; `factor` is the schedule's.
    pub(crate) fn step(
        &mut self,
        model: &mut Model,
        stage: usize,
        step: u64,
        factor: f64,
    ) -> Result<(), TrainError> {
        if let Some(limit) = self.clip_norm {
            clip(&mut model.gradient, limit)?;
        }
        let lr = self.optimizer.lr * factor;
        let moves = model.stages.get_mut(stage).into_iter();
        for part in moves.flat_map(|moves| &mut moves.parts) {
            self.decay.apply(part, lr, &self.scratch)?;
            match self.optimizer.name {
                OptimizerName::Sgd => self.sgd(part, lr)?,
                OptimizerName::Adam | OptimizerName::Adamw => self.adam(part, step, lr)?,
            }
        }
        Ok(())
    }

    /// `b = momentum b + g; w -= lr b`. A buffer of zeros gives the first step's `b = g`.
    fn sgd(&mut self, part: &mut Part, lr: f64) -> Result<(), TrainError> {
        let Part { weights, gradient, state, .. } = part;
        let _ = self.rate.f_fill_(-lr)?;
        match state.as_mut_slice() {
            [buffer] => {
                let _ = buffer.f_mul_scalar_(self.optimizer.momentum)?.f_add_(gradient)?;
                let _ = weights.f_addcmul_(buffer, &self.rate)?;
            }
            _ => {
                let _ = weights.f_addcmul_(gradient, &self.rate)?;
            }
        }
        Ok(())
    }

    /// With `c1 = 1 - beta1^t`, `c2 = 1 - beta2^t`: `m = lerp(m, g, 1 - beta1)`,
    /// `v = lerp(v, g^2, 1 - beta2)`, `w -= lr / c1 * m / (sqrt(v) / sqrt(c2) + eps)`. The factors
    /// of the last are drawn into the denominator, which saves a pass over memory.
    fn adam(&mut self, part: &mut Part, step: u64, lr: f64) -> Result<(), TrainError> {
        let Optimizer { beta1, beta2, eps, .. } = self.optimizer;
        let Part { weights, gradient, state, .. } = part;
        let [first, second] = state.as_mut_slice() else {
            return Err(TrainError::Unit("the checkpoint has no state for `adam`".into()));
        };
        let _ = first.f_lerp_(gradient, 1.0 - beta1)?;
        let mut scratch = self.scratch.f_narrow(0, 0, weights.size1()?)?;
        let _ = gradient.f_square_out(&scratch)?;
        let _ = second.f_lerp_(&scratch, 1.0 - beta2)?;

        #[expect(clippy::cast_precision_loss, reason = "steps are far below 2^53")]
        let count = step as f64;
        let correction1 = 1.0 - libm::pow(beta1, count);
        let correction2 = 1.0 - libm::pow(beta2, count);
        let scale = -correction1 / (lr * libm::sqrt(correction2));
        if scale.abs() > f64::from(f32::MAX) {
            return Ok(()); // a rate this small, or 0 at a schedule's end, moves no weight
        }
        let _ = second.f_sqrt_out(&scratch)?;
        let _ = scratch.f_mul_scalar_(scale)?.f_add_scalar_(-eps * correction1 / lr)?;
        let _ = weights.f_addcdiv_(first, &scratch)?;
        Ok(())
    }
}

impl Decay {
    fn of(optimizer: &Optimizer, model: &Model) -> Result<Self, TrainError> {
        let Optimizer { name, weight_decay, decay, .. } = *optimizer;
        if weight_decay == 0.0 {
            return Ok(Self::None);
        }
        Ok(match (name, decay) {
            (OptimizerName::Sgd | OptimizerName::Adam, DecayScope::All) => {
                let place = (Kind::Float, model.weights.device());
                Self::Penalty(Tensor::f_full([0i64; 0], weight_decay, place)?)
            }
            (OptimizerName::Sgd | OptimizerName::Adam, DecayScope::Matrices) => {
                let mut decays = model.matrices()?.f_to_kind(Kind::Float)?;
                Self::PenaltyEach(decays.f_mul_scalar_(weight_decay)?)
            }
            (OptimizerName::Adamw, DecayScope::All) => Self::Decoupled(weight_decay),
            (OptimizerName::Adamw, DecayScope::Matrices) => {
                Self::DecoupledMatrices(weight_decay, model.matrices()?)
            }
        })
    }

    /// L2: `g += wd w`; decoupled: `w *= 1 - lr wd`. The content of `scratch`, as large as all weights, is lost.
    fn apply(&self, part: &mut Part, lr: f64, scratch: &Tensor) -> Result<(), TrainError> {
        let Part { start, weights, gradient, .. } = part;
        let len = weights.size1()?;
        match self {
            Self::None => {}
            Self::Penalty(decay) => {
                let _ = gradient.f_addcmul_(weights, decay)?;
            }
            Self::PenaltyEach(decays) => {
                let _ = gradient.f_addcmul_(weights, &decays.f_narrow(0, *start, len)?)?;
            }
            Self::Decoupled(decay) => {
                let _ = weights.f_mul_scalar_(1.0 - lr * decay)?;
            }
            Self::DecoupledMatrices(decay, matrices) => {
                let mut factors = scratch.f_narrow(0, 0, len)?.f_fill_(1.0)?;
                let matrices = matrices.f_narrow(0, *start, len)?;
                let _ = weights.f_mul_(&factors.f_masked_fill_(&matrices, 1.0 - lr * decay)?)?;
            }
        }
        Ok(())
    }
}

/// As `torch.nn.utils.clip_grad_norm_`: times `min(1, limit / (norm + 1e-6))`.
fn clip(gradient: &mut Tensor, limit: f64) -> Result<(), TrainError> {
    let mut norm = gradient.f_norm()?;
    let mut coefficient = norm.f_add_scalar_(1e-6)?.f_reciprocal_()?.f_mul_scalar_(limit)?;
    let _ = gradient.f_mul_(&coefficient.f_clamp_max_(1.0)?)?;
    Ok(())
}

#[cfg(test)]
#[path = "optimizer_tests.rs"]
mod tests;
