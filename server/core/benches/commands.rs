//! How many commands a second the core takes on one thread: 256 trials x 64 shards, 1,000 hosts; in turn
//! ten heartbeats, one request, one result with its assimilation; events encoded as the journal does.
//!
//! Prints one JSON line. The anchor is the encoding of one grant's record, measured in the same run.

#![expect(clippy::unwrap_used, reason = "a bench ends at what it did not expect")]
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

use sojourn_core::{
    Answer, Command, Core, CoreConfig, Effect, Envelope, Event, JournalPosition, LeaseEnd, Record,
    ReplyTo,
};
use sojourn_protocol::{
    api::{Held, HeldState, Inventory, WorkRequest},
    digest::{BlobRef, Digest},
    ids::{HostId, LeaseId},
    jobfile,
    manifest::{DataManifest, Labels, Scaling, Shard},
    report::{Evaluated, Outcome, Report, Sums, Trained},
    time::{Millis, UnixMillis},
    unit::{Lease, Unit},
};
use std::{collections::BTreeMap, time::Instant};

const HOSTS: u64 = 1_000;
const ROUNDS: u64 = 4_000;

struct Bench {
    core: Core,
    at: u64,
    commands: u64,
    encoded: usize,
    held: BTreeMap<HostId, Lease>,
}

impl Bench {
    fn apply(&mut self, command: Command) -> Vec<Answer> {
        self.commands += 1;
        self.at += 1;
        let effects = self.core.apply(Envelope { at: UnixMillis(self.at), seed: self.at, command });
        let mut answers = Vec::new();
        for effect in effects {
            match effect {
                Effect::Persist(record) => {
                    self.encoded += serde_json::to_vec(&record).unwrap().len();
                }
                Effect::Reply { answer: Ok(answer), .. } => answers.push(*answer),
                _ => {}
            }
        }
        answers
    }

    fn ask(&mut self, host: HostId, inventory: Option<Inventory>) {
        let request = WorkRequest {
            slots: 1,
            idle: 1,
            wanted: 1,
            holding: Vec::new(),
            reported: Vec::new(),
            wait: Millis(0),
            inventory,
        };
        for answer in self.apply(Command::Ask { to: ReplyTo(1), host, request }) {
            if let Answer::Work(work) = answer
                && let Some(lease) = work.leases.into_iter().next()
            {
                self.held.insert(host, lease);
            }
        }
    }

    fn finish(&mut self, host: HostId) {
        let Some(lease) = self.held.remove(&host) else { return };
        let (outcome, uploaded) = match &lease.unit {
            Unit::Train(hop) => {
                let name = lease.id.0.to_le_bytes();
                let checkpoint = BlobRef { sha256: Digest::of(&name), bytes: lease.upload_bytes };
                let trained = Trained {
                    base: hop.base.version(),
                    checkpoint,
                    end: hop.position_at(hop.batches()),
                    sums: Sums {
                        rows: u64::from(hop.shard.rows),
                        loss: 1.0,
                        correct: Some(1),
                        ..Sums::default()
                    },
                    train_micros: 1_000_000,
                };
                (Outcome::Trained(trained), Some(checkpoint))
            }
            Unit::Evaluate(evaluation) => {
                let shards = evaluation.shards.iter().map(|shard| Sums {
                    rows: u64::from(shard.rows),
                    loss: 1.0,
                    correct: Some(1),
                    ..Sums::default()
                });
                let evaluated = Evaluated {
                    version: evaluation.version,
                    shards: shards.collect(),
                    by_class: None,
                    train_micros: 1000,
                };
                (Outcome::Evaluated(evaluated), None)
            }
        };
        let report = Report { lease: lease.id, outcome };
        self.apply(Command::Report { to: ReplyTo(1), host, report, uploaded });
        if uploaded.is_none() {
            return;
        }
        for answer in self.apply(Command::TakeAssimilation { to: ReplyTo(1) }) {
            if let Answer::Assimilation(Some(unit)) = answer {
                self.apply(Command::OfferAssimilated {
                    to: ReplyTo(1),
                    lease: unit.lease,
                    version: unit.version,
                    checkpoint: unit.trained.checkpoint,
                });
            }
        }
    }

