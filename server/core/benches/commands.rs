//! How many commands a second the core takes on one thread: 256 trials x 64 shards; in turn ten
//! heartbeats, one request, one result; events encoded as the journal does. What an assimilator asks and
//! offers for each result is done and timed, and not counted. Plans are made and taken in; making them isn't timed.
//!
//! Twice: with 1,000 hosts, of which 744 wait with their asks held open, and with 64, each of which has
//! 192 trials to choose from. Each host holds eight shards, and says so with each request.
//!
//! Prints one JSON line each. The anchor is encoding one record of a small event for each command,
//! measured in the same run.

#![expect(clippy::unwrap_used, reason = "a bench ends at what it did not expect")]
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

#[path = "support/outcome.rs"]
mod outcome;
#[path = "../../../benches/size.rs"]
mod size;
mod support;

use sojourn_core::{
    Answer, Command, Core, CoreConfig, Effect, Envelope, Event, JournalPosition, LeaseEnd, Record,
    ReplyTo,
};
use sojourn_protocol::{
    api::{HeartbeatRequest, Held, HeldState},
    digest::Digest,
    ids::{HostId, LeaseId},
    jobfile,
    report::Report,
    time::{Millis, UnixMillis},
    unit::Lease,
};
use sojourn_workgen::plan::{Iterations, Planner as _, Rollout};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

const SHARDS: u32 = 64;
/// Shards that a host holds.
const CACHED: u64 = 8;

fn main() {
    let anchor = anchor();
    for hosts in size::of([1_000, 64], [20, 4]) {
        let value = commands(hosts);
        println!(
            "{{\"name\":\"core commands, {hosts} hosts\",\"value\":{value:.0},\"unit\":\"1/s\",\
             \"anchor\":{anchor:.0},\"ratio\":{:.4}}}",
            value / anchor
        );
    }
}

/// Trials of the job.
fn trials() -> usize {
    size::of(256, 8)
}

/// Commands a second.
fn commands(hosts: u64) -> f64 {
    let mut bench = set_up(hosts);
    let busy = trials().min(usize::try_from(hosts).unwrap());
    assert_eq!(bench.held.len(), busy, "each trial is with a host");
    let mut last = HostId(0);
    (bench.commands, bench.encoded, bench.planning) = (0, 0, Duration::ZERO);
    let begun = Instant::now();
    for round in 0..size::of(4_000, 40) {
        for n in 0..10 {
            bench.heartbeat(HostId((round * 10 + n) % hosts + 1));
        }
        // The next host after the last one, round and round, of those that hold a unit.
        let next = bench.held.range(HostId(last.0 + 1)..).next().or(bench.held.first_key_value());
        last = next.map_or(last, |(host, _)| *host);
        bench.finish(last);
        bench.ask(last);
        bench.at += 1;
    }
    let took = (begun.elapsed() - bench.planning).as_secs_f64();
    assert_eq!(bench.held.len(), busy, "each result brings somebody the next unit");
    assert!(bench.encoded > 0, "something was decided");
    per_second(bench.commands, took)
}

struct Bench {
    core: Core,
    at: u64,
    /// The commands that count.
    commands: u64,
    encoded: usize,
    held: BTreeMap<HostId, Lease>,
    /// Hosts by whose reply it is; asks are answered when there is something to say.
    asked: BTreeMap<ReplyTo, HostId>,
    next: u64,
    /// The time that planning took. It is taken off: the server plans on another thread.
    planning: Duration,
}

impl Bench {
    /// Applies a command, encodes what it decided, and takes leases in.
    fn apply(&mut self, command: impl FnOnce(ReplyTo) -> Command) -> Option<Answer> {
        self.next += 1;
        let own = ReplyTo(self.next);
        self.take(own, command(own))
    }

