//! The results of a run, and of a row of a study.

use super::{
    bound::Names,
    job::{SimJob, count},
    plan::Plan,
    quantity::float,
    tally::{Requests, Tally},
    training::{Point, Score},
};
use serde::Serialize;
use sojourn_protocol::{ids::JobId, spec::Goal};

/// One run of one scenario with one seed under one policy. The same each time it is made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunResult {
    /// The seed.
    pub seed: u64,
    /// From the first submission to the end of the last job, in seconds.
    pub makespan: f64,
    /// No schedule is shorter.
    pub bound: f64,
    /// Which bound that is.
    pub bound_by: Names,
    /// All work over all capacity, in seconds, whichever bound holds.
    pub capacity: f64,
    /// Makespan over bound.
    pub ratio: f64,
    /// Shares of the slot time of hosts that were there.
    pub busy: f64,
    /// Idle, with a unit at hand whose bytes were on their way.
    pub waiting: f64,
    /// Idle otherwise.
    pub idle: f64,
    /// Hops of all jobs.
    pub hops: u64,
    /// Each job, in the order of submission.
    pub jobs: Vec<JobResult>,
    /// Leases that were granted: those that were assimilated, evaluated and lost together.
    pub granted: u64,
    /// Results that became versions.
    pub assimilated: u64,
    /// Of these, results that were merged into a version that others had made.
    pub merged: u64,
    /// Versions made between the base of a merged result and its merge: the mean.
    pub staleness: f64,
    /// Results that came when their unit was settled.
    pub superseded: u64,
    /// Reports that came when their leases had ended.
    pub late: u64,
    /// Of these, those that were taken nevertheless.
    pub late_used: u64,
    /// Results of hops that were lies.
    pub lies: u64,
    /// Of these, those that became versions.
    pub believed: u64,
    /// How often trials went over from hop order to merging, or back.
    pub order_switches: u64,
    /// Evaluations that were taken.
    pub evaluated: u64,
    /// Leases that brought nothing, each once: run out, given back, revoked, failed, refused or too late.
    pub lost: u64,
    /// The share of all training and evaluating that brought nothing: of lost leases, and what still ran when
    /// the last job ended.
    #[serde(rename = "lost_share")]
    pub lost_ratio: f64,
    /// The part of it that was reported when the unit was settled by somebody else.
    #[serde(rename = "twice_share")]
    pub twice_ratio: f64,
    /// Second copies of running hops.
    pub copies: u64,
    /// The share of all hops' work that they repeated.
    #[serde(rename = "copied_share")]
    pub copied_ratio: f64,
    /// Bytes of checkpoints from the server.
    pub checkpoints_down: u64,
    /// Bytes of checkpoints to the server.
    pub checkpoints_up: u64,
    /// Shards that were downloaded.
    pub shards: u64,
    /// Bytes of them.
    pub shard_bytes: u64,
    /// Machines that left.
    pub departures: u64,
    /// Commands that the core was given.
    pub commands: u64,
    /// Requests of hosts to the server.
    pub requests: Requests,
    /// Events that the core decided.
    pub events: u64,
    /// Plans that were made for the core.
    pub plans: u64,
    /// The best value of the metric of the first job that was really trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<f64>,
    /// The value that was known last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<f64>,
    /// Metrics of what was really trained, in the order in which they were known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<Score>,
    /// Metrics by results, where a job asks for that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<Point>,
    /// Nanoseconds in the core; not written into files, as no two runs have the same.
    #[serde(skip)]
    pub in_core: u64,
    /// Nanoseconds of planning, likewise.
    #[serde(skip)]
    pub planning: u64,
}

/// The result of a run for one of its jobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobResult {
    /// The job's name.
    pub name: String,
    /// When it was submitted, in seconds after the first was.
    pub submitted: f64,
    /// When it ended, likewise.
    pub ended: f64,
    /// When the last result of each epoch was taken, likewise: of those epochs of which any was.
    pub epochs: Vec<f64>,
}

/// The facts of a run beside its counts.
pub(crate) struct Metrics {
    pub(crate) jobs: Vec<JobResult>,
    pub(crate) scores: Vec<Score>,
    pub(crate) curve: Vec<Point>,
}

impl RunResult {
    pub(crate) fn new(
        plan: &Plan,
        tally: &Tally,
        makespan: u64,
        Metrics { jobs, scores, curve }: Metrics,
    ) -> Self {
        let time = float((tally.busy + tally.waiting + tally.idle).max(1));
        let trained = float(tally.trained.max(1));
        let lost = tally.trained.saturating_sub(tally.useful);
        let (makespan, bound) = (float(makespan) / 1e6, float(plan.bound.micros) / 1e6);
        Self {
            seed: plan.seed,
            makespan,
            bound,
            bound_by: plan.bound.names,
            capacity: plan.bound.capacity / 1e6,
            ratio: if bound > 0.0 { makespan / bound } else { 1.0 },
            busy: float(tally.busy) / time,
            waiting: float(tally.waiting) / time,
            idle: float(tally.idle) / time,
            hops: plan.jobs.iter().map(SimJob::hops).sum(),
            jobs,
            granted: tally.granted,
            assimilated: tally.assimilated,
            merged: tally.merged,
            staleness: float(tally.staleness) / float(tally.merged.max(1)),
            superseded: tally.superseded,
            late: tally.late(),
            late_used: tally.late_used,
            lies: tally.told(),
            believed: tally.believed,
            order_switches: tally.order_switches,
            evaluated: tally.evaluated,
            lost: tally.lost(),
            lost_ratio: float(lost) / trained,
            twice_ratio: float(tally.twice) / trained,
            copies: tally.copies,
            copied_ratio: float(tally.copied) / float(tally.work.max(1)),
            checkpoints_down: tally.checkpoints_down,
            checkpoints_up: tally.checkpoints_up,
            shards: tally.shards,
            shard_bytes: tally.shard_bytes,
            departures: tally.departures,
            commands: tally.commands,
            requests: tally.requests,
            events: tally.events,
            plans: tally.plans,
            best: best(&scores, &plan.jobs),
            last: scores.last().map(|score| score.value),
            scores,
            curve,
            in_core: tally.in_core,
            planning: tally.planning,
        }
    }
}

/// The best value of what was really trained first, where anything was.
fn best(scores: &[Score], jobs: &[SimJob]) -> Option<f64> {
    let first = scores.first()?.job;
    let of = jobs.iter().zip(1..).find(|(_, id)| first == JobId(*id));
    let goal = of.map_or(Goal::Min, |(job, _)| job.spec.search.goal);
    let values = scores.iter().filter(|score| score.job == first).map(|score| score.value);
    values.reduce(match goal {
        Goal::Min => f64::min,
        Goal::Max => f64::max,
    })
}

/// A figure over several seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
}

impl Spread {
    /// Over these; zeros for none.
    #[must_use]
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.collect();
        let Some(first) = values.first().copied() else {
            return Self { mean: 0.0, min: 0.0, max: 0.0 };
        };
        Self {
            mean: values.iter().sum::<f64>() / float(count(values.len())),
            min: values.iter().copied().fold(first, f64::min),
            max: values.iter().copied().fold(first, f64::max),
        }
    }
}
