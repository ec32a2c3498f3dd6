//! Configurations that were trained with several seeds or folds: the mean and the deviation of their best values.

use crate::{
    quantity::to_u64,
    spec::{Choices, FOLD, Goal, SEED, is_replicate},
    view::TrialView,
};
use std::{cmp::Ordering, collections::BTreeMap};

/// Trials of one configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// `mlp`, `cnn`, ...
    pub arch: String,
    /// All that their configuration has, but seed and fold.
    pub choices: Choices,
    /// How many there are.
    pub trials: u64,
    /// How many of them have an evaluated epoch.
    pub evaluated: u64,
    /// The mean of their best values; none where nothing is evaluated.
    pub mean: Option<f64>,
    /// The standard deviation of a sample: over one less than their number. None where there are fewer than two.
    pub deviation: Option<f64>,
}

/// The configurations of a job's trials, the best mean first; empty where each is one trial.
#[must_use]
pub fn configurations(trials: &[TrialView], goal: Goal) -> Vec<Configuration> {
    let mut groups: BTreeMap<(String, String), (Choices, u64, Vec<f64>)> = BTreeMap::new();
    let is_replicated = |trial: &&TrialView| trial.choices.keys().any(|name| is_replicate(name));
    for trial in trials.iter().filter(is_replicated).filter(|trial| trial.refit.is_none()) {
        let mut choices = trial.choices.clone();
        choices.retain(|name, _| !is_replicate(name));
        // JSON of the same values is the same text.
        let key = (trial.arch.clone(), serde_json::json!(choices).to_string());
        let (_, count, values) = groups.entry(key).or_insert_with(|| (choices, 0, Vec::new()));
        *count += 1;
        values.extend(trial.best.as_ref().map(|best| best.value));
    }
    let groups = groups.into_iter().map(|((arch, _), (choices, trials, values))| {
        let (mean, deviation) = mean_and_deviation(&values);
        Configuration { arch, choices, trials, evaluated: to_u64(values.len()), mean, deviation }
    });
    let mut groups: Vec<Configuration> = groups.collect();
    groups.sort_by(|a, b| best_first(goal, a.mean, b.mean));
    groups
}

/// By which choices trials of one configuration differ, in a few words: `seeds`, `folds`, or both.
#[must_use]
pub fn replicates(trials: &[TrialView]) -> &'static str {
    let has = |name: &str| trials.iter().any(|trial| trial.choices.contains_key(name));
    match (has(SEED), has(FOLD)) {
        (true, true) => "seeds and folds",
        (false, true) => "folds",
        (_, false) => "seeds",
    }
}

/// The order of means, the best first; configurations without a mean come last.
fn best_first(goal: Goal, a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => match goal {
            Goal::Max => b.total_cmp(&a),
            Goal::Min => a.total_cmp(&b),
        },
        (a, b) => a.is_none().cmp(&b.is_none()),
    }
}

fn mean_and_deviation(values: &[f64]) -> (Option<f64>, Option<f64>) {
    #[expect(clippy::cast_precision_loss, reason = "a job has far fewer than 2^53 trials")]
    let count = values.len() as f64;
    if values.is_empty() {
        return (None, None);
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (Some(mean), (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn trial(n: u32, choices: serde_json::Value, best: Option<f64>) -> TrialView {
        let mut view: TrialView = serde_json::from_value(json!({
            "trial": n, "state": "running", "arch": "mlp", "choices": choices, "epoch": 0, "epochs": 1, "hops": 0,
            "version": 0, "checkpoint": null, "numeric_class": null, "curve": [],
        }))
        .unwrap();
        view.best = best.map(|value| {
            let blob = json!({ "sha256": "0".repeat(64), "bytes": 1 });
            let best = json!({ "trial": n, "epoch": 0, "value": value, "checkpoint": blob });
            serde_json::from_value(best).unwrap()
        });
        view
    }

    #[test]
    fn trials_that_differ_in_their_seed_alone_stand_together_best_first() {
        let trials = [
            trial(0, json!({ "lr": 0.1, "seed": 1 }), Some(0.8)),
            trial(1, json!({ "lr": 0.1, "seed": 2 }), Some(0.9)),
            trial(2, json!({ "lr": 0.1, "seed": 3 }), None),
            trial(3, json!({ "lr": 0.2, "seed": 1 }), Some(0.7)),
            trial(4, json!({ "lr": 0.3, "seed": 1 }), None),
        ];
        let board = configurations(&trials, Goal::Max);
        let seen: Vec<_> =
            board.iter().map(|of| (of.choices["lr"].clone(), of.trials, of.evaluated)).collect();
        assert_eq!(seen, [(json!(0.1), 3, 2), (json!(0.2), 1, 1), (json!(0.3), 1, 0)]);
        assert!((board[0].mean.unwrap() - 0.85).abs() < 1e-12);
        // Of 0.8 and 0.9: 0.05 from the mean, over one.
        assert!((board[0].deviation.unwrap() - 0.005_f64.sqrt()).abs() < 1e-12);
        assert_eq!((board[1].mean, board[1].deviation), (Some(0.7), None));
        let least = configurations(&trials, Goal::Min);
        assert_eq!(least[0].mean, Some(0.7));
        assert_eq!(least[2].mean, None);
    }

    #[test]
    fn folds_of_each_seed_count_as_its_seeds_do() {
        let trials = [
            trial(0, json!({ "lr": 0.1, "seed": 1, "fold": 0 }), Some(0.8)),
            trial(1, json!({ "lr": 0.1, "seed": 1, "fold": 1 }), Some(0.9)),
            trial(2, json!({ "lr": 0.1, "seed": 2, "fold": 0 }), Some(0.7)),
        ];
        let board = configurations(&trials, Goal::Max);
        assert_eq!((board.len(), board[0].trials), (1, 3));
        assert!((board[0].mean.unwrap() - 0.8).abs() < 1e-12);
        assert_eq!(replicates(&trials), "seeds and folds");
        assert_eq!(replicates(&[trial(0, json!({ "fold": 1 }), None)]), "folds");
    }

    #[test]
    fn without_seeds_and_folds_there_is_no_such_board() {
        assert!(configurations(&[trial(0, json!({ "lr": 0.1 }), Some(1.0))], Goal::Max).is_empty());
    }
}
