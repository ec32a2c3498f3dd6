//! SpeCon on several hosts.

use super::compared::{Compared, compare};
use serde::Serialize;
use sojourn_protocol::quantity::Micros;
use sojourn_shares::CpuSharePolicy;
use sojourn_studies::fluid::{
    Arrivals, Curve, Exclusive, Moved, Placement, Queue, Residency, SharedHosts, SharingRun, Work,
};
use sojourn_workgen::residency::{Listing, SpeCon};

/// Work of a hop of plain model hopper parallelism, in seconds.
const HOP: f64 = 10.0;

struct Scenario {
    name: &'static str,
    hosts: u32,
    arrivals: Arrivals,
}

fn scenario_list() -> [Scenario; 5] {
    let mixed = Work::Uniform(70.0, 300.0);
    let all = vec![Curve::VAE, Curve::GRU, Curve::BIDIRECTIONAL];
    let arrivals = |trials, within, work, curves: &[Curve]| Arrivals {
        trials,
        within,
        every: 50.0,
        work,
        curves: curves.to_vec(),
    };
    let vae = [Curve::VAE];
    [
        Scenario {
            name: "20 VAE, one every 50 s, 4 hosts",
            hosts: 4,
            arrivals: arrivals(20, None, Work::Same(150.0), &vae),
        },
        Scenario {
            name: "20 VAE in 300 s, 4 hosts",
            hosts: 4,
            arrivals: arrivals(20, Some(300.0), Work::Same(150.0), &vae),
        },
        Scenario {
            name: "20 mixed in 300 s, 4 hosts",
            hosts: 4,
            arrivals: arrivals(20, Some(300.0), mixed, &all),
        },
        Scenario {
            name: "30 mixed in 300 s, 4 hosts",
            hosts: 4,
            arrivals: arrivals(30, Some(300.0), mixed, &all),
        },
        Scenario {
            name: "50 mixed in 1,200 s, 8 hosts",
            hosts: 8,
            arrivals: arrivals(50, Some(1_200.0), mixed, &all),
        },
    ]
}

fn hosts(hosts: u32, placement: Placement, residency: Residency) -> SharedHosts {
    SharedHosts { hosts, placement, residency, ..SharedHosts::one(CpuSharePolicy::Equal) }
}

const PLACEMENTS: [(&str, Placement); 2] =
    [("random", Placement::Random), ("fewest residents", Placement::FewestResidents)];

/// A policy beside trials that stay where they were put.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    scenario: &'static str,
    placement: &'static str,
    policy: &'static str,
    trials: u32,
    of: Compared,
}

/// Each scenario under each policy.
pub(super) fn scenarios(seeds: u64) -> Vec<Row> {
    let residencies = [
        (
            "SpeCon, as printed",
            Residency::SpeCon(SpeCon { listing: Listing::Printed, ..SpeCon::thesis() }),
        ),
        ("SpeCon, thesis", Residency::SpeCon(SpeCon::thesis())),
        ("SpeCon, default", Residency::SpeCon(SpeCon::default())),
        ("known remaining work", Residency::ShortestRemaining(30.0)),
    ];
    let queues = [
        ("one trial a host, first come", Queue::FirstCome),
        ("one trial a host, shortest remaining", Queue::ShortestRemaining(HOP)),
        ("model hopper, longest remaining", Queue::LongestRemaining(HOP)),
    ];
    let mut rows = Vec::new();
    for scenario in scenario_list() {
        for (placement, starts) in PLACEMENTS {
            let stay = hosts(scenario.hosts, starts, Residency::Stay);
            let mut row = |policy, new: &dyn Fn(&[_], u64) -> SharingRun| {
                let of = compare(
                    seeds,
                    |seed| scenario.arrivals.draw(seed),
                    |trials, seed| stay.run(trials, seed),
                    new,
                );
                let trials = scenario.arrivals.trials;
                rows.push(Row { scenario: scenario.name, placement, policy, trials, of });
            };
            for (name, residency) in residencies {
                let world = hosts(scenario.hosts, starts, residency);
                row(name, &|trials, seed| world.run(trials, seed));
            }
            for (name, queue) in queues {
                let world = Exclusive { hosts: scenario.hosts, queue };
                row(name, &|trials, _| world.run(trials));
            }
        }
    }
    rows
}

/// A threshold and an interval of a reading, beside trials that stay, with 20 mixed trials.
#[derive(Debug, Serialize)]
pub(super) struct Swept {
    reading: &'static str,
    alpha: f64,
    interval: u64,
    placement: &'static str,
    of: Compared,
}

/// Thresholds and intervals.
pub(super) fn sweep(seeds: u64) -> Vec<Swept> {
    let [_, _, scenario, ..] = scenario_list();
    let readings = [
        ("thesis", SpeCon::thesis(), [0.01, 0.05, 0.1]),
        ("default", SpeCon::default(), [0.1, 0.3, 0.6]),
    ];
    let mut rows = Vec::new();
    for (reading, rules, alphas) in readings {
        for alpha in alphas {
            for interval in [20, 25, 30] {
                for (placement, starts) in PLACEMENTS {
                    let rules = SpeCon { alpha, interval: Micros::from_secs(interval), ..rules };
                    let stay = hosts(scenario.hosts, starts, Residency::Stay);
                    let world = hosts(scenario.hosts, starts, Residency::SpeCon(rules));
                    let of = compare(
                        seeds,
                        |seed| scenario.arrivals.draw(seed),
                        |trials, seed| stay.run(trials, seed),
                        |trials, seed| world.run(trials, seed),
                    );
                    rows.push(Swept { reading, alpha, interval, placement, of });
                }
            }
        }
    }
    rows
}

/// How many trials each host has over time, and who moves.
#[derive(Debug, Serialize)]
pub(super) struct Residents {
    residents: Vec<(f64, Vec<usize>)>,
    moves: Vec<(f64, &'static str, usize, usize, usize)>,
}

/// Of 20 mixed trials with random placement and the first seed, under the default.
pub(super) fn residents() -> Residents {
    let [_, _, scenario, ..] = scenario_list();
    let world = hosts(scenario.hosts, Placement::Random, Residency::SpeCon(SpeCon::default()));
    let run = world.run(&scenario.arrivals.draw(1), 1);
    let moves = run.moves.iter().map(|moved: &Moved| {
        let kind = match moved.kind {
            sojourn_studies::fluid::Kind::Speculative => "M",
            sojourn_studies::fluid::Kind::Rebalance => "R",
        };
        (moved.at, kind, moved.trial, moved.from, moved.to)
    });
    Residents { moves: moves.collect(), residents: run.residents }
}
