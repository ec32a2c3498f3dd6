//! FlowCon's algorithms on the cases that the thesis describes, and on those in which its text is silent.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use sojourn_protocol::{
    ids::{JobId, TrialId},
    quantity::Micros,
};
use sojourn_shares::{
    Apply, Carried, CpuSharePolicy, Demand, Estimate, First, FlowCon, List, Order, Planner, Sample,
    Threshold, TrialKey, divide,
};

const INTERVAL: u64 = 30;

const fn trial(n: u32) -> TrialKey {
    (JobId(1), TrialId(n))
}

fn new(n: u32) -> (TrialKey, Carried) {
    (trial(n), Carried::default())
}

const fn second(time: u64) -> Micros {
    Micros::from_secs(time)
}

fn sample(loss: f64) -> Sample {
    Sample { span: second(1), busy: second(1), loss: Some(loss) }
}

/// A host of one core under the thesis' parameters, and its time in seconds.
struct Host {
    planner: Planner,
    now: u64,
    /// When CPU shares were planned by the timer.
    plans: Vec<u64>,
}

impl Host {
    fn new(policy: FlowCon, trials: &[u32]) -> Self {
        let mut planner = Planner::new(CpuSharePolicy::FlowCon(policy), 1.0);
        let members: Vec<_> = trials.iter().map(|n| new(*n)).collect();
        planner.set_members(Micros::ZERO, &members);
        Self { planner, now: 0, plans: Vec::new() }
    }

    /// So many seconds in which each trial has the loss that is said of it at that second.
    fn run(&mut self, seconds: u64, losses: &[(u32, &dyn Fn(u64) -> f64)]) {
        for _ in 0..seconds {
            self.now += 1;
            for (n, loss) in losses {
                self.planner.record(trial(*n), sample(loss(self.now)));
            }
            let due = self.planner.due();
            self.planner.run(second(self.now));
            if due.is_some_and(|due| due <= second(self.now)) {
                self.plans.push(self.now);
            }
        }
    }

    fn list(&self, n: u32) -> List {
        self.planner.list(trial(n)).unwrap()
    }

    fn cpu_share(&self, n: u32) -> f64 {
        self.planner.cpu_share(trial(n)).unwrap().get()
    }
}

fn flat(_: u64) -> f64 {
    0.2
}

/// Sheds a tenth of its first loss in each second, up to ten seconds.
fn steep(now: u64) -> f64 {
    let now = u32::try_from(now).unwrap();
    1.0 - 0.1 * f64::from(now.min(10))
}

#[test]
fn a_converged_trial_leaves_three_quarters_to_one_that_learns() {
    let mut host = Host::new(FlowCon::thesis(), &[0]);
    host.run(60, &[(0, &flat)]);
    assert_eq!(host.list(0), List::Completing);
    let set = host.planner.set_members(second(60), &[new(0), new(1)]);
    let set: Vec<(TrialKey, f64)> =
        set.iter().map(|set| (set.trial, set.cpu_share.get())).collect();
    assert_eq!(set, [(trial(1), 1.0)], "nothing is known yet of the other");
    host.run(30, &[(0, &flat), (1, &|now| steep(now - 60))]);
    assert_eq!((host.cpu_share(0), host.cpu_share(1)), (0.25, 1.0));

    let capped = |cpu_share| Demand { weight: 1.0, most: cpu_share };
    assert_eq!(divide(1.0, &[capped(0.25), capped(1.0)]), [0.25, 0.75]);
}

#[test]
fn a_trial_below_the_threshold_goes_one_list_further_at_each_plan() {
    let mut host = Host::new(FlowCon::thesis(), &[0]);
    host.run(29, &[(0, &flat)]);
    assert_eq!(host.list(0), List::New);
    host.run(1, &[(0, &flat)]);
    assert_eq!(host.list(0), List::Watching);
    host.run(30, &[(0, &flat)]);
    assert_eq!(host.list(0), List::Completing);
    host.run(300, &[(0, &flat)]);
    assert_eq!(host.list(0), List::Completing);
}

#[test]
fn a_trial_that_learns_again_is_new_at_once() {
    let policy = FlowCon { alpha: 0.02, ..FlowCon::thesis() };
    let mut host = Host::new(policy, &[0]);
    host.run(90, &[(0, &|_| 1.0)]);
    assert_eq!(host.list(0), List::Completing);
    host.run(30, &[(0, &|_| 0.1)]);
    assert_eq!(host.list(0), List::New);
}

#[test]
fn a_loss_that_rises_is_growth_to_the_thesis_alone() {
    for (absolute, list) in [(true, List::New), (false, List::Completing)] {
        let policy = FlowCon { alpha: 0.01, absolute, ..FlowCon::thesis() };
        let mut host = Host::new(policy, &[0]);
        host.run(60, &[(0, &|now| if now > 30 { 1.0 } else { 0.1 })]);
        assert_eq!(host.list(0), list);
    }
}

#[test]
fn time_between_plans_doubles_while_nobody_learns_and_returns_with_a_new_trial() {
    let mut host = Host::new(FlowCon::thesis(), &[0]);
    host.run(2_000, &[(0, &flat)]);
    assert_eq!(host.plans, [30, 60, 120, 240, 480, 960, 1_440, 1_920]);

    let now = second(host.now);
    host.planner.set_members(now, &[new(0), new(1)]);
    assert_eq!(host.planner.due(), Some(now + second(INTERVAL)));
}

