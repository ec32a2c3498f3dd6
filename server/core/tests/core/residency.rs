//! Trials that stay on hosts: where they begin, who goes on with them, and when they move.

use crate::support::{Bench, HOST, JOB, OTHER, data, demand, done, hop, inventory, trained_after};
use proptest::prelude::*;
use sojourn_core::{Answer, By, Command, Event, Folded, ReplyTo};
use sojourn_protocol::{
    api::{HeartbeatRequest, Held, HeldState, LossSum, WorkRequest},
    digest::{BlobRef, Digest},
    ids::{HostId, LeaseId, TrialId},
    manifest::{DataManifest, Shard},
    report::{Outcome, Report},
    residency::{Category, MoveKind},
    time::Millis,
    unit::{Lease, Unit},
};
use std::collections::{BTreeMap, BTreeSet};

/// The loss of a trial after so many steps of so many.
type Loss = fn(trial: u32, step: u64, of: u64) -> f64;

/// A trial, the hosts between which it moved, why, and the loads of the two.
type Moved = (u32, HostId, HostId, MoveKind, (f64, f64));

/// Hosts that do what they are given, batch by batch, and say their losses with each heartbeat.
struct Fleet {
    bench: Bench,
    hosts: BTreeMap<HostId, Slots>,
    loss: Loss,
    /// Slots of all hosts, of those that are away too.
    slots: BTreeMap<HostId, u32>,
    /// The state after the records of the journal that were followed.
    state: Folded,
    followed: usize,
    /// The trial of each hop and the host that trained it, in order.
    trained: Vec<(u32, HostId)>,
}

struct Slots {
    count: u32,
    running: BTreeMap<LeaseId, Running>,
}

struct Running {
    lease: Lease,
    done: u32,
    losses: LossSum,
}

/// Batches that a slot trains in a second.
const PACE: u32 = 10;

/// Two shards of 50 batches.
fn long_shards() -> DataManifest {
    let shard = |name: &str| Shard {
        blob: BlobRef { sha256: Digest::of(name.as_bytes()), bytes: 100 },
        rows: 400,
    };
    DataManifest { train: vec![shard("l0"), shard("l1")], ..data() }
}

fn falls_evenly(_: u32, step: u64, of: u64) -> f64 {
    1.0 - step as f64 / of as f64
}

impl Fleet {
    fn new(slots: &[u32], trials: u32, epochs: u32, residency: &str, loss: Loss) -> Self {
        Self::spread("depth", slots, trials, epochs, residency, loss)
    }

    fn spread(
        spread: &str,
        slots: &[u32],
        trials: u32,
        epochs: u32,
        residency: &str,
        loss: Loss,
    ) -> Self {
        let more = format!(
            "[search]\nspread = \"{spread}\"\n[placement]\norder = \"hop\"\nresidency = {residency}\n"
        );
        let mut bench = Bench::new();
        for name in ["c", "d"].into_iter().take(slots.len().saturating_sub(2)) {
            let token_sha256 = Digest::of(name.as_bytes());
            bench.events(Command::Enrol { to: ReplyTo(1), name: name.into(), token_sha256 });
        }
        let hosts = (1u64..)
            .map(HostId)
            .zip(slots)
            .map(|(host, count)| (host, Slots { count: *count, running: BTreeMap::new() }));
        let counts = (1u64..).map(HostId).zip(slots.iter().copied()).collect();
        let state = Folded::new(bench.core.config().remember_leases);
        let mut fleet = Self {
            bench,
            hosts: hosts.collect(),
            loss,
            slots: counts,
            state,
            followed: 0,
            trained: Vec::new(),
        };
        // All are in contact before the job comes.
        fleet.ask_all();
        fleet.bench.begin_with(long_shards(), crate::support::spec(trials, epochs, &more));
        fleet
    }

    /// A second passes. Each trial that moves in it comes to a host that has a slot for it then.
    fn tick(&mut self) {
        self.pass_second();
        for record in &self.bench.journal[self.followed..] {
            self.state.fold(record).unwrap();
            let Event::TrialMoved { to, .. } = record.event else { continue };
            let trials = &self.state.jobs[&JOB].trials;
            let there = trials.iter().filter(|trial| trial.home() == Some(to) && trial.trains());
            let (there, slots) = (u32::try_from(there.count()).unwrap(), self.slots[&to]);
            assert!(there <= slots, "{there} trials stay at {to}, which has {slots} slots");
        }
        self.followed = self.bench.journal.len();
    }

