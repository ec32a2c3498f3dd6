//! How many events a second a search of 10,000 trials makes on one thread, with a rule of early stopping and without: hosts of one
//! slot ask in turn, train an epoch or evaluate one, and what they have trained is taken in. Events are encoded as the journal does.
//!
//! Prints one JSON line each. The anchor is the same search without a rule.

#![expect(clippy::unwrap_used, reason = "a bench ends at what it did not expect")]
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

#[path = "support/outcome.rs"]
mod outcome;
#[path = "../../../benches/size.rs"]
mod size;
mod support;

use sojourn_core::{Answer, Command, Core, CoreConfig, Effect, Envelope, ReplyTo};
use sojourn_protocol::{
    digest::Digest,
    ids::{HostId, JobId},
    jobfile,
    report::Report,
    time::{Millis, UnixMillis},
    unit::{Lease, Unit},
};
use std::time::Instant;

const HOSTS: u64 = 8;

fn main() {
    let trials = size::of(10_000, 12);
    let anchor = events_per_second(trials, None);
    for rule in ["asha", "sha", "median"] {
        let value = events_per_second(trials, Some(rule));
        println!(
            "{{\"name\":\"events of a search of {trials} trials, {rule}; beside no rule\",\"value\":{value:.0},\"unit\":\"1/s\",\
             \"anchor\":{anchor:.0},\"ratio\":{:.4}}}",
            value / anchor
        );
    }
}

/// Events a second, over as many results as each trial's first epoch brings, and half as many more.
fn events_per_second(trials: u64, rule: Option<&str>) -> f64 {
    let mut bench = Search::submitted(trials, rule);
    bench.events = 0;
    let begun = Instant::now();
    for round in 0..trials * 3 {
        if bench.core.state().jobs.get(&JobId(1)).is_none_or(|job| !job.is_running()) {
            break;
        }
        bench.work(HostId(round % HOSTS + 1));
    }
    let took = begun.elapsed().as_secs_f64();
    assert!(bench.events >= trials * 4, "hosts had work");
    f64::from(u32::try_from(bench.events).unwrap()) / took
}

struct Search {
    core: Core,
    next: u64,
    events: u64,
}

impl Search {
    fn submitted(trials: u64, rule: Option<&str>) -> Self {
        let mut bench = Self { core: Core::new(CoreConfig::default()), next: 0, events: 0 };
        let rule = rule.map(|rule| format!("stopping = \"{rule}\"\n")).unwrap_or_default();
        let text = format!(
            "name = \"search\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = [4]\n\
             [training]\nepochs = 27\noptimizer = {{ name = \"sgd\", lr = {{ log_uniform = [1e-4, 1.0] }} }}\n\
             [search]\nmethod = \"random\"\nmetric = \"valid/loss\"\ntrials = {trials}\n{rule}[placement]\norder = \"hop\"\n"
        );
        let data = support::data(1);
        for blob in data.blobs() {
            bench.apply(|to| Command::Published { to, blob });
        }
        for host in 1..=HOSTS {
            let token_sha256 = Digest::of(&host.to_le_bytes());
            bench.apply(|to| Command::Enrol { to, name: "host".into(), token_sha256 });
        }
        let (spec, data) = (Box::new(jobfile::parse(&text).unwrap()), Box::new(data));
        bench.apply(|to| Command::Submit { to, spec, data, again: false, nonce: None });
        bench
    }

    /// A host asks once, and does what it gets.
    fn work(&mut self, host: HostId) {
        let request = support::request(1, [0], Millis(0));
        let answer = self.apply(|to| Command::Ask { to, host, request });
        let Answer::Work(work) = answer else { panic!("{answer:?}") };
        for lease in &work.leases {
            self.finish(host, lease);
        }
    }

    fn finish(&mut self, host: HostId, lease: &Lease) {
        let (outcome, uploaded) = outcome::of(lease, loss(lease));
        let report = Report { lease: lease.id, outcome };
        self.apply(|to| Command::Report { to, host, report, uploaded });
        while let Answer::Assimilation(Some(unit)) =
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

    /// The answer, which must not be a refusal.
    fn apply(&mut self, command: impl FnOnce(ReplyTo) -> Command) -> Answer {
        self.next += 1;
        let own = ReplyTo(self.next);
        // Each unit takes its time: a host that comes for the next one has just trained for a second.
        let at = UnixMillis(1_000 + self.next * 1_000);
        let mut answered = None;
        for effect in self.core.apply(Envelope { at, seed: 1, command: command(own) }).unwrap() {
            match effect {
                Effect::Persist(record) => {
                    std::hint::black_box(serde_json::to_vec(&record).unwrap());
                    self.events += 1;
                }
                Effect::Reply { to, answer, .. } if to == own => answered = Some(*answer.unwrap()),
                _ => {}
            }
        }
        answered.unwrap()
    }
}

/// A loss that says nothing of any other.
fn loss(lease: &Lease) -> f64 {
    let (trial, epoch) = match &lease.unit {
        Unit::Train(hop) => (hop.trial.0, 0),
        Unit::Evaluate(evaluation) => (evaluation.trial.0, evaluation.epoch.0),
    };
    let mixed = (trial.wrapping_mul(31) ^ epoch).wrapping_mul(0x9E37_79B1);
    1.0 + f64::from(mixed >> 8) / f64::from(1 << 24)
}
