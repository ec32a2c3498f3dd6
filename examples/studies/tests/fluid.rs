//! Processors that are shared in virtual time: what the arithmetic says, what FlowCon and SpeCon must not do, and the thesis' table.

use proptest::prelude::*;
use sojourn_protocol::quantity::Micros;
use sojourn_shares::{Apply, CpuSharePolicy, First, FlowCon, Order};
use sojourn_studies::fluid::{
    Arrivals, Curve, Exclusive, Kind, Placement, Queue, Residency, SharedHosts, SharedTrial,
    SharingRun, Work,
    thesis::{CELLS, SCHEDULE},
};
use sojourn_workgen::residency::{Listing, SpeCon};

fn completions(run: &SharingRun) -> Vec<f64> {
    run.trials.iter().map(|trial| (trial.completion * 10.0).round() / 10.0).collect()
}

#[test]
fn equal_cpu_shares_give_the_times_of_the_thesis() {
    let run = SharedHosts::one(CpuSharePolicy::Equal).run(&SCHEDULE, 1);
    assert_eq!(completions(&run), [394.0, 240.4, 84.6]);
    assert!((run.makespan - 394.0).abs() < 1e-6);
}

#[test]
fn flowcon_meets_the_table_of_the_thesis() {
    let equal = SharedHosts::one(CpuSharePolicy::Equal).run(&SCHEDULE, 1);
    let mut distance = 0.0;
    for (alpha, interval, earlier) in CELLS {
        let policy = FlowCon {
            alpha,
            interval: Micros::from_secs(interval),
            longest_interval: Micros::from_secs(16 * interval),
            ..FlowCon::thesis()
        };
        let mut mean = 0.0;
        for seed in 1..=5 {
            let run = SharedHosts::one(CpuSharePolicy::FlowCon(policy)).run(&SCHEDULE, seed);
            let change = |n: usize| run.trials[n].completion / equal.trials[n].completion - 1.0;
            mean -= 100.0 * change(2) / 5.0;
            assert!(change(1) < 0.02, "the second job");
            assert!((run.makespan / equal.makespan - 1.0).abs() < 0.015, "all three");
        }
        distance += (mean - earlier).abs() / 10.0;
    }
    assert!(distance < 7.0, "{distance} percentage points");
}

#[test]
fn one_trial_a_host_is_done_after_its_work() {
    let trials = [10.0, 4.0, 6.0].map(|work| SharedTrial { arrival: 0.0, work, curve: Curve::VAE });
    let run = |hosts, queue| completions(&Exclusive { hosts, queue }.run(&trials));
    assert_eq!(run(1, Queue::FirstCome), [10.0, 14.0, 20.0]);
    assert_eq!(run(1, Queue::ShortestRemaining(100.0)), [20.0, 4.0, 10.0]);
    assert_eq!(run(2, Queue::FirstCome), [10.0, 4.0, 10.0]);
    // Hops of 5: 10, then 6 (of 5, 4, 6), then 5.
    assert_eq!(run(1, Queue::LongestRemaining(5.0)), [15.0, 19.0, 20.0]);
}

#[test]
fn specon_worsens_nothing_where_trials_are_placed_well() {
    let arrivals = Arrivals {
        trials: 20,
        within: Some(300.0),
        every: 0.0,
        work: Work::Uniform(70.0, 300.0),
        curves: vec![Curve::VAE, Curve::GRU, Curve::BIDIRECTIONAL],
    };
    let mean = |residency, of: fn(&SharingRun) -> f64| -> f64 {
        let hosts = SharedHosts { hosts: 4, residency, ..SharedHosts::one(CpuSharePolicy::Equal) };
        (1..=10).map(|seed| of(&hosts.run(&arrivals.draw(seed), seed))).sum()
    };
    for rules in [SpeCon::thesis(), SpeCon::default()] {
        for of in [SharingRun::mean_completion, |run: &SharingRun| run.makespan] {
            assert!(mean(Residency::SpeCon(rules), of) < 1.01 * mean(Residency::Stay, of));
        }
    }
}

fn residency() -> impl Strategy<Value = Residency> {
    let listing =
        prop_oneof![Just(Listing::Printed), Just(Listing::Thesis), Just(Listing::Improved)];
    let specon = (listing, 0.0..0.5_f64, 0..3_u32, 5..40_u64, any::<bool>());
    prop_oneof![
        1 => Just(Residency::Stay),
        1 => (1.0..60.0_f64).prop_map(Residency::ShortestRemaining),
        4 => specon.prop_map(|(listing, alpha, confirm, interval, absolute)| {
            let interval = Micros::from_secs(interval);
            Residency::SpeCon(SpeCon { alpha, listing, confirm, interval, absolute, ..SpeCon::default() })
        }),
    ]
}

fn cpu_shares() -> impl Strategy<Value = CpuSharePolicy> {
    let apply = prop_oneof![Just(Apply::Weight), Just(Apply::Cap)];
    let order = prop_oneof![Just(Order::ShortestRemaining), Just(Order::LeastAttained)];
    prop_oneof![
        Just(CpuSharePolicy::Equal),
        apply.prop_map(|apply| CpuSharePolicy::FlowCon(FlowCon { apply, ..FlowCon::thesis() })),
        Just(CpuSharePolicy::FlowCon(FlowCon::default())),
        order.prop_map(|order| CpuSharePolicy::First(First::new(order))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_trial_ends_and_moves_once_of_each_kind(
        residency in residency(),
        cpu_shares in cpu_shares(),
        hosts in 1..5_u32,
        trials in 1..12_u32,
        random in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let placement = if random { Placement::Random } else { Placement::FewestResidents };
        let world = SharedHosts { hosts, placement, residency, ..SharedHosts::one(cpu_shares) };
        let arrivals = Arrivals {
            trials,
            within: Some(100.0),
            every: 0.0,
            work: Work::Uniform(10.0, 120.0),
            curves: vec![Curve::VAE, Curve::GRU],
        };
        let trials = arrivals.draw(seed);
        let run = world.run(&trials, seed);
        prop_assert_eq!(&run, &world.run(&trials, seed));
        for (trial, ended) in trials.iter().zip(&run.trials) {
            prop_assert!(ended.completion >= trial.work - 1e-6);
            prop_assert!(ended.usable <= ended.completion + 1e-6);
        }
        for n in 0..trials.len() {
            for kind in [Kind::Speculative, Kind::Rebalance] {
                let moves = run.moves.iter().filter(|moved| moved.trial == n && moved.kind == kind);
                prop_assert!(moves.count() <= 1);
            }
        }
        prop_assert!(run.moves.iter().all(|moved| moved.from != moved.to));
        let caps = matches!(cpu_shares, CpuSharePolicy::FlowCon(FlowCon { apply: Apply::Cap, .. }));
        // Weights leave nothing idle.
        prop_assert!(caps || run.used > 0.999, "{}", run.used);
        prop_assert!(run.residents.iter().all(|(_, counts)| counts.iter().sum::<usize>() <= trials.len()));
        prop_assert_eq!(run.residents.last().map(|(_, counts)| counts.iter().sum::<usize>()), Some(0));
    }
}
