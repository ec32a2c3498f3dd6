//! One trial in virtual time.

use super::{SharedTrial, host::micros};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::{
    ids::{JobId, TrialId},
    seeds,
};
use sojourn_shares::{Carried, Estimate, TrialKey};
use sojourn_workgen::residency::{Convergence, Look};

/// Work that is left and no work at all differ by rounding.
pub(super) const DONE: f64 = 1e-9;
/// Batches that a trial reports with each sample: many, so that every look counts.
const BATCHES: u32 = 100;

/// Where a trial is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Phase {
    Coming,
    /// On that host.
    Running(usize),
    /// To that host, where it is at that time.
    Moving {
        to: usize,
        until: f64,
        carried: Carried,
    },
    Ended(f64),
}

/// A trial.
pub(super) struct State {
    pub(super) trial: SharedTrial,
    pub(super) key: TrialKey,
    pub(super) phase: Phase,
    /// Seconds of work.
    pub(super) done: f64,
    pub(super) usable: Option<f64>,
    pub(super) convergence: Convergence,
    pub(super) next_look: f64,
    chance: ChaCha8Rng,
    /// Since the last look.
    losses: f64,
    samples: u32,
    done_at_look: f64,
}

impl State {
    pub(super) fn new(trial: &SharedTrial, n: u32, seed: u64) -> Self {
        Self {
            trial: *trial,
            key: (JobId(1), TrialId(n)),
            phase: Phase::Coming,
            done: 0.0,
            usable: None,
            convergence: Convergence::default(),
            next_look: f64::INFINITY,
            chance: seeds::stream("sojourn/fluid-noise", &[seed, n.into()]),
            losses: 0.0,
            samples: 0,
            done_at_look: 0.0,
        }
    }

    /// The host that it is on, or on its way to.
    pub(super) const fn host(&self) -> Option<usize> {
        match self.phase {
            Phase::Running(host) | Phase::Moving { to: host, .. } => Some(host),
            Phase::Coming | Phase::Ended(_) => None,
        }
    }

    pub(super) const fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running(_))
    }

    /// A loss around what the curve says (Box and Muller, 1958).
    pub(super) fn report(&mut self, noise: f64) -> f64 {
        let (a, b) = (1.0 - seeds::unit_f64(&mut self.chance), seeds::unit_f64(&mut self.chance));
        let normal = libm::sqrt(-2.0 * libm::log(a)) * libm::cos(2.0 * std::f64::consts::PI * b);
        let loss = self.trial.curve.loss(self.done / self.trial.work) + noise * normal;
        self.losses += loss;
        self.samples += 1;
        loss
    }

    /// Whether it is time to look at it, and what there is to see: `None` where nothing was reported.
    pub(super) fn look(&mut self) -> Option<Look> {
        let (losses, samples) = (self.losses, self.samples);
        let done = (self.done - self.done_at_look) / self.trial.work;
        (self.losses, self.samples, self.done_at_look) = (0.0, 0, self.done);
        let look = Look {
            loss: losses / f64::from(samples),
            batches: samples.saturating_mul(BATCHES),
            done: Some(done),
        };
        (samples > 0).then_some(look)
    }

    pub(super) fn left(&self) -> f64 {
        (self.trial.work - self.done).max(0.0)
    }

    /// Seconds of work until it is usable or done, whichever comes next.
    pub(super) fn until_next(&self) -> f64 {
        let usable = self.trial.curve.usable() * self.trial.work - self.done;
        if usable > DONE { usable } else { self.left() }
    }

    pub(super) fn advance(&mut self, now: f64, work: f64) {
        self.done += work;
        let usable = self.trial.curve.usable() * self.trial.work;
        if self.usable.is_none() && self.done >= usable - DONE {
            self.usable = Some(now);
        }
    }

    pub(super) fn estimate(&self) -> Estimate {
        Estimate { whole: Some(micros(self.trial.work)), remaining: Some(micros(self.left())) }
    }
}
