//! How long the core takes to give a free slot its next hop, in a job of 10,000 trials that are all open: in depth beside breadth,
//! and in depth where one trial comes before the others. 64 hosts of one slot ask in turn. Only their requests are timed, and of these
//! only the ones that are answered with a hop.
//!
//! Prints one JSON line each, with the median in microseconds. The anchor is the median of what stands beside it.

#![expect(clippy::unwrap_used, reason = "a bench ends at what it did not expect")]
#![expect(clippy::indexing_slicing, reason = "a bench ends at what it did not expect")]
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

#[path = "support/outcome.rs"]
mod outcome;
#[path = "../../../benches/size.rs"]
mod size;
mod support;

use sojourn_core::{Answer, By, Command, Core, CoreConfig, Effect, Envelope, ReplyTo};
use sojourn_protocol::{
    api::{SearchRequest, TrialPriority},
    digest::Digest,
    ids::{HostId, JobId, TrialId, Version},
    jobfile,
    report::Report,
    time::{Millis, UnixMillis},
    unit::{Lease, Unit},
};
use std::{collections::BTreeMap, time::Instant};

const JOB: JobId = JobId(1);
const SHARDS: u32 = 8;

fn hosts() -> u64 {
    size::of(64, 4)
}

fn trials() -> u64 {
    size::of(10_000, 64)
}

/// Rounds in which each host asks: before it is timed, and while it is.
fn rounds() -> (u64, u64) {
    size::of((4, 40), (2, 3))
}

fn main() {
    let breadth = Choices::timed("breadth", None);
    let depth = Choices::timed("depth", None);
    let with_priority = Choices::timed("depth", Some(TrialId(7)));
    figure("in depth; beside breadth", depth, breadth);
    figure("in depth with a trial of priority; beside none", with_priority, depth);
}

fn figure(what: &str, value: f64, anchor: f64) {
    let ratio = value / anchor;
    println!(
        "{{\"name\":\"a choice for a free slot, {} open trials, {what}\",\"value\":{value:.2},\"unit\":\"us\",\
         \"anchor\":{anchor:.2},\"ratio\":{ratio:.3}}}",
        trials(),
    );
}

struct Choices {
    core: Core,
    next: u64,
    held: BTreeMap<HostId, Lease>,
}

impl Choices {
    /// The median in microseconds.
    fn timed(spread: &str, first: Option<TrialId>) -> f64 {
        let mut bench = Self::submitted(spread);
        if let Some(trial) = first {
            let priorities = vec![TrialPriority { trial, priority: 1 }];
            let request = Box::new(SearchRequest { priorities, ..SearchRequest::default() });
            let by = By::Server;
            bench.apply(|to| Command::ChangeSearch { to, job: JOB, request, by });
        }
        let (before, timed) = rounds();
        let mut times = Vec::new();
        for round in 0..before + timed {
            for host in (1..=hosts()).map(HostId) {
                let took = bench.work(host);
                times.extend(took.filter(|_| round >= before));
            }
        }
        let begun = bench.core.state().jobs[&JOB].trials.iter();
        let begun = u64::try_from(begun.filter(|of| of.version > Version(0)).count()).unwrap();
        assert_eq!(begun > hosts() * 2, spread == "breadth", "{begun} trials have begun");
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }

    fn submitted(spread: &str) -> Self {
        let mut bench =
            Self { core: Core::new(CoreConfig::default()), next: 0, held: BTreeMap::new() };
        let text = format!(
            "name = \"choices\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = [4]\n\
             [training]\nepochs = 27\noptimizer = {{ name = \"sgd\", lr = {{ log_uniform = [1e-4, 1.0] }} }}\n\
             [search]\nmethod = \"random\"\ntrials = {}\nspread = \"{spread}\"\n[placement]\norder = \"hop\"\n",
            trials()
        );
        let data = support::data(SHARDS);
        for blob in data.blobs() {
            bench.apply(|to| Command::Published { to, blob });
        }
        for host in 1..=hosts() {
            let token_sha256 = Digest::of(&host.to_le_bytes());
            bench.apply(|to| Command::Enrol { to, name: "host".into(), token_sha256 });
        }
        let (spec, data) = (Box::new(jobfile::parse(&text).unwrap()), Box::new(data));
        bench.apply(|to| Command::Submit { to, spec, data, again: false, nonce: None });
        bench
    }

    /// A host finishes what it has, and asks. The microseconds that the answer took, where that was a hop.
    fn work(&mut self, host: HostId) -> Option<f64> {
        if let Some(lease) = self.held.remove(&host) {
            self.finish(host, &lease);
        }
        let request = support::request(1, 0..=SHARDS, Millis(0));
        let begun = Instant::now();
        let answer = self.apply(|to| Command::Ask { to, host, request });
        let took = begun.elapsed();
        let Answer::Work(work) = answer else { panic!("{answer:?}") };
        let lease = work.leases.into_iter().next()?;
        let is_hop = matches!(lease.unit, Unit::Train(_));
        self.held.insert(host, lease);
        is_hop.then_some(took.as_secs_f64() * 1e6)
    }

    fn finish(&mut self, host: HostId, lease: &Lease) {
        let (outcome, uploaded) = outcome::of(lease, 1.0);
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
        let at = UnixMillis(1_000 + self.next * 1_000);
        let effects = self.core.apply(Envelope { at, seed: 1, command: command(own) }).unwrap();
        let answers = effects.into_iter().filter_map(|effect| match effect {
            Effect::Reply { to, answer, .. } if to == own => Some(*answer.unwrap()),
            _ => None,
        });
        answers.last().unwrap()
    }
}
