//! How long the core is busy with one command over a job of 65,536 trials, in milliseconds: nobody else gets an answer
//! meanwhile. Twice, once with half as many trials: what grows faster than their number shows in the ratio, which is 2
//! where it grows alike.
//!
//! Prints one JSON line each. The anchor is the time of the same command for half as many trials.

#![expect(clippy::unwrap_used, reason = "a bench ends at what it did not expect")]
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

#[path = "../../../benches/size.rs"]
mod size;

use sojourn_core::{
    Answer, Command, Core, CoreConfig, Effect, Envelope, PreparedSubmission, Query, ReplyTo,
};
use sojourn_protocol::{
    api::{RollbackOptions, RollbackRequest},
    digest::{BlobRef, Digest},
    ids::{JobId, TrialId},
    jobfile,
    manifest::{DataManifest, Labels, Scaling, Shard, Targets},
    time::UnixMillis,
};
use std::{hint::black_box, time::Instant};

/// A command over the whole job, or a question about it.
type Make = fn(ReplyTo) -> Command;

const JOB: JobId = JobId(1);

/// In this order: each finds the job as those before have left it.
const COMMANDS: [(&str, Make); 10] = [
    ("jobs", |to| Command::Query { to, query: Query::Jobs }),
    ("status", |to| Command::Query { to, query: Query::Job { job: JOB } }),
    // Trials are read in steps of so many.
    ("a step of trials", |to| {
        let query = Query::Trials { job: JOB, from: TrialId(0), limit: 4_096 };
        Command::Query { to, query }
    }),
    ("the ten leading trials", |to| {
        let query = Query::LeadingTrials { job: JOB, limit: 10 };
        Command::Query { to, query }
    }),
    ("pause", |to| Command::Pause { to, job: JOB, now: true }),
    ("resume", |to| Command::Resume { to, job: JOB }),
    ("extend", |to| Command::Extend { to, job: JOB, epochs: 11, trial: None, reopen: false }),
    ("rollback", |to| {
        let request = RollbackRequest::Trial {
            trial: TrialId(0),
            epochs: 0,
            options: RollbackOptions::default(),
        };
        Command::Rollback { to, job: JOB, request }
    }),
    ("cancel", |to| Command::Cancel { to, job: JOB }),
    ("delete", |to| Command::Delete { to, jobs: vec![JOB], preview: false }),
];

fn main() {
    let trials = size::of(65_536, 16);
    let all = times(trials);
    let half = times(trials / 2);
    let names = std::iter::once("submit").chain(COMMANDS.iter().map(|(name, _)| *name));
    for ((name, all), half) in names.zip(all).zip(half) {
        println!(
            "{{\"name\":\"a job of {trials} trials: {name}\",\"value\":{all:.2},\"unit\":\"ms\",\
             \"anchor\":{half:.2},\"ratio\":{:.2}}}",
            all / half
        );
    }
}

/// Milliseconds of each command over so many trials: the least of three jobs.
fn times(trials: usize) -> Vec<f64> {
    let runs = (0..3).map(|_| {
        let (mut bench, submission) = LargeJob::submitted(trials);
        let others = COMMANDS.iter().map(|(_, command)| bench.time(*command));
        std::iter::once(submission).chain(others).collect()
    });
    let least = |least: Vec<f64>, run: Vec<f64>| {
        least.into_iter().zip(run).map(|(a, b)| a.min(b)).collect()
    };
    runs.reduce(least).unwrap()
}

struct LargeJob {
    core: Core,
    next: u64,
}

impl LargeJob {
    /// With the milliseconds of the submission, whose trials were made before: off the core's thread.
    fn submitted(trials: usize) -> (Self, f64) {
        let mut bench = Self { core: Core::new(CoreConfig::default()), next: 0 };
        let text = format!(
            "name = \"large\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = [4]\n\
             [training]\nepochs = 10\noptimizer = {{ name = \"sgd\", lr = {{ log_uniform = [1e-4, 1.0] }} }}\n\
             [search]\nmethod = \"random\"\ntrials = {trials}\n[placement]\norder = \"hop\"\n"
        );
        let shard = |n: u32| {
            let blob = BlobRef { sha256: Digest::of(&n.to_le_bytes()), bytes: 100 };
            Shard { blob, rows: 64 }
        };
        let data = DataManifest {
            columns: Vec::new(),
            shape: vec![4],
            features: ["a", "b", "c", "d"].map(String::from).to_vec(),
            labels: Labels::Classes(vec!["0".into(), "1".into()]),
            categories: Vec::new(),
            fill: Vec::new(),
            scaling: Scaling::None,
            targets: Targets::Plain,
            train: (0..16).map(shard).collect(),
            valid: vec![shard(16)],
            test: Vec::new(),
        };
        for blob in data.blobs() {
            bench.apply(|to| Command::Published { to, blob });
        }
        let (spec, data) = (Box::new(jobfile::parse(&text).unwrap()), Box::new(data));
        let prepared = Box::new(PreparedSubmission::new(spec, data).unwrap());
        let begun = Instant::now();
        let submit = |to| Command::SubmitPrepared { to, prepared, again: false, nonce: None };
        black_box(bench.apply(submit));
        (bench, begun.elapsed().as_secs_f64() * 1e3)
    }

    fn time(&mut self, command: Make) -> f64 {
        let begun = Instant::now();
        black_box(self.apply(command));
        begun.elapsed().as_secs_f64() * 1e3
    }

    /// The answer, which must not be a refusal.
    fn apply(&mut self, command: impl FnOnce(ReplyTo) -> Command) -> Answer {
        self.next += 1;
        let own = ReplyTo(self.next);
        let envelope =
            Envelope { at: UnixMillis(1_000 + self.next), seed: 1, command: command(own) };
        let effects = self.core.apply(envelope).unwrap();
        let answers = effects.into_iter().filter_map(|effect| match effect {
            Effect::Reply { to, answer, .. } if to == own => Some(*answer.unwrap()),
            _ => None,
        });
        answers.last().unwrap()
    }
}
