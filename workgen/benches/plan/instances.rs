//! Instances by seed: convnets on four kinds of GPU, and open shops in the spirit of public sets.

#![allow(clippy::allow_attributes, reason = "tests and bench use different ones")]
#![allow(dead_code, reason = "tests and bench use different ones")]
#![expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "small by construction"
)]

use sojourn_protocol::seeds;
use sojourn_workgen::plan::{PACE_ONE, PlanPlace, PlanTrial, Problem};

/// Millions of floating point operations for each row, of the 35 convnets that Cerebro's simulation
/// sampled from (VLDB 2020, section 5.4).
pub(crate) const CONVNETS: [u64; 35] = [
    727, 724, 837, 360, 727, 2000, 3000, 2000, 2000, 2000, 16000, 16000, 20000, 2000, 2000, 4000,
    4000, 8000, 11000, 4000, 8000, 16000, 6000, 4000, 8000, 11000, 4000, 8000, 21000, 2000, 3000,
    8000, 3000, 4000, 579,
];

/// Tenths of TFLOP/s of its GPUs.
pub(crate) const GPUS: [u64; 4] = [121, 56, 113, 187];

/// Which places may train a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holders {
    /// Shard `s` is at place `s` alone.
    Pinned,
    /// At so many places, each shard at others.
    Replicas(usize),
    /// Everywhere.
    All,
}

/// `trials` convnets on `places` GPUs, one shard for each place; or all trials and GPUs alike.
pub(crate) fn convnets(
    trials: usize,
    places: usize,
    alike: bool,
    holders: Holders,
    seed: u64,
) -> Problem {
    let mut chance = seeds::stream("instances", &[seed, trials as u64, places as u64]);
    let mut draw = |from: &[u64]| from[seeds::below(&mut chance, from.len() as u32) as usize];
    let one = draw(&CONVNETS);
    let costs: Vec<u64> = (0..trials).map(|_| if alike { one } else { draw(&CONVNETS) }).collect();
    let speeds: Vec<u64> = (0..places).map(|_| if alike { GPUS[0] } else { draw(&GPUS) }).collect();
    // Pace one is the slowest GPU; 1,000 rows a hop; work in nanoseconds at a third of its peak.
    let pace: Vec<u64> = speeds.iter().map(|speed| PACE_ONE * GPUS[1] / speed).collect();
    let trial = |cost: &u64| PlanTrial {
        open: (0..places as u32).collect(),
        work: vec![cost * 1000; places],
        pace: pace.clone(),
        ..PlanTrial::default()
    };
    let holder = |shard: usize| match holders {
        Holders::Pinned => Some(vec![shard as u32]),
        Holders::Replicas(count) => {
            Some((0..count).map(|n| ((shard + n * places / count) % places) as u32).collect())
        }
        Holders::All => None,
    };
    Problem {
        trials: costs.iter().map(trial).collect(),
        places: vec![PlanPlace::default(); places],
        holders: (0..places).map(holder).collect(),
    }
}

/// Durations of 1 to 99, any (in the spirit of Taillard's sets).
pub(crate) fn uniform(jobs: usize, machines: usize, seed: u64) -> Vec<Vec<u64>> {
    let mut chance = seeds::stream("uniform", &[seed, jobs as u64, machines as u64]);
    (0..jobs)
        .map(|_| (0..machines).map(|_| 1 + u64::from(seeds::below(&mut chance, 99))).collect())
        .collect()
}

/// Rows and columns that nearly all add up to 1000, of widely spread durations (in the spirit of Guéret
/// and Prins): the lower bound is out of reach, and static rules do badly.
pub(crate) fn balanced(size: usize, seed: u64) -> Vec<Vec<u64>> {
    let mut chance = seeds::stream("balanced", &[seed, size as u64]);
    let mut rows = vec![vec![1000 / size as u64; size]; size];
    for (n, row) in rows.iter_mut().enumerate() {
        row[n] += 1000 % size as u64;
    }
    // Moves along a rectangle keep all sums.
    for _ in 0..size * size * 40 {
        let mut draw = || seeds::below(&mut chance, size as u32) as usize;
        let (a, b, c, d) = (draw(), draw(), draw(), draw());
        if a == b || c == d {
            continue;
        }
        let most = rows[a][c].min(rows[b][d]).saturating_sub(1);
        let by = u64::from(seeds::below(&mut chance, most as u32 + 1));
        rows[a][c] -= by;
        rows[b][d] -= by;
        rows[a][d] += by;
        rows[b][c] += by;
    }
    rows
}

/// Durations of 1 to 499 brought up to a bound of 1000 (in the spirit of Brucker, Hurink, Jurisch and
/// Wöstmann): machines and jobs that are mostly, not wholly, busy.
pub(crate) fn filled(size: usize, seed: u64) -> Vec<Vec<u64>> {
    let mut rows = balanced(size, seed);
    let mut chance = seeds::stream("filled", &[seed, size as u64]);
    for _ in 0..size {
        let mut draw = || seeds::below(&mut chance, size as u32) as usize;
        let (a, b) = (draw(), draw());
        rows[a][b] = rows[a][b].div_ceil(2);
    }
    rows
}