    fn take(&mut self, own: ReplyTo, command: Command) -> Option<Answer> {
        let (at, seed) = (UnixMillis(self.at), self.next);
        let (mut answered, mut plans) = (None, Vec::new());
        for effect in self.core.apply(Envelope { at, seed, command }).unwrap() {
            match effect {
                Effect::Persist(record) => {
                    self.encoded += serde_json::to_vec(&record).unwrap().len();
                }
                Effect::Reply { to, answer, .. } => {
                    let answer = *answer.unwrap();
                    if let (Answer::Work(work), Some(host)) = (&answer, self.asked.remove(&to)) {
                        assert!(work.leases.len() <= 1, "one slot, one unit");
                        let leases = work.leases.iter().cloned();
                        self.held.extend(leases.map(|lease| (host, lease)));
                    }
                    if to == own {
                        answered = Some(answer);
                    }
                }
                // Somebody else plans, and what comes of it is a command like any other.
                Effect::Plan { job, version, problem, seed, iterations } => {
                    let begun = Instant::now();
                    let schedule = Rollout.plan(&problem, seed, &mut Iterations::new(iterations));
                    self.planning += begun.elapsed();
                    let schedule = schedule.map(Box::new);
                    plans.push(Command::PlanReady { job, version, schedule });
                }
                _ => {}
            }
        }
        for plan in plans {
            self.next += 1;
            self.take(ReplyTo(self.next), plan);
        }
        answered
    }

    fn ask(&mut self, host: HostId) {
        self.commands += 1;
        let cached = (0..CACHED).map(|n| (host.0 * 5 + n * 7) % u64::from(SHARDS));
        let cached = cached.map(|shard| u32::try_from(shard).unwrap());
        let request = support::request(1, cached, Millis::from_secs(25));
        self.asked.insert(ReplyTo(self.next + 1), host);
        self.apply(|to| Command::Ask { to, host, request });
    }

    fn heartbeat(&mut self, host: HostId) {
        self.commands += 1;
        let state = HeldState::Running { done: 1, of: 2 };
        let holding = self.held.get(&host).map(|lease| Held::new(lease.id, state));
        let holding = holding.into_iter().collect();
        self.apply(|to| Command::Heartbeat {
            to,
            host,
            request: HeartbeatRequest::new(holding, Vec::new()),
        });
    }

    /// Reports a host's unit; an assimilator takes the result in.
    fn finish(&mut self, host: HostId) {
        let lease = self.held.remove(&host).unwrap();
        let (outcome, uploaded) = outcome::of(&lease, 1.0);
        let report = Report { lease: lease.id, outcome };
        self.commands += 1;
        self.apply(|to| Command::Report { to, host, report, uploaded });
        while let Some(Answer::Assimilation(Some(unit))) =
            self.apply(|to| Command::TakeAssimilation { to, losses: true })
        {
            self.apply(|to| Command::OfferAssimilated {
                to,
                lease: unit.lease,
                version: unit.version,
                checkpoint: unit.trained.checkpoint,
                merged: None,
            });
        }
    }
}

/// A job of which every trial is with a host, and whoever is left over waits.
fn set_up(hosts: u64) -> Bench {
    let mut bench = Bench {
        core: Core::new(CoreConfig::default()),
        at: 1_000,
        commands: 0,
        encoded: 0,
        held: BTreeMap::new(),
        asked: BTreeMap::new(),
        next: 0,
        planning: Duration::ZERO,
    };
    let data = support::data(SHARDS);
    let text = format!(
        "name = \"bench\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = [4]\n\
         [training]\nepochs = 10\noptimizer = {{ name = \"sgd\", lr = {{ log_uniform = [1e-4, 1.0] }} }}\n\
         [search]\nmethod = \"random\"\ntrials = {}\n[placement]\norder = \"hop\"\n",
        trials()
    );
    let spec = Box::new(jobfile::parse(&text).unwrap());
    for host in 1..=hosts {
        let token_sha256 = Digest::of(&host.to_le_bytes());
        bench.apply(|to| Command::Enrol { to, name: "host".into(), token_sha256 });
    }
    for blob in data.blobs() {
        bench.apply(|to| Command::Published { to, blob });
    }
    let data = Box::new(data);
    bench.apply(|to| Command::Submit { to, spec, data, again: false, nonce: None });
    for host in (1..=hosts).map(HostId) {
        bench.ask(host);
    }
    bench
}

/// Encodings of one small event's record per second.
fn anchor() -> f64 {
    let event = Event::LeaseEnded { lease: LeaseId(1), end: LeaseEnd::Silent };
    let record = Record { position: JournalPosition(1), at: UnixMillis(1), event };
    let count = size::of(1_000_000, 100);
    let begun = Instant::now();
    let mut bytes = 0;
    for _ in 0..count {
        bytes += serde_json::to_vec(std::hint::black_box(&record)).unwrap().len();
    }
    std::hint::black_box(bytes);
    per_second(count, begun.elapsed().as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn per_second(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds
}
