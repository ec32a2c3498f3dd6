//! FlowCon on one host.

use super::compared::{Compared, Spread, change, compare};
use serde::Serialize;
use sojourn_protocol::quantity::Micros;
use sojourn_shares::{Apply, CpuSharePolicy, First, FlowCon, Order, Threshold};
use sojourn_studies::fluid::{
    Arrivals, Curve, Ended, SharedHosts, SharedTrial, SharingRun, Work,
    thesis::{CELLS, SCHEDULE},
};

/// The figures of the three jobs in one cell. Changes are in percent of equal CPU shares.
#[derive(Debug, Serialize)]
pub(super) struct Cell {
    alpha: f64,
    interval: u64,
    thesis: f64,
    cap: Schedule,
    weight: Schedule,
}

#[derive(Debug, Serialize)]
struct Schedule {
    second: Spread,
    third: Spread,
    makespan: Spread,
}

fn policy(alpha: f64, interval: u64, apply: Apply) -> CpuSharePolicy {
    CpuSharePolicy::FlowCon(FlowCon {
        alpha,
        interval: Micros::from_secs(interval),
        longest_interval: Micros::from_secs(16 * interval),
        apply,
        ..FlowCon::thesis()
    })
}

fn of_job(run: &SharingRun, n: usize) -> Ended {
    run.trials.get(n).cloned().unwrap_or(Ended { completion: f64::NAN, usable: f64::NAN })
}

/// The thesis' three jobs.
pub(super) fn schedule(seeds: u64) -> Vec<Cell> {
    let base = SharedHosts::one(CpuSharePolicy::Equal).run(&SCHEDULE, 0);
    let run = |policy| -> Schedule {
        let runs: Vec<SharingRun> =
            (1..=seeds).map(|seed| SharedHosts::one(policy).run(&SCHEDULE, seed)).collect();
        let over = |of: &dyn Fn(&SharingRun) -> f64| {
            Spread::of(&runs.iter().map(|run| change(of(run), of(&base))).collect::<Vec<_>>())
        };
        let job = |n: usize| move |run: &SharingRun| of_job(run, n).completion;
        Schedule {
            second: over(&job(1)),
            third: over(&job(2)),
            makespan: over(&|run| run.makespan),
        }
    };
    let cell = |&(alpha, interval, thesis): &(f64, u64, f64)| Cell {
        alpha,
        interval,
        thesis,
        cap: run(policy(alpha, interval, Apply::Cap)),
        weight: run(policy(alpha, interval, Apply::Weight)),
    };
    CELLS.iter().map(cell).collect()
}

/// A policy beside equal CPU shares, for trials that come by chance.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    trials: u32,
    sizes: &'static str,
    interference: f64,
    policy: &'static str,
    of: Compared,
}

fn policies() -> [(&'static str, CpuSharePolicy); 5] {
    let first = |order| {
        let first = First { interval: Micros::from_secs(1), ..First::new(order) };
        CpuSharePolicy::First(first)
    };
    let weight = FlowCon { apply: Apply::Weight, absolute: false, ..FlowCon::thesis() };
    [
        ("FlowCon, thesis", CpuSharePolicy::FlowCon(FlowCon::thesis())),
        ("FlowCon, weights", CpuSharePolicy::FlowCon(weight)),
        ("FlowCon, default", CpuSharePolicy::FlowCon(FlowCon::default())),
        ("least attained", first(Order::LeastAttained)),
        ("shortest remaining", first(Order::ShortestRemaining)),
    ]
}

const SIZES: [(&str, Work); 2] = [
    ("even", Work::Uniform(28.2, 259.7)),
    ("heavy-tailed", Work::Pareto { least: 28.2, exponent: 1.2, most: 2_000.0 }),
];

/// Trials that come within 200 seconds.
pub(super) fn arrivals(seeds: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    for (sizes, work) in SIZES {
        for interference in [0.0, 0.03] {
            for trials in [5, 10, 15] {
                let arrivals = Arrivals {
                    trials,
                    within: Some(200.0),
                    every: 0.0,
                    work,
                    curves: vec![Curve::VAE, Curve::GRU, Curve::BIDIRECTIONAL],
                };
                for (name, policy) in policies() {
                    let of = beside_equal(seeds, &arrivals, interference, policy);
                    rows.push(Row { trials, sizes, interference, policy: name, of });
                }
            }
        }
    }
    rows
}

fn beside_equal(
    seeds: u64,
    arrivals: &Arrivals,
    interference: f64,
    cpu_shares: CpuSharePolicy,
) -> Compared {
    let with = |cpu_shares| SharedHosts { interference, ..SharedHosts::one(cpu_shares) };
    compare(
        seeds,
        |seed| arrivals.draw(seed),
        |trials, seed| with(CpuSharePolicy::Equal).run(trials, seed),
        |trials, seed| with(cpu_shares).run(trials, seed),
    )
}

/// The three jobs, all of them twenty times as long: by how much the third ends earlier and is usable earlier, in percent.
#[derive(Debug, Serialize)]
pub(super) struct Long {
    unit: &'static str,
    alpha: f64,
    third: Spread,
    usable: Spread,
}

/// The effect on long trials of a threshold per second, beside that of one per trial.
pub(super) fn long(seeds: u64) -> Vec<Long> {
    let long = SCHEDULE.map(|trial| SharedTrial { work: 20.0 * trial.work, ..trial });
    let base = SharedHosts::one(CpuSharePolicy::Equal).run(&long, 0);
    let units = [
        ("per second", FlowCon { apply: Apply::Weight, ..FlowCon::thesis() }),
        ("per trial", FlowCon { absolute: true, ..FlowCon::default() }),
    ];
    let row = |(unit, policy): (&'static str, FlowCon)| {
        assert_eq!(policy.threshold == Threshold::PerTrial, unit == "per trial");
        let runs: Vec<SharingRun> = (1..=seeds)
            .map(|seed| SharedHosts::one(CpuSharePolicy::FlowCon(policy)).run(&long, seed))
            .collect();
        let over = |of: &dyn Fn(&SharingRun) -> f64| {
            Spread::of(&runs.iter().map(|run| change(of(run), of(&base))).collect::<Vec<_>>())
        };
        Long {
            unit,
            alpha: policy.alpha,
            third: over(&|run| of_job(run, 2).completion),
            usable: over(&|run| of_job(run, 2).usable),
        }
    };
    units.into_iter().map(row).collect()
}
