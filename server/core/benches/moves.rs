//! How long the core is busy with trials that stay on hosts: 250 hosts have eight each, and as many hosts with nothing to do come. Of all
//! commands that follow the longest counts: where trials move by what is left to do, where they can't because the newcomers would need
//! longer for the data than the trials have left, and where half of the trials on each host seem to have converged.
//!
//! Prints one JSON line each, in milliseconds, beside the wanted one.

#![expect(clippy::unwrap_used, reason = "a bench ends at what it did not expect")]
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

#[path = "../../../benches/size.rs"]
mod size;
mod support;

use sojourn_core::{Answer, Command, Core, CoreConfig, Effect, Envelope, Event, ReplyTo};
use sojourn_protocol::{
    api::{HeartbeatRequest, Held, HeldState, LossSum},
    digest::Digest,
    ids::{HostId, LeaseId},
    jobfile,
    time::{Millis, UnixMillis},
};
use std::{collections::BTreeMap, time::Instant};

const SHARDS: u32 = 8;
const SLOTS: u32 = 8;
/// Milliseconds for which other commands may wait.
const TARGET: f64 = 20.0;
const HEARTBEAT: Millis = Millis::from_secs(5);
/// For five looks.
const BEATS: u32 = 32;
/// Rows of a shard; batches of a hop, of which so many are trained between two heartbeats, and of a whole trial.
const ROWS: u32 = 200_000;
const HOP: u32 = ROWS / 32;
const PACE: u32 = HOP / BEATS;
const STEPS: u32 = 27 * SHARDS * HOP;

/// The losses of a unit after so many heartbeats: they fall evenly over the whole trial, or not at all.
fn losses(falls: bool, beats: u32) -> LossSum {
    (0..beats * PACE).fold(LossSum::default(), |all, step| {
        all.plus(if falls { 1.0 - f64::from(step) / f64::from(STEPS) } else { 1.0 }, 1)
    })
}

/// Hosts that have trials; as many come later.
fn hosts() -> u64 {
    size::of(250, 4)
}

fn main() {
    let (moving, moved) = Fleet::longest("srpt", 100);
    assert!(moved > 0, "no trial has moved");
    figure(&format!("{moved} move to hosts that come"), moving);
    let (staying, moved) = Fleet::longest("srpt", 1 << 44);
    assert_eq!(moved, 0, "their data would come too late");
    figure("none can move to hosts that come", staying);
    let (moving, moved) = Fleet::longest("specon", 100);
    assert!(moved > 0, "no trial has moved");
    figure(&format!("{moved} that have converged move"), moving);
}

fn figure(what: &str, millis: f64) {
    let trials = hosts() * u64::from(SLOTS);
    println!(
        "{{\"name\":\"the longest command where {trials} trials stay and {what}; beside the target\",\"value\":{millis:.2},\"unit\":\"ms\",\
         \"anchor\":{TARGET},\"ratio\":{:.3}}}",
        millis / TARGET,
    );
}

struct Fleet {
    core: Core,
    next: u64,
    at: UnixMillis,
    held: BTreeMap<HostId, Vec<LeaseId>>,
    longest: f64,
    moved: u64,
}

impl Fleet {
    /// The milliseconds of the longest command of the looks, and how many trials moved. `bytes`: of each shard.
    fn longest(residency: &str, bytes: u64) -> (f64, u64) {
        let mut fleet = Self::submitted(residency, bytes);
        for host in (1..=2 * hosts()).map(HostId) {
            let given = fleet.ask(host, host.0 <= hosts());
            let all = if host.0 <= hosts() { SLOTS } else { 0 };
            assert_eq!(given, usize::try_from(all).unwrap(), "all trials are on the first hosts");
        }
        (fleet.longest, fleet.moved) = (0.0, 0);
        for beat in 1..=BEATS {
            let said = [losses(false, beat), losses(true, beat)];
            let running = HeldState::Running { done: beat * PACE, of: HOP };
            for host in (1..=2 * hosts()).map(HostId) {
                let leases = fleet.held.get(&host).into_iter().flatten();
                let held = leases.map(|lease| {
                    let losses = said.get(usize::from(lease.0 % 2 == 0)).copied();
                    Held { losses, ..Held::new(*lease, running) }
                });
                let holding = held.collect();
                fleet.apply(|to| Command::Heartbeat {
                    to,
                    host,
                    request: HeartbeatRequest::new(holding, Vec::new()),
                });
            }
            fleet.at = fleet.at + HEARTBEAT;
        }
        (fleet.longest, fleet.moved)
    }

    fn submitted(residency: &str, bytes: u64) -> Self {
        let mut fleet = Self {
            core: Core::new(CoreConfig::default()),
            next: 0,
            at: UnixMillis(1_000),
            held: BTreeMap::new(),
            longest: 0.0,
            moved: 0,
        };
        let text = format!(
            "name = \"moves\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = [2048, 2048]\n\
             [training]\nepochs = 27\noptimizer = {{ name = \"sgd\", lr = {{ log_uniform = [1e-4, 1.0] }} }}\n\
             [search]\nmethod = \"random\"\ntrials = {}\n[placement]\norder = \"hop\"\nresidency = \"{residency}\"\n",
            hosts() * u64::from(SLOTS)
        );
        let mut data = support::data(SHARDS);
        for shard in &mut data.train {
            (shard.blob.bytes, shard.rows) = (bytes, ROWS);
        }
        for blob in data.blobs() {
            fleet.apply(|to| Command::Published { to, blob });
        }
        for host in 1..=2 * hosts() {
            let token_sha256 = Digest::of(&host.to_le_bytes());
            fleet.apply(|to| Command::Enrol { to, name: "host".into(), token_sha256 });
        }
        let (spec, data) = (Box::new(jobfile::parse(&text).unwrap()), Box::new(data));
        fleet.apply(|to| Command::Submit { to, spec, data, again: false, nonce: None });
        fleet
    }

    /// A host asks for work for all its slots; how many leases it is given. Does it have the data?
    fn ask(&mut self, host: HostId, has_data: bool) -> usize {
        let shards = if has_data { 0..=SHARDS } else { SHARDS..=SHARDS };
        let request = support::request(SLOTS, shards, Millis(0));
        let answer = self.apply(|to| Command::Ask { to, host, request });
        let Answer::Work(work) = answer else { panic!("{answer:?}") };
        let leases: Vec<LeaseId> = work.leases.into_iter().map(|lease| lease.id).collect();
        let given = leases.len();
        self.held.insert(host, leases);
        given
    }

    /// The answer, which must not be a refusal.
    fn apply(&mut self, command: impl FnOnce(ReplyTo) -> Command) -> Answer {
        self.next += 1;
        let own = ReplyTo(self.next);
        let envelope = Envelope { at: self.at, seed: 1, command: command(own) };
        let begun = Instant::now();
        let effects = self.core.apply(envelope).unwrap();
        self.longest = self.longest.max(begun.elapsed().as_secs_f64() * 1e3);
        let mut answers = None;
        for effect in effects {
            match effect {
                Effect::Persist(record) if matches!(record.event, Event::TrialMoved { .. }) => {
                    self.moved += 1;
                }
                Effect::Reply { to, answer, .. } if to == own => answers = Some(*answer.unwrap()),
                _ => {}
            }
        }
        answers.unwrap()
    }
}
