//! Convnets on four kinds of GPU, by seed.

#![expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "small by construction"
)]

use sojourn_protocol::seeds;
use sojourn_workgen::plan::{Machine, PACE_ONE, PlanTrial, Problem};

/// Millions of floating point operations for each row, of the 35 convnets that Cerebro's simulation
/// sampled from (VLDB 2020, section 5.4).
pub(crate) const CONVNETS: [u64; 35] = [
    727, 724, 837, 360, 727, 2000, 3000, 2000, 2000, 2000, 16000, 16000, 20000, 2000, 2000, 4000,
    4000, 8000, 11000, 4000, 8000, 16000, 6000, 4000, 8000, 11000, 4000, 8000, 21000, 2000, 3000,
    8000, 3000, 4000, 579,
];

/// Tenths of TFLOP/s of its GPUs.
pub(crate) const GPUS: [u64; 4] = [121, 56, 113, 187];

/// Which machines may train a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holders {
    /// Shard `s` is at machine `s` alone.
    Pinned,
    /// Each shard is at all machines.
    All,
}

/// `trials` convnets on `machines` GPUs, one shard for each machine; or all trials and GPUs alike.
pub(crate) fn convnets(
    trials: usize,
    machines: usize,
    alike: bool,
    holders: Holders,
    seed: u64,
) -> Problem {
    let mut rng = seeds::stream("instances", &[seed, trials as u64, machines as u64]);
    let mut draw = |from: &[u64]| from[seeds::below(&mut rng, from.len() as u32) as usize];
    let one = draw(&CONVNETS);
    let costs: Vec<u64> = (0..trials).map(|_| if alike { one } else { draw(&CONVNETS) }).collect();
    let speeds: Vec<u64> =
        (0..machines).map(|_| if alike { GPUS[0] } else { draw(&GPUS) }).collect();
    // Pace one is the slowest GPU; 1,000 rows a hop; work in nanoseconds at a third of its peak.
    let pace: Vec<u64> = speeds.iter().map(|speed| PACE_ONE * GPUS[1] / speed).collect();
    let trial = |cost: &u64| PlanTrial {
        open: (0..machines as u32).collect(),
        work: vec![cost * 1000; machines],
        pace: pace.clone(),
        ..PlanTrial::default()
    };
    let holder = |shard: usize| match holders {
        Holders::Pinned => Some(vec![shard as u32]),
        Holders::All => None,
    };
    Problem {
        trials: costs.iter().map(trial).collect(),
        machines: vec![Machine::default(); machines],
        holders: (0..machines).map(holder).collect(),
        ..Problem::default()
    }
}
