//! The results of a run.

/// A trial that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// From its arrival to its end, in seconds.
    pub completion: f64,
    /// From its arrival until 99 % of the reduction of its loss was made, in seconds.
    pub usable: f64,
}

/// Why a trial went to another host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The trial seemed to have converged, and others on its host still learned.
    Speculative,
    /// All had converged, and another host had fewer.
    Rebalance,
}

/// A trial that went to another host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moved {
    /// In seconds.
    pub at: f64,
    /// Which trial, by its place.
    pub trial: usize,
    /// The host that it left.
    pub from: usize,
    /// The host that it went to.
    pub to: usize,
    /// The reason of the move.
    pub kind: Kind,
}

/// A run of hosts that are shared.
#[derive(Debug, Clone, PartialEq)]
pub struct SharingRun {
    /// The trials, in the order in which they were given.
    pub trials: Vec<Ended>,
    /// When the last has ended, in seconds.
    pub makespan: f64,
    /// The part of their capacity that hosts used which had any trial.
    pub used: f64,
    /// The moves of trials from host to host.
    pub moves: Vec<Moved>,
    /// How many trials each host had, whenever that changed, and when.
    pub residents: Vec<(f64, Vec<usize>)>,
}

impl SharingRun {
    /// Mean time from arrival to end, in seconds.
    #[must_use]
    pub fn mean_completion(&self) -> f64 {
        self.mean(|trial| trial.completion)
    }

    /// Mean time from arrival to a usable model, in seconds.
    #[must_use]
    pub fn mean_usable(&self) -> f64 {
        self.mean(|trial| trial.usable)
    }

    #[expect(clippy::cast_precision_loss, reason = "trials are few")]
    fn mean(&self, of: impl Fn(&Ended) -> f64) -> f64 {
        self.trials.iter().map(of).sum::<f64>() / self.trials.len().max(1) as f64
    }
}