    /// A host is there from now on, with so many slots.
    fn comes(&mut self, host: HostId, count: u32) {
        self.hosts.insert(host, Slots { count, running: BTreeMap::new() });
        self.slots.insert(host, count);
    }

    fn pass_second(&mut self) {
        self.bench.now += 1_000;
        for host in self.hosts.keys().copied().collect::<Vec<_>>() {
            self.train(host);
        }
        self.ask_all();
    }

    fn ask_all(&mut self) {
        for host in self.hosts.keys().copied().collect::<Vec<_>>() {
            self.ask(host);
        }
    }

    fn train(&mut self, host: HostId) {
        let (slots, loss) = (self.hosts.get_mut(&host).unwrap(), self.loss);
        for running in slots.running.values_mut() {
            let Unit::Train(hop) = &running.lease.unit else { continue };
            let more = PACE.min(hop.to_train() - running.done);
            let step = hop.start.step + u64::from(running.done + more);
            let mean = loss(hop.trial.0, step, hop.context.total_steps);
            running.losses = running.losses.plus(mean, more);
            running.done += more;
        }
        let (to, holding) = (ReplyTo(1), slots.holding());
        let beat =
            Command::Heartbeat { to, host, request: HeartbeatRequest::new(holding, Vec::new()) };
        let answer = self.apply(beat);
        let Answer::Heartbeat(answer) = answer else { panic!("{answer:?}") };
        let slots = self.hosts.get_mut(&host).unwrap();
        for dropped in answer.drop {
            slots.running.remove(&dropped);
        }
        let is_over = |running: &Running| match &running.lease.unit {
            Unit::Train(hop) => running.done == hop.to_train(),
            Unit::Evaluate(_) => true,
        };
        let over: Vec<LeaseId> = slots
            .running
            .iter()
            .filter(|(id, running)| is_over(running) || answer.stop.contains(id))
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            self.finish(host, id);
        }
    }

    /// Reports what is done of a lease.
    fn finish(&mut self, host: HostId, id: LeaseId) {
        let running = self.hosts.get_mut(&host).unwrap().running.remove(&id).unwrap();
        let report = match &running.lease.unit {
            Unit::Train(hop) => {
                self.trained.push((hop.trial.0, host));
                let mut trained = trained_after(&running.lease, running.done);
                let mean = running.losses.sum / f64::from(running.losses.batches);
                trained.train_micros = u64::from(running.done) * 1_000_000 / u64::from(PACE);
                trained.sums.loss = mean * trained.sums.rows as f64;
                // Whoever trains it comes to the same.
                let made = format!("{:?} {}", hop.base, trained.end);
                trained.checkpoint.sha256 = Digest::of(made.as_bytes());
                Report { lease: id, outcome: Outcome::Trained(trained) }
            }
            Unit::Evaluate(_) => done(&running.lease),
        };
        self.bench.report(host, report).unwrap();
        self.bench.assimilate();
    }

    fn ask(&mut self, host: HostId) {
        let slots = &self.hosts[&host];
        let idle = slots.count - u32::try_from(slots.running.len()).unwrap();
        let request = WorkRequest {
            demand: vec![demand(slots.count, idle, idle)],
            holding: slots.holding(),
            reported: Vec::new(),
            wait: Millis(0),
            inventory: Some(inventory("class")),
        };
        let answer = self.apply(Command::Ask { to: ReplyTo(1), host, request });
        let Answer::Work(answer) = answer else { panic!("{answer:?}") };
        let slots = self.hosts.get_mut(&host).unwrap();
        for lease in answer.leases {
            let losses = LossSum::default();
            slots.running.insert(lease.id, Running { lease, done: 0, losses });
        }
        answer.drop.iter().for_each(|dropped| drop(slots.running.remove(dropped)));
        for id in answer.stop {
            self.finish(host, id);
        }
    }

    fn apply(&mut self, command: Command) -> Answer {
        let effects = self.bench.apply(command);
        let answer = effects.iter().find_map(|effect| match effect {
            sojourn_core::Effect::Reply { to: ReplyTo(1), answer, .. } => {
                Some((**answer.as_ref().unwrap()).clone())
            }
            _ => None,
        });
        answer.unwrap()
    }

    fn is_over(&self) -> bool {
        self.bench.core.state().jobs[&JOB].end.is_some()
    }

    /// Works until the job has ended.
    fn run(&mut self) {
        self.until("the job has ended", Self::is_over);
    }

    /// Works until this holds.
    fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..2_000 {
            if holds(self) {
                return;
            }
            self.tick();
        }
        panic!("it never came: {what}");
    }

    /// Works until all these trials have begun.
    fn until_all_begun(&mut self, trials: u32) {
        self.until("all have begun", |fleet| (0..trials).all(|trial| fleet.home(trial).is_some()));
    }

    /// The host on which a trial stays.
    fn home(&self, trial: u32) -> Option<HostId> {
        self.bench.core.state().trial(JOB, TrialId(trial))?.home()
    }

    fn category(&self, trial: u32) -> Category {
        let trial = self.bench.core.state().trial(JOB, TrialId(trial)).unwrap();
        trial.residence.unwrap_or_default().category
    }

    fn moves(&self) -> Vec<Moved> {
        let moves = self.bench.journal.iter().filter_map(|record| match record.event {
            Event::TrialMoved { trial, from, to, kind, from_load, to_load, .. } => {
                Some((trial.0, from, to, kind, (from_load, to_load)))
            }
            _ => None,
        });
        moves.collect()
    }

    /// The hosts that trained a trial, each stay once.
    fn path(&self, trial: u32) -> Vec<HostId> {
        let mut path: Vec<HostId> =
            self.trained.iter().filter(|(of, _)| *of == trial).map(|(_, host)| *host).collect();
        path.dedup();
        path
    }
}

