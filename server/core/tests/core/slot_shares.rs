//! Several jobs at once get slot time by their slot shares, whatever their units take.

use crate::support::{Bench, data, demand, done, request, spec};
use proptest::prelude::*;
use sojourn_core::{Answer, By, Command, Effect, Envelope, ReplyTo};
use sojourn_protocol::{
    api::{HeldState, WorkRequest},
    digest::Digest,
    ids::{HostId, JobId},
    quotas::TokenQuotas,
    report::Outcome,
    time::UnixMillis,
    tokens::{Rights, TokenGrant, TokenRequest},
    unit::Lease,
};
use std::collections::BTreeMap;

const TO: ReplyTo = ReplyTo(1);
/// More than any test trains.
const EPOCHS: u32 = 1_000_000;

/// Machines of one slot each, whose units take as long as their job says.
struct Fleet {
    bench: Bench,
    hosts: u64,
    /// Milliseconds of a unit of each job.
    takes: Vec<u64>,
    /// Running leases, by the time of their end.
    running: BTreeMap<(u64, HostId), Lease>,
    /// Milliseconds of slots that each job has had since the last reset.
    used: Vec<u64>,
}

impl Fleet {
    fn new(hosts: u64) -> Self {
        let mut bench = Bench::with_job(1, 1);
        bench.apply(Command::Cancel { to: TO, job: JobId(1) });
        for n in 3..=hosts {
            let name = n.to_string();
            let token_sha256 = Digest::of(name.as_bytes());
            bench.events(Command::Enrol { to: TO, name, token_sha256 });
        }
        Self { bench, hosts, takes: vec![0], running: BTreeMap::new(), used: vec![0] }
    }

    /// One more job of so many trials, whose units take `takes`.
    fn submit(&mut self, trials: u32, takes: u64) {
        self.submit_placed(trials, takes, "");
    }

    /// With this in its `[placement]`.
    fn submit_placed(&mut self, trials: u32, takes: u64, placement: &str) {
        let more = format!("[placement]\n{placement}");
        self.bench.submit_with(trials, EPOCHS, true, &more).unwrap();
        self.takes.push(takes);
        self.used = vec![0; self.takes.len()];
    }

    /// A user who may submit, with this part of slot time.
    fn user(&mut self, name: &str, slot_share: u32) -> By {
        let grant = TokenGrant::Access { rights: Rights::Submit };
        let quotas =
            TokenQuotas { jobs: Some(100), slot_share: Some(slot_share), ..TokenQuotas::default() };
        let label = name.parse().unwrap();
        let request = TokenRequest { label, grant, lifetime: None, quotas };
        let sha256 = Digest::of(name.as_bytes());
        let create = Command::CreateToken { to: TO, request, sha256, by: None };
        let Answer::Token(token) = self.bench.answer(create).unwrap() else { panic!("no token") };
        By::Token(token.token)
    }

    /// One more job of a user.
    fn submit_of(&mut self, by: By, trials: u32, takes: u64) {
        let (spec, data) = (Box::new(spec(trials, EPOCHS, "")), Box::new(data()));
        let submit = Command::Submit { to: TO, spec, data, again: true, nonce: None };
        let command = Box::new(submit);
        self.bench.answer(Command::OnBehalf { to: TO, by, command }).unwrap();
        self.takes.push(takes);
        self.used.push(0);
    }

    /// Milliseconds of slots that a user's jobs have had since the last reset.
    fn used_by(&self, by: By) -> u64 {
        let jobs = self.bench.core.state().jobs.values().filter(|job| job.owner == Some(by));
        jobs.map(|job| self.used[usize::try_from(job.id.0).unwrap() - 1]).sum()
    }

    /// Units end one after the other for so many milliseconds, while all machines are busy.
    fn work_for(&mut self, millis: u64) {
        let end = self.bench.now + millis;
        while self.bench.now < end {
            assert!(self.ask(), "no slot stands idle");
            self.step();
        }
    }

    /// Every idle machine asks; says whether all of them got something.
    fn ask(&mut self) -> bool {
        let idle = (1..=self.hosts).map(HostId);
        let busy = |fleet: &Self, host| fleet.running.keys().any(|(_, other)| *other == host);
        let mut all = true;
        for host in idle {
            if busy(self, host) {
                continue;
            }
            let ask = Command::Ask { to: TO, host, request: request(1, Vec::new()) };
            let Answer::Work(work) = self.answer(ask) else { panic!("no work answer") };
            all &= !work.leases.is_empty();
            for lease in work.leases {
                let ends = self.bench.now + self.takes[index(&lease)];
                self.running.insert((ends, host), lease);
            }
        }
        all
    }