#[test]
fn arrivals_close_together_move_nobody_two_lists() {
    let mut host = Host::new(FlowCon::thesis(), &[0]);
    host.run(30, &[(0, &flat)]);
    assert_eq!(host.list(0), List::Watching);
    for (time, arrived) in [(31, 1), (37, 2), (43, 3)] {
        let members: Vec<_> = (0..=arrived).map(new).collect();
        host.planner.set_members(second(time), &members);
        assert_eq!(host.list(0), List::Watching);
        assert_eq!(host.cpu_share(arrived), 1.0);
    }
}

#[test]
fn a_trial_without_reports_is_not_classified() {
    let mut planner = Planner::new(CpuSharePolicy::FlowCon(FlowCon::thesis()), 1.0);
    planner.set_members(Micros::ZERO, &[new(0), new(1)]);
    for time in 1..=300 {
        planner.record(trial(0), Sample { loss: None, ..sample(0.0) });
        // It hardly gets the processor: what little it learns says nothing.
        planner.record(trial(1), Sample { busy: Micros(1_000), ..sample(1.0) });
        planner.run(second(time));
    }
    for n in [0, 1] {
        assert_eq!(planner.list(trial(n)), Some(List::New));
        assert_eq!(planner.cpu_share(trial(n)).unwrap().get(), 1.0);
    }
}

#[test]
fn a_loss_that_is_no_number_is_no_report() {
    let mut host = Host::new(FlowCon::thesis(), &[0]);
    host.run(300, &[(0, &|_| f64::NAN)]);
    assert_eq!((host.list(0), host.cpu_share(0)), (List::New, 1.0));
}

#[test]
fn a_threshold_of_the_whole_trial_needs_its_length() {
    let policy = FlowCon { apply: Apply::Cap, ..FlowCon::default() };
    assert_eq!(policy.threshold, Threshold::PerTrial);
    let mut host = Host::new(policy, &[0, 1]);
    let falls = |now: u64| 1.0 - 0.001 * f64::from(u32::try_from(now).unwrap());
    host.run(300, &[(0, &falls), (1, &falls)]);
    assert_eq!(host.list(0), List::New, "nothing is known of how long it takes");
    // At this pace the first would lose five times its loss, the second half of it.
    for (n, whole) in [(0, 5_000), (1, 500)] {
        let estimate = Estimate { whole: Some(second(whole)), remaining: None };
        host.planner.estimate(trial(n), estimate);
    }
    host.run(60, &[(0, &falls), (1, &falls)]);
    assert_eq!((host.list(0), host.list(1)), (List::New, List::Completing));
    // CPU shares go by what each sheds in a second.
    assert!((host.cpu_share(0) - 0.5).abs() < 1e-9 && (host.cpu_share(1) - 0.5).abs() < 1e-9);
}

#[test]
fn a_trial_keeps_what_is_known_of_it_on_another_host() {
    let mut first = Host::new(FlowCon::thesis(), &[0]);
    first.run(59, &[(0, &flat)]);
    assert_eq!(first.list(0), List::Watching);
    let carried = first.planner.carried(trial(0)).unwrap();
    let (Some(last), Some(_)) = (carried.last, carried.before) else {
        panic!("it has run for two windows")
    };
    assert!((last.loss.unwrap() - 0.2).abs() < 1e-9 && (last.busy - 1.0).abs() < 1e-9);

    let mut second_host = Planner::new(CpuSharePolicy::FlowCon(FlowCon::thesis()), 1.0);
    second_host.set_members(second(1_000), &[(trial(0), carried), new(1)]);
    assert_eq!(second_host.list(trial(0)), Some(List::Watching));
    for time in 1_001..=1_030 {
        second_host.record(trial(0), sample(0.2));
        second_host.run(second(time));
    }
    // Not blind for two windows again.
    assert_eq!(second_host.list(trial(0)), Some(List::Completing));
}

#[test]
fn the_first_has_all_but_what_keeps_the_others_alive() {
    let cpu_shares = |order, estimates: [u64; 2], attained: [u64; 2]| {
        let mut planner = Planner::new(CpuSharePolicy::First(First::new(order)), 1.0);
        planner.set_members(Micros::ZERO, &[new(0), new(1)]);
        for n in [0, 1_u32] {
            let at = usize::try_from(n).unwrap();
            let remaining = Some(second(estimates[at]));
            planner.estimate(trial(n), Estimate { whole: None, remaining });
            planner.record(trial(n), Sample { busy: second(attained[at]), ..sample(1.0) });
        }
        planner.run(second(INTERVAL));
        [0, 1].map(|n| planner.cpu_share(trial(n)).unwrap().get())
    };
    assert_eq!(cpu_shares(Order::ShortestRemaining, [9, 5], [1, 2]), [0.01, 1.0]);
    assert_eq!(cpu_shares(Order::LeastAttained, [9, 5], [1, 2]), [1.0, 0.01]);
}

#[test]
fn steep_learners_share_by_how_much_they_learn() {
    let mut host = Host::new(FlowCon { alpha: 0.001, ..FlowCon::thesis() }, &[0, 1]);
    host.run(60, &[(0, &|now| steep(now / 3)), (1, &|now| 1.0 - 0.25 * (1.0 - steep(now / 3)))]);
    assert_eq!((host.list(0), host.list(1)), (List::New, List::New));
    // Four to one; no less than a quarter.
    assert_eq!(host.cpu_share(1), 0.25);
    assert!((host.cpu_share(0) - 0.8).abs() < 1e-9, "{}", host.cpu_share(0));
}
