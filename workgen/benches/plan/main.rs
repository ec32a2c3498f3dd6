//! How good the planners' schedules are, and how many iterations a second they make. One JSON line for
//! each figure.
//!
//! Ratios are makespans over lower bounds, means over 20 seeds, and say the same on any machine; only the
//! open shops in half a second of processor time and the iterations a second depend on it. The anchor of the latter is
//! sorting as many numbers as the problem has hops, measured in the same run.

#![expect(clippy::unwrap_used, reason = "a bench ends at what it did not expect")]
#![expect(clippy::cast_precision_loss, reason = "figures for people")]

mod instances;
mod shops;
#[path = "../../../benches/size.rs"]
mod size;

use instances::{Holders, convnets};
use rustix::time::{ClockId, clock_gettime};
use shops::balanced;
use sojourn_protocol::seeds;
use sojourn_workgen::plan::{Budget, Iterations, PlannerName, Problem, WHOLE};
use std::time::Duration;

fn main() {
    let shapes = [(16, 8, false), (64, 32, false), (256, 128, false), (16, 16, true)];
    for (trials, machines, alike) in shapes.into_iter().take(size::of(4, 1)) {
        let kind = if alike { "all alike" } else { "four kinds" };
        for (holders, word) in [(Holders::Pinned, "pinned"), (Holders::All, "anywhere")] {
            if alike && holders == Holders::All {
                continue;
            }
            let name = format!("{trials} x {machines} {kind}, {word}");
            settings(&name, &|seed| convnets(trials, machines, alike, holders, seed));
        }
    }
    let shop = |seed| Problem::of_open_shop(&balanced(10, seed));
    for planner in [PlannerName::Randomized, PlannerName::Ltrp, PlannerName::Rollout] {
        let plan = |seed| ratio(planner, &shop(seed), seed, &mut HalfASecond::new());
        line(planner, "open shop 10 x 10 in 500 ms", mean(plan), "makespan/bound", None);
    }
    for (trials, machines) in [(16, 8), (256, 128)].into_iter().take(size::of(2, 1)) {
        let problem = convnets(trials, machines, false, Holders::Pinned, 0);
        speed(&format!("{trials} x {machines}"), &problem);
    }
    speed("open shop 10 x 10", &shop(0));
}

/// Ratios of all planners.
fn settings(name: &str, problem: &dyn Fn(u64) -> Problem) {
    for planner in PlannerName::ALL {
        // The largest takes minutes where every machine may train every shard.
        let anywhere = problem(0).holders.first().is_some_and(Option::is_none);
        let large = problem(0).machines.len() > 64;
        if (planner == PlannerName::Rollout && anywhere && large)
            || planner.planner().plan(&problem(0), 0, &mut Iterations::new(0)).is_none()
        {
            continue;
        }
        let iterations = size::of(200, 2);
        let plan = |seed| ratio(planner, &problem(seed), seed, &mut Iterations::new(iterations));
        line(planner, name, mean(plan), "makespan/bound", None);
    }
}

/// Iterations of `rollout` a second.
fn speed(name: &str, problem: &Problem) {
    let mut budget = HalfASecond::new();
    PlannerName::Rollout.planner().plan(problem, 0, &mut budget).unwrap();
    let value = budget.iterations as f64 / budget.spent().as_secs_f64();
    let mut rng = seeds::stream("anchor", &[]);
    let numbers: Vec<u32> = (0..problem.hops()).map(|_| seeds::below(&mut rng, u32::MAX)).collect();
    let (begun, mut sorted) = (processor_time(), 0_u64);
    while processor_time() - begun < Duration::from_millis(size::of(200, 1)) {
        let mut numbers = std::hint::black_box(numbers.clone());
        numbers.sort_unstable();
        std::hint::black_box(numbers);
        sorted += 1;
    }
    let anchor = sorted as f64 / (processor_time() - begun).as_secs_f64();
    line(PlannerName::Rollout, &format!("iterations, {name}"), value, "1/s", Some(anchor));
}

fn mean(of: impl Fn(u64) -> f64) -> f64 {
    let seeds: u64 = size::of(20, 1);
    (0..seeds).map(of).sum::<f64>() / seeds as f64
}

fn ratio(planner: PlannerName, problem: &Problem, seed: u64, budget: &mut dyn Budget) -> f64 {
    let schedule = planner.planner().plan(problem, seed, budget).unwrap();
    schedule.check(problem).unwrap();
    schedule.makespan as f64 / problem.lower_bound() as f64
}

fn line(planner: PlannerName, name: &str, value: f64, unit: &str, anchor: Option<f64>) {
    let planner = planner.name();
    let anchor = anchor.map_or(String::new(), |anchor| {
        format!(",\"anchor\":{anchor:.0},\"ratio\":{:.5}", value / anchor)
    });
    let digits = if unit == "1/s" { 0 } else { 4 };
    println!(
        "{{\"name\":\"plan {planner}, {name}\",\"value\":{value:.digits$},\"unit\":\"{unit}\"{anchor}}}"
    );
}

/// Of this thread: a busy machine makes no plan worse.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap()
}

/// Of processor time.
struct HalfASecond {
    begun: Duration,
    iterations: u64,
}

impl HalfASecond {
    fn new() -> Self {
        Self { begun: processor_time(), iterations: 0 }
    }

    fn spent(&self) -> Duration {
        processor_time() - self.begun
    }
}

impl Budget for HalfASecond {
    fn next(&mut self) -> Option<u32> {
        let ratio = self.spent().as_nanos() * u128::from(WHOLE) / size::of(500_000_000, 5_000_000);
        let ratio = u32::try_from(ratio).ok().filter(|ratio| *ratio < WHOLE)?;
        self.iterations += 1;
        Some(ratio)
    }
}