    /// The next unit ends, and its result is assimilated.
    fn step(&mut self) {
        let ((at, host), lease) = self.running.pop_first().unwrap();
        self.bench.now = at;
        let job = index(&lease);
        self.used[job] += self.takes[job];
        let mut report = done(&lease);
        let micros = self.takes[job] * 1000;
        let mut uploaded = None;
        match &mut report.outcome {
            Outcome::Trained(trained) => {
                trained.train_micros = micros;
                uploaded = Some(trained.checkpoint);
            }
            Outcome::Evaluated(evaluated) => evaluated.train_micros = micros,
            Outcome::Failed(_) => {}
        }
        self.answer(Command::Report { to: TO, host, report, uploaded });
        if let Answer::Assimilation(Some(unit)) =
            self.answer(Command::TakeAssimilation { to: TO, losses: true })
        {
            let (lease, version) = (unit.lease, unit.version);
            let checkpoint = unit.trained.checkpoint;
            self.answer(Command::OfferAssimilated {
                to: TO,
                lease,
                version,
                checkpoint,
                merged: None,
            });
        }
    }

    /// Without the invariants, whose cost grows with the history.
    fn answer(&mut self, command: Command) -> Answer {
        let at = UnixMillis(self.bench.now);
        let effects =
            self.bench.core.apply(Envelope { at, seed: self.bench.now, command }).unwrap();
        let mut replies = effects.into_iter().filter_map(|effect| match effect {
            Effect::Reply { to: TO, answer, .. } => Some(*answer.unwrap()),
            _ => None,
        });
        replies.next().unwrap()
    }
}

fn index(lease: &Lease) -> usize {
    usize::try_from(lease.unit.job().0).unwrap() - 1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn jobs_get_the_same_slot_time_whatever_their_units_take(
        hosts in 2u64..6,
        first in 10u64..200,
        second in 10u64..200,
        alone in 0usize..60,
    ) {
        let trials = u32::try_from(hosts).unwrap() + 1;
        let mut fleet = Fleet::new(hosts);
        fleet.submit(trials, first);
        for _ in 0..alone {
            prop_assert!(fleet.ask(), "no slot stands idle");
            fleet.step();
        }
        // The second job comes: neither starves, nor is made to wait for what was before.
        fleet.submit(trials, second);
        let bound = 2 * (hosts + 1) * (first + second);
        let end = fleet.bench.now + 10 * bound;
        while fleet.bench.now < end {
            prop_assert!(fleet.ask(), "no slot stands idle");
            fleet.step();
            let (one, other) = (fleet.used[1], fleet.used[2]);
            prop_assert!(one.abs_diff(other) <= bound, "{one} ms and {other} ms, {bound} ms apart");
        }
        prop_assert!(fleet.used[1] + fleet.used[2] > 5 * bound, "the bound says something");
    }
}

#[test]
fn a_job_with_one_trial_among_large_ones_never_waits_for_a_slot() {
    let mut fleet = Fleet::new(4);
    fleet.submit(9, 20);
    fleet.submit(9, 90);
    fleet.submit(1, 50);
    let begin = fleet.bench.now;
    for _ in 0..2_000 {
        assert!(fleet.ask(), "no slot stands idle");
        fleet.step();
    }
    let time = fleet.bench.now - begin;
    // One slot of four is less than its third; the others share the rest.
    assert!(fleet.used[3] + 200 >= time, "{:?} of {time} ms", fleet.used);
    assert!(fleet.used[1].abs_diff(fleet.used[2]) <= 2_000, "{:?}", fleet.used);
}

#[test]
fn a_job_that_was_paused_is_not_owed_what_passed_meanwhile() {
    let mut fleet = Fleet::new(2);
    fleet.submit(4, 30);
    fleet.submit(4, 30);
    fleet.bench.apply(Command::Pause { to: TO, job: JobId(2), now: false });
    for _ in 0..500 {
        assert!(fleet.ask(), "the other job uses all slots");
        fleet.step();
    }
    assert_eq!(fleet.used[1], 0);
    fleet.bench.apply(Command::Resume { to: TO, job: JobId(2) });
    fleet.used.fill(0);
    for _ in 0..100 {
        fleet.ask();
        fleet.step();
        assert!(fleet.used[1].abs_diff(fleet.used[2]) <= 180, "{:?}", fleet.used);
    }
}

