//! Properties that hold of CPU shares whatever trials come, go and report.

use proptest::prelude::*;
use sojourn_protocol::{
    ids::{JobId, TrialId},
    quantity::Micros,
};
use sojourn_shares::{
    Apply, Carried, CpuSharePolicy, Demand, Estimate, First, FlowCon, List, Order, Planner, Sample,
    Threshold, TrialKey, divide,
};
use std::collections::BTreeMap;

const TRIALS: u32 = 6;

const fn trial(n: u32) -> TrialKey {
    (JobId(1), TrialId(n))
}

#[derive(Debug, Clone)]
enum Step {
    /// These run from now on, by the bits of the number.
    Members(u32),
    Record(u32, Sample),
    Estimate(u32, Estimate),
    /// So many milliseconds pass.
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let loss = prop_oneof![
        4 => (0.0..2.0_f64).prop_map(Some),
        1 => Just(None),
        1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(-1.0), Just(0.0), Just(1e300)]
            .prop_map(Some),
    ];
    let sample = (0..3_000_000_u64, 0..9_000_000_u64, loss).prop_map(|(span, busy, loss)| Sample {
        span: Micros(span),
        busy: Micros(busy),
        loss,
    });
    let time = prop::option::of((0..10_000_000_000_u64).prop_map(Micros));
    prop_oneof![
        1 => (0..1_u32 << TRIALS).prop_map(Step::Members),
        8 => (0..TRIALS, sample).prop_map(|(n, sample)| Step::Record(n, sample)),
        1 => (0..TRIALS, time.clone(), time)
            .prop_map(|(n, whole, remaining)| Step::Estimate(n, Estimate { whole, remaining })),
        8 => (0..20_000_u64).prop_map(Step::Wait),
    ]
}

fn flowcon() -> impl Strategy<Value = FlowCon> {
    let threshold = prop_oneof![Just(Threshold::PerSecond), Just(Threshold::PerTrial)];
    (1..60_u64, 0.0..1.0_f64, 1.0..8.0_f64, any::<bool>(), threshold).prop_map(
        |(interval, alpha, beta, absolute, threshold)| FlowCon {
            alpha,
            threshold,
            interval: Micros::from_secs(interval),
            beta,
            longest_interval: Micros::from_secs(interval * 16),
            absolute,
            apply: Apply::Weight,
        },
    )
}

fn place(list: List) -> u8 {
    match list {
        List::New => 0,
        List::Watching => 1,
        List::Completing => 2,
    }
}

/// The state that a test keeps of a trial beside the planner.
struct Seen {
    list: List,
    moved: Micros,
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flowcon_keeps_lists_cpu_shares_and_its_timer_in_bounds(
        policy in flowcon(),
        steps in prop::collection::vec(step(), 1..400),
    ) {
        let mut planner = Planner::new(CpuSharePolicy::FlowCon(policy), 2.0);
        let mut now = Micros::ZERO;
        let mut seen = BTreeMap::new();
        for step in steps {
            match step {
                Step::Wait(millis) => {
                    now += Micros::from_millis(millis);
                    planner.run(now);
                }
                Step::Record(n, sample) => planner.record(trial(n), sample),
                Step::Estimate(n, estimate) => planner.estimate(trial(n), estimate),
                Step::Members(bits) => {
                    let members: Vec<_> = (0..TRIALS)
                        .filter(|n| bits & (1 << n) != 0)
                        .map(|n| (trial(n), Carried::default()))
                        .collect();
                    seen.retain(|of, _| members.iter().any(|(trial, _)| trial == of));
                    let changes = members.len() != seen.len()
                        || members.iter().any(|(trial, _)| !seen.contains_key(trial));
                    let mut came = Vec::new();
                    for (trial, _) in &members {
                        seen.entry(*trial).or_insert_with(|| {
                            came.push(*trial);
                            Seen { list: List::New, moved: now }
                        });
                    }
                    let set = planner.set_members(now, &members);
                    if changes && !members.is_empty() {
                        prop_assert_eq!(planner.due(), Some(now + policy.interval));
                    }
                    for trial in came {
                        prop_assert!(set.iter().any(|set| set.trial == trial));
                    }
                }
            }
            if let Some(due) = planner.due() {
                prop_assert!(due - now <= policy.longest_interval);
            }
            let members = u32::try_from(seen.len()).unwrap();
            for (trial, seen) in &mut seen {
                let list = planner.list(*trial).unwrap();
                if list != seen.list {
                    prop_assert!(list == List::New || place(list) == place(seen.list) + 1);
                    prop_assert!(now - seen.moved >= policy.interval);
                    (seen.list, seen.moved) = (list, now);
                }
                let cpu_share = planner.cpu_share(*trial).unwrap().get();
                let least = 1.0 / (policy.beta * f64::from(members));
                prop_assert!(cpu_share >= least.min(1.0) && cpu_share <= 1.0, "{}", cpu_share);
            }
            prop_assert_eq!(planner.due().is_some(), !seen.is_empty());
        }
    }

