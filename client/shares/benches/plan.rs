//! How long a plan takes on a host with 64 trials, each of which has reported every second.
//!
//! Prints one JSON line for each policy. The anchor is adding up the samples that a plan is made of, measured in the same run.

#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

#[path = "../../../benches/size.rs"]
mod size;

use sojourn_protocol::{
    ids::{JobId, TrialId},
    quantity::Micros,
};
use sojourn_shares::{
    Carried, CpuSharePolicy, Estimate, First, FlowCon, Order, Planner, Sample, TrialKey,
};
use std::{hint::black_box, time::Instant};

const TRIALS: u32 = 64;
/// Two windows.
const SECONDS: u32 = 60;

fn main() {
    let plans = size::of(20_000, 1);
    let anchor = sums(plans);
    for policy in [
        CpuSharePolicy::FlowCon(FlowCon::default()),
        CpuSharePolicy::First(First::new(Order::ShortestRemaining)),
    ] {
        let (name, value) = (policy.name(), takes(policy, plans));
        println!(
            "{{\"name\":\"{name}: a plan for {TRIALS} trials of a host\",\"value\":{value:.2},\"unit\":\"us\",\
             \"anchor\":{anchor:.2},\"ratio\":{:.3}}}",
            value / anchor
        );
    }
}

fn trials() -> impl Iterator<Item = TrialKey> {
    (0..TRIALS).map(|n| (JobId(1), TrialId(n)))
}

/// The sample of a trial for a second.
fn sample(trial: u32, second: u32) -> Sample {
    let loss = 1.0 / f64::from(1 + trial + second);
    Sample { span: Micros::from_secs(1), busy: Micros::from_millis(300), loss: Some(loss) }
}

/// Microseconds of a plan.
fn takes(policy: CpuSharePolicy, plans: u32) -> f64 {
    let mut planner = Planner::new(policy, 8.0);
    let members: Vec<_> = trials().map(|trial| (trial, Carried::default())).collect();
    planner.set_members(Micros::ZERO, &members);
    for (n, trial) in (0..).zip(trials()) {
        let left = Some(Micros::from_secs(u64::from(n)));
        planner.estimate(trial, Estimate { whole: Some(Micros::from_secs(600)), remaining: left });
        (0..SECONDS).for_each(|second| planner.record(trial, sample(n, second)));
    }
    let mut now = Micros::ZERO;
    let start = Instant::now();
    for _ in 0..plans {
        now = planner.due().unwrap_or(now).max(now);
        black_box(planner.run(now));
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(plans)
}

/// Microseconds of adding up as many samples.
fn sums(rounds: u32) -> f64 {
    let samples: Vec<Sample> =
        (0..TRIALS).flat_map(|n| (0..SECONDS).map(move |second| sample(n, second))).collect();
    let start = Instant::now();
    for _ in 0..rounds {
        let losses: f64 = black_box(&samples).iter().filter_map(|sample| sample.loss).sum();
        black_box(losses);
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds)
}