#[test]
fn slot_time_goes_by_slot_shares() {
    let mut fleet = Fleet::new(4);
    fleet.submit_placed(9, 30, "share = 3");
    fleet.submit(9, 70);
    for _ in 0..1_000 {
        assert!(fleet.ask(), "no slot stands idle");
        fleet.step();
    }
    let (three, one) = (fleet.used[1], fleet.used[2]);
    assert!(three.abs_diff(3 * one) <= 3 * 5 * 100, "{three} ms and {one} ms");
}

#[test]
fn slot_shares_hold_within_five_percent_over_a_minute() {
    let mut fleet = Fleet::new(12);
    fleet.submit_placed(24, 1_900, "share = 3");
    fleet.submit(24, 700);
    for _ in 0..20 {
        fleet.ask();
        fleet.step();
    }
    let begun = fleet.bench.now;
    fleet.used.fill(0);
    while fleet.bench.now < begun + 60_000 {
        assert!(fleet.ask(), "no slot stands idle");
        fleet.step();
    }
    let (three, all) = (fleet.used[1], fleet.used[1] + fleet.used[2]);
    assert!((700..=800).contains(&(three * 1000 / all)), "{three} of {all} ms");
}

#[test]
fn a_higher_priority_is_served_before_a_lower_one() {
    let mut fleet = Fleet::new(3);
    fleet.submit(9, 20);
    fleet.submit_placed(2, 20, "priority = 1");
    for _ in 0..300 {
        assert!(fleet.ask(), "what it can't use goes to the other");
        fleet.step();
    }
    let time = fleet.bench.now;
    fleet.used.fill(0);
    for _ in 0..300 {
        assert!(fleet.ask());
        fleet.step();
    }
    let time = fleet.bench.now - time;
    assert!(fleet.used[2] + 200 >= 2 * time, "{:?} of {time} ms", fleet.used);
    assert!(fleet.used[1] + fleet.used[2] + 200 >= 3 * time, "{:?} of {time} ms", fleet.used);
    fleet.submit_placed(9, 20, "priority = 2");
    fleet.ask();
    for _ in 0..100 {
        fleet.step();
        fleet.ask();
    }
    assert!(fleet.used[1] + fleet.used[2] <= 6 * 20, "{:?}", fleet.used);
}

#[test]
fn no_more_machines_work_for_a_job_than_it_wants() {
    let mut fleet = Fleet::new(4);
    fleet.submit_placed(9, 20, "max_hosts = 2");
    for _ in 0..100 {
        fleet.ask();
        assert_eq!(fleet.running.len(), 2);
        fleet.step();
    }
}

#[test]
fn an_owner_with_thirty_jobs_gets_as_much_as_one_with_a_single_job() {
    let mut fleet = Fleet::new(6);
    let (alice, bob) = (fleet.user("alice", 1), fleet.user("bob", 1));
    for _ in 0..30 {
        fleet.submit_of(alice, 2, 40);
    }
    fleet.work_for(2_000);
    fleet.submit_of(bob, 8, 70);
    fleet.used.fill(0);
    fleet.work_for(20_000);
    let (alice_used, bob_used) = (fleet.used_by(alice), fleet.used_by(bob));
    assert!(alice_used.abs_diff(bob_used) <= 7 * (40 + 70), "{alice_used} and {bob_used} ms");
    assert!(alice_used + bob_used > 6 * 19_000, "{alice_used} and {bob_used} ms");
    // And of one owner's jobs each has its part.
    let of_jobs = &fleet.used[1..31];
    let (least, most) = (of_jobs.iter().min().unwrap(), of_jobs.iter().max().unwrap());
    assert!(most - least <= 3 * 40, "{of_jobs:?}");
}

#[test]
fn slot_time_between_owners_goes_by_the_slot_shares_of_their_tokens() {
    let mut fleet = Fleet::new(4);
    let (alice, bob) = (fleet.user("alice", 1), fleet.user("bob", 3));
    for _ in 0..5 {
        fleet.submit_of(alice, 2, 30);
    }
    fleet.submit_of(bob, 6, 50);
    // The operator is an owner like others.
    fleet.submit(6, 40);
    fleet.work_for(30_000);
    let (one, three, operator) = (fleet.used_by(alice), fleet.used_by(bob), fleet.used[7]);
    assert!(three.abs_diff(3 * one) <= 3 * 5 * 100, "{one} and {three} ms");
    assert!(operator.abs_diff(one) <= 5 * 100, "{operator} and {one} ms");
}

