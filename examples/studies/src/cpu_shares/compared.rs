//! Runs beside a base with the same seeds.

use serde::Serialize;
use sojourn_studies::fluid::{Ended, SharedTrial, SharingRun};

/// A policy beside the base, over seeds. Changes are in percent of the base: below 0 is less time.
#[derive(Debug, Serialize)]
pub(super) struct Compared {
    /// Means over the seeds, with the standard deviation.
    completion: Spread,
    usable: Spread,
    makespan: Spread,
    /// Trials that end earlier and later by more than a hundredth, of all.
    better: f64,
    worse: f64,
    /// The trial that gains most and the one that loses most, means over the seeds.
    best: f64,
    worst: f64,
    /// Moves in a run.
    speculative: f64,
    rebalanced: f64,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Spread {
    mean: f64,
    deviation: f64,
}

impl Spread {
    #[expect(clippy::cast_precision_loss, reason = "seeds are few")]
    pub(super) fn of(values: &[f64]) -> Self {
        let count = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        Self { mean, deviation: (squares / (count - 1.0).max(1.0)).sqrt() }
    }
}

/// How much `new` is beside `base`, in percent.
pub(super) fn change(new: f64, base: f64) -> f64 {
    100.0 * (new / base - 1.0)
}

/// Compares two ways over the seeds.
#[expect(clippy::cast_precision_loss, reason = "trials are few")]
pub(super) fn compare(
    seeds: u64,
    trials: impl Fn(u64) -> Vec<SharedTrial>,
    base: impl Fn(&[SharedTrial], u64) -> SharingRun,
    new: impl Fn(&[SharedTrial], u64) -> SharingRun,
) -> Compared {
    let pairs: Vec<(SharingRun, SharingRun)> = (1..=seeds)
        .map(|seed| {
            let trials = trials(seed);
            (base(&trials, seed), new(&trials, seed))
        })
        .collect();
    let over = |of: &dyn Fn(&SharingRun) -> f64| {
        Spread::of(&pairs.iter().map(|(base, new)| change(of(new), of(base))).collect::<Vec<_>>())
    };
    let mean = |of: &dyn Fn(&(SharingRun, SharingRun)) -> f64| {
        Spread::of(&pairs.iter().map(of).collect::<Vec<_>>()).mean
    };
    let changes = |(base, new): &(SharingRun, SharingRun)| -> Vec<f64> {
        let both = base.trials.iter().zip(&new.trials);
        both.map(|(base, new): (&Ended, &Ended)| change(new.completion, base.completion)).collect()
    };
    let count = |pair: &(SharingRun, SharingRun), is: fn(f64) -> bool| {
        changes(pair).into_iter().filter(|change| is(*change)).count() as f64
    };
    let moves = |(_, new): &(SharingRun, SharingRun), kind| {
        new.moves.iter().filter(|moved| moved.kind == kind).count() as f64
    };
    Compared {
        completion: over(&SharingRun::mean_completion),
        usable: over(&SharingRun::mean_usable),
        makespan: over(&|run| run.makespan),
        better: mean(&|pair| count(pair, |change| change < -1.0)),
        worse: mean(&|pair| count(pair, |change| change > 1.0)),
        best: mean(&|pair| changes(pair).into_iter().fold(f64::INFINITY, f64::min)),
        worst: mean(&|pair| changes(pair).into_iter().fold(f64::NEG_INFINITY, f64::max)),
        speculative: mean(&|pair| moves(pair, sojourn_studies::fluid::Kind::Speculative)),
        rebalanced: mean(&|pair| moves(pair, sojourn_studies::fluid::Kind::Rebalance)),
    }
}