impl Slots {
    fn holding(&self) -> Vec<Held> {
        let held = self.running.values().map(|running| {
            let (done, of) = match &running.lease.unit {
                Unit::Train(_) => (running.done, hop(&running.lease).to_train()),
                Unit::Evaluate(_) => (0, 1),
            };
            let losses = Some(running.losses).filter(|losses| losses.batches > 0);
            Held { losses, ..Held::new(running.lease.id, HeldState::Running { done, of }) }
        });
        held.collect()
    }
}

#[test]
fn a_trial_stays_on_the_host_that_began_it() {
    let mut fleet = Fleet::new(&[2, 2], 4, 3, "\"least-loaded\"", falls_evenly);
    fleet.run();
    let paths: Vec<Vec<HostId>> = (0..4).map(|trial| fleet.path(trial)).collect();
    assert!(paths.iter().all(|path| path.len() == 1), "{paths:?}");
    assert_eq!(fleet.moves(), []);
}

#[test]
fn without_a_policy_a_trial_stays_nowhere() {
    let mut fleet = Fleet::new(&[2, 2], 4, 3, "\"none\"", falls_evenly);
    fleet.run();
    let trials = &fleet.bench.core.state().jobs[&JOB].trials;
    assert!(trials.iter().all(|trial| trial.residence.is_none()));
}

#[test]
fn of_two_hosts_that_wait_the_one_that_is_loaded_less_begins_the_next_trial() {
    // Both wait for the same work; the first would take all of it.
    let mut bench = Bench::new();
    for host in [HOST, OTHER] {
        let request = WorkRequest {
            demand: vec![demand(4, 4, 4)],
            holding: Vec::new(),
            reported: Vec::new(),
            wait: Millis(5_000),
            inventory: Some(inventory("class")),
        };
        bench.apply(Command::Ask { to: ReplyTo(10 + host.0), host, request });
    }
    let residency = "[placement]\norder = \"hop\"\nresidency = \"least-loaded\"\n";
    bench.begin_with(data(), crate::support::spec(3, 3, residency));
    let state = bench.core.state();
    let live = |host: HostId| state.hosts[&host].live.len();
    assert!(live(HOST) > 0 && live(OTHER) > 0, "{} and {}", live(HOST), live(OTHER));
}

#[test]
fn a_trial_whose_host_is_gone_stays_on_the_next_one() {
    let mut fleet = Fleet::new(&[1, 1], 2, 3, "\"least-loaded\"", falls_evenly);
    fleet.tick();
    fleet.tick();
    let on_other = (0..2).find(|trial| fleet.home(*trial) == Some(OTHER)).unwrap();
    fleet.hosts.remove(&OTHER);
    fleet.run();
    assert_eq!(fleet.home(on_other), Some(HOST));
    assert_eq!(fleet.path(on_other).last(), Some(&HOST));
    assert_eq!(fleet.moves(), [], "nobody decided it");
}

