//! The Tree-structured Parzen Estimator beside Optuna's, on the objectives of `workgen/benches/objectives`.
//!
//! `tpe_optuna.py` recorded Optuna 5 with its default settings. Searches here are those of seeds from 0 on, so figures don't change
//! from run to run.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]
#![expect(clippy::indexing_slicing, reason = "a test ends at what it did not expect")]
#![expect(clippy::cast_precision_loss, reason = "seeds and dimensions are few")]

#[path = "../benches/objectives/functions.rs"]
mod functions;
#[path = "../benches/objectives/spaces.rs"]
mod spaces;
#[path = "../benches/objectives/standing.rs"]
mod standing;

use spaces::{HELD_OUT, OBJECTIVES};
use standing::{CHECKS, Recorded, searched};

const SEEDS: u64 = 100;

#[test]
fn both_sides_have_the_same_objectives() {
    let recorded = Recorded::read();
    for objective in OBJECTIVES.iter().chain(&HELD_OUT) {
        let points = recorded.points(objective);
        assert!(!points.is_empty(), "{}", objective.name);
        for (combination, expected) in points {
            let value = (objective.function)(&combination);
            let error = (value - expected).abs() / expected.abs().max(1.0);
            assert!(error < 1e-9, "{}: {value}, not {expected}", objective.name);
        }
    }
}

#[test]
fn no_mean_is_behind_optunas_and_six_of_nine_are_ahead() {
    let recorded = Recorded::read();
    let mut ahead = [0, 0];
    for objective in &OBJECTIVES {
        let both = searched(objective, SEEDS).into_iter().zip(recorded.bests(objective));
        for (at, (ours, optuna)) in both.enumerate() {
            let z = ours.z(&optuna);
            let of = format!("{} after {} trials", objective.name, CHECKS[at]);
            assert!(z <= 1.0, "{of}: {} beside {}, z {z:.2}", ours.mean, optuna.mean);
            ahead[at] += u32::from(ours.mean < optuna.mean);
        }
    }
    assert!(ahead.iter().all(|count| *count >= 6), "{ahead:?} of 9");
}
