//! How many combinations a second the Tree-structured Parzen Estimator suggests. One JSON line for each figure.
//!
//! Each suggestion reads all observations and builds its densities anew. The anchor is the least that it can do: the exponents
//! of as many Gaussians as there are observations, dimensions and candidates, measured in the same run.

#![expect(clippy::unwrap_used, reason = "a bench ends at what it did not expect")]
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]
#![expect(clippy::cast_precision_loss, reason = "figures for people")]

#[path = "../../../benches/size.rs"]
mod size;

use sojourn_protocol::jobfile;
use sojourn_workgen::search::{
    Trial, Tried,
    tpe::{CANDIDATES, Observation, Outcome, suggest},
    trials,
};
use std::{
    collections::BTreeSet,
    hint::black_box,
    time::{Duration, Instant},
};

/// Ten dimensions of all kinds.
const JOB: &str = r#"
name = "bench"
seed = 7

[data]
train = "digits.csv"
label = "label"
shape = [1, 8, 8]

[[model]]
arch = "mlp"
hidden = { choice = [[64], [128, 64], [256]] }
dropout = { uniform = [0.0, 0.5] }

[training]
epochs = 27
batch_size = { log_int = [8, 512] }
optimizer = { name = { choice = ["sgd", "adam", "adamw"] }, lr = { log_uniform = [1e-5, 1.0] }, momentum = { normal = [0.9, 0.05], truncate = [0, 0.99] }, beta1 = { uniform = [0.8, 0.99] }, weight_decay = { log_uniform = [1e-6, 0.1] } }
schedule = { name = "cosine", warmup = { int = [0, 100], step = 5 } }
clip_norm = { uniform = [0.1, 5.0] }

[search]
method = "random"
trials = 10000
metric = "valid/loss"
"#;

const DIMENSIONS: usize = 10;

fn main() {
    for count in [100, 1_000, 10_000].into_iter().take(size::of(3, 1)) {
        let mut spec = jobfile::parse(JOB).unwrap();
        let all = trials(&spec).unwrap();
        // No trial has all of them: only SGD has momentum.
        let chosen: BTreeSet<&String> = all.iter().flat_map(|trial| trial.choices.keys()).collect();
        assert_eq!(chosen.len(), DIMENSIONS);
        spec.seed = 8;
        let known: Vec<Observation<'_>> = all.iter().take(count).map(observation).collect();
        let mut index = 0;
        let speed = a_second(|| {
            index += 1;
            black_box(suggest(&spec, &known, index, &Tried::default(), &mut |_| true).unwrap());
        });
        let anchor = exponents(count);
        println!(
            "{{\"name\":\"suggestions from {count} trials of {DIMENSIONS} dimensions\",\"value\":{speed:.1},\"unit\":\"1/s\",\"anchor\":{anchor:.1},\"ratio\":{:.5}}}",
            speed / anchor
        );
    }
}

/// A trial with a value that depends on its learning rate.
fn observation(trial: &Trial) -> Observation<'_> {
    let value = (trial.config.training.optimizer.lr.log10() + 3.0).powi(2);
    Observation {
        model: trial.model,
        choices: &trial.choices,
        outcome: Outcome::Ended { epochs: 27, value },
    }
}

/// How often a second the squared distances of as many numbers as observations have are added up, once for each candidate.
fn exponents(observations: usize) -> f64 {
    let columns: Vec<Vec<f64>> = (0..DIMENSIONS)
        .map(|dimension| (0..observations).map(|at| (at * (dimension + 7) % 101) as f64).collect())
        .collect();
    a_second(|| {
        for candidate in 0..CANDIDATES {
            let mut sums = vec![0.0; observations];
            for column in black_box(&columns) {
                for (sum, number) in sums.iter_mut().zip(column) {
                    let away = number - candidate as f64;
                    *sum -= away * away / 2.0;
                }
            }
            black_box(sums);
        }
    })
}

/// How often a second something can be done.
fn a_second(mut what: impl FnMut()) -> f64 {
    let (begun, mut times) = (Instant::now(), 0_u64);
    let least = Duration::from_millis(size::of(2_000, 1));
    while begun.elapsed() < least {
        what();
        times += 1;
    }
    times as f64 / begun.elapsed().as_secs_f64()
}