#[test]
fn a_host_with_room_goes_on_with_a_trial_whose_host_has_too_many() {
    // In breadth one slot begins all trials, before another host comes.
    let mut fleet = Fleet::spread("breadth", &[1], 3, 4, "\"least-loaded\"", falls_evenly);
    fleet.until_all_begun(3);
    assert!((0..3).all(|trial| fleet.home(trial) == Some(HOST)));
    fleet.hosts.insert(OTHER, Slots { count: 1, running: BTreeMap::new() });
    fleet.run();
    let gone: Vec<u32> = (0..3).filter(|trial| fleet.path(*trial) == [HOST, OTHER]).collect();
    assert!(!gone.is_empty(), "{:?}", fleet.trained);
    // Nothing came back to the host that had too many.
    assert!((0..3).all(|trial| fleet.path(trial).len() <= 2), "{:?}", fleet.trained);
}

/// Trial 0 has all its loss behind it after a tenth of its steps; the others learn to the end.
fn first_converges(trial: u32, step: u64, of: u64) -> f64 {
    let part = step as f64 / of as f64;
    match trial {
        0 => 0.1 + (0.9 - 9.0 * part).max(0.0),
        _ => 1.0 - 0.9 * part,
    }
}

#[test]
fn a_trial_that_has_converged_moves_out_of_the_way_of_those_that_learn() {
    let specon = "{ policy = \"specon\", interval = \"2s\" }";
    let mut fleet = Fleet::new(&[4], 4, 20, specon, first_converges);
    fleet.until_all_begun(4);
    // Another host comes.
    fleet.comes(OTHER, 4);
    fleet.until("a trial has moved", |fleet| !fleet.moves().is_empty());
    assert_eq!(fleet.category(0), Category::Converged);
    let [(trial, from, to, kind, (from_load, to_load))] = fleet.moves()[..] else {
        panic!("{:?}", fleet.moves())
    };
    assert_eq!((trial, from, to, kind), (0, HOST, OTHER, MoveKind::Speculative));
    assert!(from_load > to_load + 1.0, "{from_load} and {to_load}");
    assert_eq!(fleet.home(0), Some(OTHER));
    // Its hop ended where it was, and the rest is trained there: each batch once, as the invariants say.
    fleet.run();
    assert_eq!(fleet.path(0), [HOST, OTHER]);
    let speculative = |of: &&(u32, _, _, _, _)| (of.0, of.3) == (0, MoveKind::Speculative);
    assert_eq!(fleet.moves().iter().filter(speculative).count(), 1, "once in its life");
}

#[test]
fn literally_read_the_listings_move_nobody() {
    let literal = "{ policy = \"specon\", interval = \"2s\", reproduction = true, alpha = 0.3, growth = \"per-trial\" }";
    let mut fleet = Fleet::new(&[4], 4, 20, literal, first_converges);
    fleet.until_all_begun(4);
    fleet.comes(OTHER, 4);
    fleet.run();
    assert_eq!(fleet.moves(), []);
    assert_eq!(fleet.category(0), Category::Watching, "it was looked at, and goes no further");
}

#[test]
fn a_host_that_is_blocked_keeps_no_trial() {
    let mut fleet = Fleet::spread("breadth", &[1, 1], 4, 3, "\"least-loaded\"", falls_evenly);
    fleet.until_all_begun(4);
    let blocked: Vec<u32> = (0..4).filter(|trial| fleet.home(*trial) == Some(OTHER)).collect();
    assert!(!blocked.is_empty());
    let block = Command::BlockHost { to: ReplyTo(1), host: OTHER, blocked: true, by: By::Server };
    fleet.apply(block);
    fleet.run();
    assert!(blocked.iter().all(|trial| fleet.path(*trial).last() == Some(&HOST)));
}

#[test]
fn who_verifies_a_hop_is_not_where_its_trial_stays() {
    let more = "\"least-loaded\"\nverify = { quorum = 2, rate = 1 }";
    let mut fleet = Fleet::new(&[1, 1], 1, 3, more, falls_evenly);
    fleet.until_all_begun(1);
    let home = fleet.home(0);
    fleet.until("the job has ended at one home", |fleet| {
        assert_eq!(fleet.home(0), home);
        fleet.is_over()
    });
    let verified = |host: HostId| fleet.trained.iter().filter(|(_, by)| *by == host).count();
    assert!(verified(HOST) > 0 && verified(OTHER) > 0, "{:?}", fleet.trained);
}