    #[test]
    fn one_trial_goes_first_at_a_time(
        order in prop_oneof![Just(Order::ShortestRemaining), Just(Order::LeastAttained)],
        steps in prop::collection::vec(step(), 1..100),
    ) {
        let mut planner = Planner::new(CpuSharePolicy::First(First::new(order)), 1.0);
        let mut now = Micros::ZERO;
        // Of the trials that are here: is their rest known?
        let mut known: BTreeMap<u32, bool> = BTreeMap::new();
        for step in steps {
            let mut is_planned = false;
            match step {
                Step::Wait(millis) => {
                    now += Micros::from_millis(millis);
                    is_planned = planner.due().is_some_and(|due| due <= now);
                    planner.run(now);
                }
                Step::Record(n, sample) => planner.record(trial(n), sample),
                Step::Estimate(n, estimate) => {
                    planner.estimate(trial(n), estimate);
                    known.entry(n).and_modify(|known| *known = estimate.remaining.is_some());
                }
                Step::Members(bits) => {
                    let present = |n: &u32| bits & (1 << n) != 0;
                    let members: Vec<_> = (0..TRIALS)
                        .filter(present)
                        .map(|n| (trial(n), Carried::default()))
                        .collect();
                    planner.set_members(now, &members);
                    known.retain(|n, _| present(n));
                    (0..TRIALS).filter(present).for_each(|n| {
                        known.entry(n).or_insert(false);
                    });
                }
            }
            let full = |n: &u32| planner.cpu_share(trial(*n)).is_some_and(|cpu_share| cpu_share.get() >= 1.0);
            let all = known.keys().filter(|n| full(n)).count();
            match order {
                Order::LeastAttained => prop_assert_eq!(all, known.len().min(1)),
                // Those of which nothing is known wait for nobody.
                Order::ShortestRemaining => {
                    prop_assert!(all >= known.len().min(1));
                    let of_known = known.iter().filter(|(n, known)| **known && full(n)).count();
                    prop_assert!(!is_planned || of_known <= 1);
                }
            }
        }
    }

    #[test]
    fn a_busy_processor_is_used_whole_and_never_more(
        capacity in 0.1..8.0_f64,
        demands in prop::collection::vec((0.01..1.0_f64, 0.0..4.0_f64), 1..10),
    ) {
        let demands: Vec<Demand> =
            demands.into_iter().map(|(weight, most)| Demand { weight, most }).collect();
        let rates = divide(capacity, &demands);
        let (used, wanted): (f64, f64) =
            (rates.iter().sum(), demands.iter().map(|demand| demand.most).sum());
        prop_assert!(used <= capacity + 1e-9);
        prop_assert!(used >= capacity.min(wanted) - 1e-9, "{} of {}", used, capacity);
        // Nobody who has less than they could use has less for their weight than another.
        let per_weight = |n: usize| rates[n] / demands[n].weight;
        for (n, demand) in demands.iter().enumerate() {
            prop_assert!(rates[n] <= demand.most + 1e-9);
            if rates[n] < demand.most - 1e-9 {
                for other in 0..demands.len() {
                    prop_assert!(per_weight(n) >= per_weight(other) - 1e-9);
                }
            }
        }
    }

    #[test]
    fn the_same_samples_give_the_same_cpu_shares(policy in flowcon(), samples in prop::collection::vec((0..3_u32, 0.0..1.0_f64), 1..200)) {
        let run = || {
            let mut planner = Planner::new(CpuSharePolicy::FlowCon(policy), 1.0);
            let members: Vec<_> = (0..3).map(|n| (trial(n), Carried::default())).collect();
            let mut set = planner.set_members(Micros::ZERO, &members);
            for (time, (n, loss)) in samples.iter().enumerate() {
                let second = Micros::from_secs(1);
                planner.record(trial(*n), Sample { span: second, busy: second, loss: Some(*loss) });
                set.extend(planner.run(Micros::from_secs(u64::try_from(time).unwrap())));
            }
            set
        };
        prop_assert_eq!(run(), run());
    }
}
