//! How good the best combination of the Tree-structured Parzen Estimator is after 30 and after 60 trials, beside Optuna's sampler
//! with its default settings: means over 200 seeds. Prints one JSON line for each objective and number of trials.
//!
//! The anchor is the mean that `workgen/tests/tpe_optuna.py` recorded of Optuna. All objectives are minimised. `z` is the
//! difference of the means in its standard errors: below 0 ours is better.

#![expect(clippy::unwrap_used, reason = "a bench ends at what it did not expect")]
#![expect(clippy::indexing_slicing, reason = "a bench ends at what it did not expect")]
#![expect(clippy::cast_precision_loss, reason = "figures for people")]

#[path = "../../../benches/size.rs"]
mod size;

mod functions;
mod spaces;
mod standing;

use spaces::{HELD_OUT, OBJECTIVES, Objective};
use standing::{CHECKS, Recorded, searched};

fn main() {
    let recorded = Recorded::read();
    let held_out = HELD_OUT.iter().map(|objective| (objective, ", held out"));
    let all = OBJECTIVES.iter().map(|objective| (objective, "")).chain(held_out);
    for (objective, note) in all {
        lines(&recorded, objective, note);
    }
}

fn lines(recorded: &Recorded, objective: &Objective, note: &str) {
    let checked =
        recorded.points(objective).iter().all(|(at, _)| !(objective.function)(at).is_nan());
    assert!(checked, "{}", objective.name);
    let both = searched(objective, size::of(200, 2)).into_iter().zip(recorded.bests(objective));
    for (trials, (ours, optuna)) in CHECKS.iter().zip(both) {
        println!(
            "{{\"name\":\"best of {trials} trials by tpe, {}{note}; beside Optuna\",\"value\":{:.4},\"unit\":\"\",\"anchor\":{:.4},\"z\":{:.2}}}",
            objective.name,
            ours.mean,
            optuna.mean,
            ours.z(&optuna)
        );
    }
}