fn flat(_: u32, step: u64, of: u64) -> f64 {
    0.1 + (0.9 - 30.0 * step as f64 / of as f64).max(0.0)
}

#[test]
fn where_none_learns_any_more_hosts_with_many_give_to_those_with_few() {
    let specon = "{ policy = \"specon\", interval = \"2s\" }";
    let mut fleet = Fleet::new(&[4], 4, 20, specon, flat);
    fleet.until("none learns", |fleet| {
        (0..4).all(|trial| fleet.category(trial) == Category::Converged)
    });
    fleet.comes(OTHER, 4);
    fleet.ask_all();
    for _ in 0..3 {
        fleet.tick();
    }
    let moves = fleet.moves();
    assert_eq!(moves.len(), 2, "{moves:?}");
    assert!(moves.iter().all(|(_, from, to, kind, _)| (*from, *to, *kind)
        == (HOST, OTHER, MoveKind::Rebalance)));
    fleet.run();
}

#[test]
fn by_remaining_time_the_host_with_most_to_do_gives_some_of_it() {
    let srpt = "{ policy = \"srpt\", interval = \"2s\" }";
    let mut fleet = Fleet::new(&[4], 4, 20, srpt, falls_evenly);
    // After two hops each it is known how long they take.
    fleet.until("two hops each", |fleet| fleet.trained.len() >= 8);
    fleet.comes(OTHER, 4);
    fleet.ask_all();
    for _ in 0..3 {
        fleet.tick();
    }
    let moves = fleet.moves();
    assert!(!moves.is_empty());
    for (_, from, to, kind, (from_load, to_load)) in moves {
        assert_eq!((from, to, kind), (HOST, OTHER, MoveKind::Remaining));
        assert!(from_load > to_load);
    }
    fleet.run();
}

/// A replay of the journal comes to the same state.
fn is_journalled(bench: &Bench) -> bool {
    let mut state = Folded::new(bench.core.config().remember_leases);
    bench.journal.iter().for_each(|record| drop(state.fold(record).unwrap()));
    state == *bench.core.state()
}

fn noisy(trial: u32, step: u64, of: u64) -> f64 {
    let part = step as f64 / of as f64;
    let steep = f64::from(trial % 5) * 8.0;
    (-steep * part).exp() + 0.05 * f64::from(u32::try_from(step * 7919 % 13).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// SS1-SS6: whatever comes and goes, a trial moves once by speculation and once to rebalance at most, to hosts that are there and
    /// have room, never so that the larger of two scores rises; and the same again comes to the same.
    #[test]
    fn moves_are_few_and_never_make_it_worse(
        slots in prop::collection::vec(1u32..5, 2..4),
        trials in 2u32..9,
        policy in prop::sample::select(vec![
            "{ policy = \"specon\", interval = \"1s\" }",
            "{ policy = \"specon\", interval = \"1s\", confirm = 0, least_batches = 1, scope = \"cluster\" }",
            "{ policy = \"srpt\", interval = \"1s\" }",
            "\"least-loaded\"",
        ]),
        goes in prop::collection::vec((1u32..60, 0u64..3), 0..3),
    ) {
        let run = || {
            let mut fleet = Fleet::new(&slots, trials, 6, policy, noisy);
            let mut away = BTreeMap::new();
            for second in 0..400u32 {
                for (at, host) in &goes {
                    let host = HostId(host % u64::try_from(slots.len()).unwrap() + 1);
                    // It goes at once with what it had, and is back after a while.
                    if *at == second && fleet.hosts.len() > 1
                        && let Some(gone) = fleet.hosts.remove(&host)
                    {
                        away.insert(host, (second + 25, gone.count));
                    }
                }
                away.retain(|host, (back, count)| {
                    if *back == second {
                        fleet.comes(*host, *count);
                    }
                    *back != second
                });
                if fleet.is_over() {
                    break;
                }
                fleet.tick();
            }
            fleet
        };
        let fleet = run();
        prop_assert!(fleet.is_over());
        prop_assert!(is_journalled(&fleet.bench));
        let mut seen = BTreeSet::new();
        for (trial, from, to, kind, (from_load, to_load)) in fleet.moves() {
            prop_assert!(seen.insert((trial, kind)), "trial {} moved twice", trial);
            prop_assert!(from != to);
            prop_assert!(to_load < from_load, "{} to {}", from_load, to_load);
        }
        prop_assert_eq!(run().bench.journal, fleet.bench.journal);
    }
}
