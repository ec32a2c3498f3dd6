//! How long the merge kernels take for the 4,972,746 numbers of the VC-ASGD paper's network: JSON lines.
//!
//! Over slices that are in memory: their milliseconds beside those that moving the same bytes takes at the machine's
//! memory bandwidth, which is measured by turns with them and with the same threads; and the bytes that they move in a
//! second beside that bandwidth. What whole checkpoints take is measured in the assimilator.

#![expect(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a benchmark ends at what it did not expect, counts megabytes, and takes the time"
)]

mod memory;
#[path = "../../../../benches/size.rs"]
mod size;

use half::bf16;
use memory::{Loop, Memory};
use sojourn_rules::{Element, Momentum, Pass, Slices, Step, norm};
use std::{hint::black_box, time::Instant};

/// Parameters and running statistics of the paper's `ResNet`.
fn numbers() -> usize {
    size::of(4_972_746, 1_000)
}

fn main() {
    let mut memory = Memory::new(numbers());
    kernels::<f32>("f32", &mut memory);
    kernels::<bf16>("bf16", &mut memory);
    let [base, returned] = [0.25, 0.5].map(|value| vec![value; numbers()]);
    kernel("norm of the change", 8 * numbers(), &mut memory, || {
        black_box(norm(&base, &returned));
    });
}

/// Each kernel, and how many numbers of the model and of the rule it reads and writes for each place.
fn kernels<E: Element>(kind: &str, memory: &mut Memory) {
    let plain = Step { share: 0.125, rate: 1.0, momentum: None };
    let momentum = Some(Momentum { decay: 0.9, lead: 0.63 });
    let both = Step { share: 0.125, rate: 0.0, momentum };
    let (weight, gain) = (1.0, 1e-3);
    let passes = [
        ("vc-asgd", Pass::Blend { take: 0.05, scale: 1.0 }, 3, 0),
        ("vc-asgd, clipped", Pass::Blend { take: 0.05, scale: 0.5 }, 4, 0),
        ("delta", Pass::Add { gain }, 4, 0),
        ("dc-asgd", Pass::Compensate { gain: 1.0, lambda: 2.0, decay: 0.95 }, 4, 2),
        ("fedbuff, gathering", Pass::Gather { weight }, 2, 2),
        ("fedbuff, stepping", Pass::GatherAndStep { weight, gain: 0.0, step: plain }, 4, 2),
        ("delayed-nesterov", Pass::GatherAndAdd { weight, gain }, 4, 2),
        ("delayed-nesterov, stepping", Pass::GatherAndStep { weight, gain, step: both }, 4, 4),
    ];
    let [mut current, base, returned] =
        [0.5, 0.25, 0.75].map(|value| vec![E::store(value); numbers()]);
    let [mut sum, mut momentum, mut mean_square] =
        [0.0f32, 0.125, 0.0625].map(|value| vec![value; numbers()]);
    for (name, pass, model, slots) in passes {
        let bytes = numbers() * (model * size_of::<E>() + slots * 4);
        kernel(&format!("{name}, {kind}"), bytes, memory, || {
            let slices = Slices {
                current: &mut current,
                base: &base,
                returned: &returned,
                sum: &mut sum,
                momentum: &mut momentum,
                mean_square: &mut mean_square,
            };
            pass.apply(slices).unwrap();
        });
    }
}

/// Prints the time of a kernel, and what it moves, beside the best of the loops that do nothing but move.
fn kernel(name: &str, bytes: usize, memory: &mut Memory, mut work: impl FnMut()) {
    let bytes = bytes as f64;
    let [spent, moving @ ..]: [f64; 4] =
        medians(|turn| match Loop::ALL.get(turn.wrapping_sub(1)) {
            None => work(),
            Some(each) => memory.run(*each),
        });
    let each = moving.into_iter().zip(Loop::ALL);
    let bandwidth = each.map(|(spent, each)| memory.bytes(each) / spent).fold(0.0, f64::max);
    line(&format!("merge kernel, {name}"), 1e3 * spent, "ms", 1e3 * bytes / bandwidth);
    let moved = bytes / spent / 1e9;
    line(&format!("merge kernel, {name}, bytes moved"), moved, "GB/s", bandwidth / 1e9);
}

/// Seconds that several works take, each the median of many times, by turns: what else the machine does meets all
/// alike.
fn medians<const N: usize>(mut work: impl FnMut(usize)) -> [f64; N] {
    let begun = Instant::now();
    let mut all = [const { Vec::new() }; N];
    while all.iter().any(|spent| spent.len() < size::of(25, 2))
        || begun.elapsed().as_secs_f64() < size::of(1.0, 0.0)
    {
        for (turn, spent) in all.iter_mut().enumerate() {
            let start = Instant::now();
            work(turn);
            spent.push(start.elapsed().as_secs_f64());
        }
    }
    all.map(|mut spent| {
        spent.sort_by(f64::total_cmp);
        spent.get(spent.len() / 2).copied().unwrap()
    })
}

/// Prints a figure beside its anchor.
fn line(name: &str, value: f64, unit: &str, anchor: f64) {
    let ratio = value / anchor;
    println!(
        "{{\"name\":\"{name}\",\"value\":{value:.2},\"unit\":\"{unit}\",\
         \"anchor\":{anchor:.2},\"ratio\":{ratio:.3}}}"
    );
}
