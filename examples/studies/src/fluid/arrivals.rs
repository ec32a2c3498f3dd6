//! Trials that come by chance.

use super::{Curve, SharedTrial};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::seeds;

/// How much work trials have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Work {
    /// All the same, in seconds.
    Same(f64),
    /// Evenly between these, in seconds.
    Uniform(f64, f64),
    /// Heavy-tailed: a Pareto distribution with this least and exponent, cut at this most, in seconds.
    Pareto {
        /// No trial takes less.
        least: f64,
        /// Below 2 most of the work is in few trials.
        exponent: f64,
        /// No trial takes more.
        most: f64,
    },
}

/// Trials that come within a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrivals {
    /// How many.
    pub trials: u32,
    /// Within so many seconds, evenly by chance; or one every so many.
    pub within: Option<f64>,
    /// Seconds between two, where `within` says nothing.
    pub every: f64,
    /// How much they have to do.
    pub work: Work,
    /// Each has one of these, by chance.
    pub curves: Vec<Curve>,
}

impl Arrivals {
    /// The trials of a seed, by arrival.
    #[must_use]
    pub fn draw(&self, seed: u64) -> Vec<SharedTrial> {
        let mut chance = seeds::stream("sojourn/fluid-arrivals", &[seed]);
        let mut trials: Vec<SharedTrial> = (0..self.trials)
            .map(|n| {
                let arrival = match self.within {
                    Some(within) => within * seeds::unit_f64(&mut chance),
                    None => self.every * f64::from(n),
                };
                let work = self.work.draw(&mut chance);
                let kinds = u32::try_from(self.curves.len()).unwrap_or(u32::MAX).max(1);
                let kind = usize::try_from(seeds::below(&mut chance, kinds)).unwrap_or(0);
                let curve = self.curves.get(kind).copied().unwrap_or(Curve::VAE);
                SharedTrial { arrival, work, curve }
            })
            .collect();
        trials.sort_by(|a, b| a.arrival.total_cmp(&b.arrival));
        trials
    }
}

impl Work {
    fn draw(self, chance: &mut ChaCha8Rng) -> f64 {
        match self {
            Self::Same(work) => work,
            Self::Uniform(least, most) => least + (most - least) * seeds::unit_f64(chance),
            Self::Pareto { least, exponent, most } => {
                let tail = 1.0 - seeds::unit_f64(chance);
                (least / libm::pow(tail, 1.0 / exponent)).min(most)
            }
        }
    }
}
