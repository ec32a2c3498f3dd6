//! CPU shares: who has how much, and what the server hears of it.

#[path = "support/all_here.rs"]
mod all_here;
mod support;

use all_here::Disk;
use sojourn_client_core::{
    Action, Agent, AgentConfig, AskId, DeviceSlots, Event, Micros, ResultFacts, UnitCpuShare,
};
use sojourn_protocol::{
    api::Held,
    cpu_shares::{Carried, HeldCpuShare, LeaseCpuShares, List},
    digest::{BlobRef, Digest},
    ids::{JobId, LeaseId, TrialId},
    quantity::Bytes,
    spec::{Apply, CpuSharePolicy, First, FlowCon, Order},
    trainer::{Progress, UsageSample},
    unit::{Lease, Unit},
};
use std::{collections::BTreeMap, sync::Arc};
use support::{gives, lease};

/// A host of four slots that share two cores.
struct Host {
    agent: Agent,
    now: Micros,
    ask: AskId,
    /// As they were set last.
    cpu_shares: BTreeMap<LeaseId, UnitCpuShare>,
    times_set: u32,
}

impl Host {
    fn new() -> Self {
        let device = DeviceSlots { name: "cpu".into(), slots: 4 };
        let agent = Agent::new(Arc::new(AgentConfig::new(vec![device])), 7, Vec::new());
        let (cpu_shares, now) = (BTreeMap::new(), Micros::from_secs(1));
        let mut host = Self { agent, now, ask: AskId(0), cpu_shares, times_set: 0 };
        let actions = host.agent.start(host.now, &Disk);
        host.take(actions);
        host
    }

    fn tell(&mut self, event: Event) {
        let actions = self.agent.handle(self.now, event, &Disk);
        self.take(actions);
    }