#[test]
fn an_owner_who_had_no_jobs_is_not_owed_what_others_got_meanwhile() {
    let mut fleet = Fleet::new(4);
    let (alice, bob) = (fleet.user("alice", 1), fleet.user("bob", 1));
    fleet.submit_of(alice, 6, 30);
    fleet.submit_of(bob, 6, 30);
    fleet.work_for(1_000);
    fleet.bench.apply(Command::Pause { to: TO, job: JobId(3), now: false });
    fleet.work_for(10_000);
    // Another job, and then the one that was paused.
    fleet.submit_of(bob, 6, 30);
    fleet.bench.apply(Command::Resume { to: TO, job: JobId(3) });
    fleet.used.fill(0);
    fleet.work_for(5_000);
    let (alice_used, bob_used) = (fleet.used_by(alice), fleet.used_by(bob));
    assert!(alice_used.abs_diff(bob_used) <= 5 * 60, "{alice_used} and {bob_used} ms");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn owners_get_the_same_slot_time_whatever_their_jobs_and_units(
        hosts in 2u64..6,
        jobs in 1u64..8,
        first in 10u64..200,
        second in 10u64..200,
        alone in 0u64..2_000,
    ) {
        let trials = u32::try_from(hosts).unwrap() + 1;
        let mut fleet = Fleet::new(hosts);
        let (alice, bob) = (fleet.user("alice", 1), fleet.user("bob", 1));
        for _ in 0..jobs {
            fleet.submit_of(alice, trials, first);
        }
        fleet.work_for(alone);
        fleet.submit_of(bob, trials, second);
        fleet.used.fill(0);
        let bound = 2 * (hosts + 1) * (first + second);
        fleet.work_for(10 * bound);
        let (one, other) = (fleet.used_by(alice), fleet.used_by(bob));
        prop_assert!(one.abs_diff(other) <= bound, "{one} ms and {other} ms, {bound} ms apart");
    }
}

/// A machine of one slot that always has one unit wait for it, where it is given one. Which of its first units was of this job;
/// `None` where none was.
fn first_of(bench: &mut Bench, host: HostId, job: JobId) -> Option<usize> {
    let mut held: Vec<Lease> = Vec::new();
    for n in 0..40 {
        let holding = held.iter().map(|lease| (lease.id, HeldState::Waiting)).collect();
        let idle = u32::from(held.is_empty());
        let wanted = 2 - u32::try_from(held.len()).unwrap();
        let ask = WorkRequest { demand: vec![demand(1, idle, wanted)], ..request(0, holding) };
        held.extend(bench.ask(host, ask).leases);
        if held.is_empty() {
            continue;
        }
        let unit = held.remove(0);
        if unit.unit.job() == job {
            return Some(n);
        }
        bench.now += 100;
        bench.finish(host, &unit);
    }
    None
}

/// More trials than slots, of which each is behind in turn: its units wait in busy slots.
const BREADTH: &str = "[search]\nspread = \"breadth\"";

#[test]
fn results_are_verified_beside_a_job_whose_units_wait_in_every_slot() {
    let (first, second) = (HostId(1), HostId(2));
    let verify = "[placement]\norder = \"hop\"\nverify = { quorum = 2, rate = 1.0 }";
    let mut bench = Fleet::new(2).bench;
    bench.submit_with(1, EPOCHS, true, verify).unwrap();
    let lease = bench.lease(first);
    bench.submit_with(8, EPOCHS, true, BREADTH).unwrap();
    let unit = bench.lease(second);
    bench.now += 100;
    bench.finish(second, &unit);
    bench.finish(first, &lease);
    let checked = first_of(&mut bench, second, lease.unit.job());
    assert!(checked.is_some_and(|n| n < 10), "{checked:?}");
}

#[test]
fn a_job_in_depth_gets_its_slot_share_beside_a_job_whose_units_wait_in_every_slot() {
    let mut bench = Fleet::new(2).bench;
    bench.submit_with(8, EPOCHS, true, BREADTH).unwrap();
    let none = first_of(&mut bench, HostId(1), JobId(3));
    assert_eq!(none, None, "there is no other job yet");
    bench.submit_with(8, EPOCHS, true, "[search]\nspread = \"depth\"").unwrap();
    let begun = first_of(&mut bench, HostId(1), JobId(3));
    assert!(begun.is_some_and(|n| n < 10), "{begun:?}");
}