    fn heartbeat(&mut self, host: HostId) {
        let holding = self
            .held
            .get(&host)
            .map(|lease| Held { lease: lease.id, state: HeldState::Running { done: 1, of: 2 } });
        let holding = holding.into_iter().collect();
        self.apply(Command::Heartbeat { to: ReplyTo(1), host, holding, reported: Vec::new() });
    }
}

fn main() {
    let mut bench = set_up();
    bench.commands = 0;
    bench.encoded = 0;
    let mut last = HostId(0);
    let begun = Instant::now();
    for round in 0..ROUNDS {
        for n in 0..10 {
            bench.heartbeat(HostId((round * 10 + n) % HOSTS + 1));
        }
        // The next host after the last one, round and round, of those that hold a unit.
        let next = bench.held.range(HostId(last.0 + 1)..).next().or(bench.held.first_key_value());
        last = next.map_or(last, |(host, _)| *host);
        bench.finish(last);
        bench.ask(last, None);
        assert!(bench.held.contains_key(&last), "each result brings the next unit");
    }
    let took = begun.elapsed().as_secs_f64();
    let value = per_second(bench.commands, took);
    let anchor = anchor();
    println!(
        "{{\"name\":\"core commands\",\"value\":{value:.0},\"unit\":\"1/s\",\"anchor\":{anchor:.0},\"ratio\":{:.4}}}",
        value / anchor
    );
}

/// Encodings of one grant's record per second.
fn anchor() -> f64 {
    let event = Event::LeaseEnded { lease: LeaseId(1), end: LeaseEnd::Silent };
    let record = Record { position: JournalPosition(1), at: UnixMillis(1), event };
    let begun = Instant::now();
    let mut bytes = 0;
    for _ in 0..1_000_000 {
        bytes += serde_json::to_vec(std::hint::black_box(&record)).unwrap().len();
    }
    std::hint::black_box(bytes);
    per_second(1_000_000, begun.elapsed().as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn per_second(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds
}

fn set_up() -> Bench {
    let mut bench = Bench {
        core: Core::new(CoreConfig::default()),
        at: 1_000,
        commands: 0,
        encoded: 0,
        held: BTreeMap::new(),
    };
    let shard = |n: u32| Shard {
        blob: BlobRef { sha256: Digest::of(&n.to_le_bytes()), bytes: 100 },
        rows: 64,
    };
    let data = DataManifest {
        shape: vec![4],
        features: ["a", "b", "c", "d"].map(String::from).to_vec(),
        labels: Labels::Classes(vec!["0".into(), "1".into()]),
        scaling: Scaling::None,
        train: (0..64).map(shard).collect(),
        valid: vec![shard(64)],
        test: Vec::new(),
    };
    let text = "name = \"bench\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = [4]\n[training]\nepochs = 10\noptimizer = { name = \"sgd\", lr = { log_uniform = [1e-4, 1.0] } }\n[search]\nmethod = \"random\"\ntrials = 256\n";
    let spec = Box::new(jobfile::parse(text).unwrap());
    for host in 1..=HOSTS {
        let token_sha256 = Digest::of(&host.to_le_bytes());
        bench.apply(Command::Enrol { to: ReplyTo(1), name: "host".into(), token_sha256 });
    }
    for blob in data.blobs() {
        bench.apply(Command::Published { to: ReplyTo(1), blob });
    }
    let data = Box::new(data);
    bench.apply(Command::Submit { to: ReplyTo(1), spec, data, again: false, nonce: None });
    for host in (1..=HOSTS).map(HostId) {
        let inventory = Inventory {
            cached: Vec::new(),
            numeric_class: Digest::of(b"class"),
            flops: 1e9,
            client: "bench".into(),
        };
        bench.ask(host, Some(inventory));
    }
    bench
}