    fn take(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Ask(ask) => self.ask = ask,
                Action::Fetch(blob, ..) => self.tell(Event::BlobReady(blob.sha256)),
                Action::SetCpuShares(cpu_shares) => {
                    self.cpu_shares = cpu_shares.into_iter().collect();
                    self.times_set += 1;
                }
                _ => {}
            }
        }
    }

    fn gets(&mut self, lease: Lease) {
        let id = lease.id;
        self.tell(Event::Work(self.ask, Ok(gives(vec![lease]))));
        assert!(
            self.agent.lease(id).is_some_and(|lease| lease.slot().is_some()),
            "{id} {:?}",
            self.agent.lease(id)
        );
    }

    /// Each of the units computes for a second, with this loss and CPU share of the two cores.
    fn second(&mut self, units: &[(u64, f64, f64)]) {
        self.now += Micros::from_secs(1);
        for (unit, loss, rate) in units {
            let sample = UsageSample {
                span: Micros::from_secs(1),
                busy: micros(*rate * 2.0),
                loss: Some(*loss),
                memory: Bytes(1),
                read: Bytes(0),
                written: Bytes(0),
            };
            self.tell(Event::Usage(LeaseId(*unit), sample, 2.0));
        }
        if self.agent.next_deadline().is_some_and(|at| at <= self.now) {
            self.tell(Event::Tick);
        }
    }

    fn done(&mut self, unit: u64, done: u32) {
        self.tell(Event::Progress(LeaseId(unit), Progress { done, of: 9 }));
    }

    fn weight(&self, unit: u64) -> Option<f64> {
        self.cpu_shares.get(&LeaseId(unit)).map(|cpu_share| cpu_share.weight)
    }

    fn held(&self, unit: u64) -> Option<HeldCpuShare> {
        let held: Vec<Held> = self.agent.holding(&Disk);
        held.iter().find(|held| held.lease == LeaseId(unit)).and_then(|held| held.cpu_share)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few seconds")]
fn micros(seconds: f64) -> Micros {
    Micros((seconds * 1e6) as u64)
}

fn policy(order: Order) -> CpuSharePolicy {
    CpuSharePolicy::First(First { interval: Micros::from_secs(10), ..First::new(order) })
}

/// A hop of a trial of a job.
fn hop(id: u64, (job, trial): (u64, u32), policy: Option<CpuSharePolicy>) -> Lease {
    let shard = BlobRef { sha256: Digest::of(b"shard"), bytes: 5 };
    let mut lease = lease(id, shard, 5);
    if let Unit::Train(hop) = &mut lease.unit {
        (hop.job, hop.trial) = (JobId(job), TrialId(trial));
    }
    lease.cpu_shares = policy.map(|policy| LeaseCpuShares { policy, carried: None });
    lease
}

#[test]
fn units_without_a_policy_are_left_alone() {
    let mut host = Host::new();
    host.gets(hop(1, (1, 0), None));
    host.gets(hop(2, (1, 1), Some(CpuSharePolicy::Equal)));
    for _ in 0..100 {
        host.second(&[(1, 1.0, 0.5), (2, 1.0, 0.5)]);
    }
    assert_eq!((host.times_set, host.held(1), host.held(2)), (0, None, None));
}

#[test]
fn the_trial_with_the_shortest_rest_goes_first() {
    let mut host = Host::new();
    for unit in [1, 2] {
        let trial = u32::try_from(unit).unwrap();
        host.gets(hop(unit, (1, trial), Some(policy(Order::ShortestRemaining))));
    }
    // Both take as much, and the second has done more of its nine batches.
    host.done(1, 1);
    host.done(2, 4);
    for _ in 0..12 {
        host.second(&[(1, 1.0, 0.5), (2, 1.0, 0.5)]);
    }
    // As weights the CPU shares of two add up to two.
    let (first, second) = (host.weight(1).unwrap(), host.weight(2).unwrap());
    assert!((first + second - 2.0).abs() < 1e-9 && second > 90.0 * first, "{first} {second}");
    // The first is alone again, and has what there is.
    host.tell(Event::UnitEnded(LeaseId(2), ResultFacts::default()));
    assert_eq!((host.weight(1), host.weight(2)), (Some(1.0), None));
}

#[test]
fn a_trial_whose_rest_is_not_known_yet_waits_for_nobody() {
    let mut host = Host::new();
    let srpt = policy(Order::ShortestRemaining);
    host.gets(hop(1, (1, 0), Some(srpt)));
    host.done(1, 2);
    host.second(&[(1, 1.0, 1.0)]);
    host.gets(hop(2, (1, 1), Some(srpt)));
    assert_eq!((host.weight(1), host.weight(2)), (Some(1.0), Some(1.0)));
    // It turns out to be shorter, and goes first at once.
    host.done(2, 8);
    host.second(&[(1, 1.0, 0.5), (2, 1.0, 0.5)]);
    let (first, second) = (host.weight(1).unwrap(), host.weight(2).unwrap());
    assert!(second > 90.0 * first, "{first} {second}");
}

#[test]
fn a_job_has_no_more_of_a_host_for_its_policy() {
    let mut host = Host::new();
    let las = policy(Order::LeastAttained);
    host.gets(hop(1, (1, 0), Some(las)));
    host.gets(hop(2, (1, 1), Some(las)));
    host.gets(hop(3, (2, 0), Some(las)));
    for _ in 0..30 {
        host.second(&[(1, 1.0, 0.2), (2, 1.0, 0.3), (3, 1.0, 0.5)]);
    }
    let of_first = host.weight(1).unwrap() + host.weight(2).unwrap();
    assert!((of_first - 2.0).abs() < 1e-9, "{of_first}");
    assert_eq!(host.weight(3), Some(1.0));
    assert!(host.weight(1) > host.weight(2), "the first has had less");
}

#[test]
fn what_was_seen_of_a_trial_goes_with_it() {
    let flowcon = FlowCon { interval: Micros::from_secs(5), ..FlowCon::thesis() };
    let policy = CpuSharePolicy::FlowCon(flowcon);
    let mut host = Host::new();
    host.gets(hop(1, (1, 0), Some(policy)));
    host.gets(hop(2, (1, 1), Some(policy)));
    for second in 0..30 {
        // The first has learnt all that it will.
        let loss = 1.0 - f64::from(second) / 40.0;
        host.second(&[(1, 0.1, 0.5), (2, loss, 0.5)]);
    }
    let cpu_share = host.cpu_shares.get(&LeaseId(1)).unwrap();
    assert_eq!(
        (cpu_share.list, cpu_share.cpu_share, cpu_share.cap),
        (List::Completing, 0.25, Some(0.25))
    );
    let held = host.held(1).unwrap();
    assert_eq!((held.cpu_share, held.carried.list), (0.25, List::Completing));
    assert_eq!(held.carried.attained, Micros::from_secs(30));
    assert_eq!(flowcon.apply, Apply::Cap);

    // The server hears of it with the result too, and a unit of the trial that comes here again goes on from it.
    host.tell(Event::UnitEnded(LeaseId(1), ResultFacts::default()));
    assert_eq!(host.held(1).unwrap().carried, held.carried);
    host.gets(hop(3, (1, 0), Some(policy)));
    assert_eq!(host.held(3).unwrap().carried.attained, held.carried.attained);

    // Elsewhere it is the lease that says so.
    let mut other = Host::new();
    let mut lease = hop(4, (1, 0), Some(policy));
    lease.cpu_shares = Some(LeaseCpuShares { policy, carried: Some(held.carried) });
    other.gets(lease);
    let carried: Carried = other.held(4).unwrap().carried;
    assert_eq!((carried.list, carried.highest), (List::Completing, Some(0.1)));
    assert_eq!(carried.attained, Micros::from_secs(30));
}

#[test]
fn a_trial_of_several_units_at_once_counts_once() {
    let mut host = Host::new();
    let las = policy(Order::LeastAttained);
    for unit in [1, 2] {
        host.gets(hop(unit, (1, 0), Some(las)));
    }
    host.gets(hop(3, (1, 1), Some(las)));
    for _ in 0..20 {
        host.second(&[(1, 1.0, 0.3), (2, 1.0, 0.3), (3, 1.0, 0.4)]);
    }
    assert_eq!(host.held(1).unwrap().carried.attained, Micros::from_secs(12));
    let weights = [1, 2, 3].map(|unit| host.weight(unit).unwrap());
    assert!((weights.iter().sum::<f64>() - 3.0).abs() < 1e-9, "{weights:?}");
    assert!((weights[0] - weights[1]).abs() < 1e-9 && weights[0] > weights[2], "{weights:?}");
}

#[test]
fn hops_shorter_than_an_interval_do_not_begin_planning_anew() {
    let mut host = Host::new();
    let policy = policy(Order::LeastAttained);
    // The first trial trains hop after hop of two seconds; the second comes later, and has had less.
    let mut unit = 1;
    host.gets(hop(unit, (1, 0), Some(policy)));
    host.gets(hop(100, (1, 1), Some(policy)));
    for _ in 0..8 {
        host.second(&[(unit, 1.0, 0.9), (100, 1.0, 0.1)]);
        host.second(&[(unit, 1.0, 0.9), (100, 1.0, 0.1)]);
        host.tell(Event::UnitEnded(LeaseId(unit), ResultFacts::default()));
        unit += 1;
        host.gets(hop(unit, (1, 0), Some(policy)));
    }
    let (often, seldom) = (host.weight(unit).unwrap(), host.weight(100).unwrap());
    assert!(seldom > 90.0 * often, "{often} {seldom}");
    assert_eq!(host.held(unit).unwrap().carried.attained, micros(8.0 * 2.0 * 0.9 * 2.0));
    // A trial that doesn't come back is gone after an interval.
    host.tell(Event::UnitEnded(LeaseId(unit), ResultFacts::default()));
    for _ in 0..25 {
        host.second(&[(100, 1.0, 0.1)]);
    }
    assert_eq!(host.cpu_shares.get(&LeaseId(100)).map(|cpu_share| cpu_share.cpu_share), Some(1.0));
}
