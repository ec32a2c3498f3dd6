//! Which notifications follow from what was seen before and what is seen now. Pure: it asks no clock and sends nothing.
//!
//! The core's views are compared rather than its events: that a job has ended or that a value is the best is no event of its own, and
//! only the core's fold knows it. What happens while no server runs shows at the next look. Several better values between two
//! looks are one notification, of the last.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sojourn_protocol::{
    digest::Digest,
    figures::timestamp,
    ids::{HostId, JobId},
    machines::{CostsView, JobCost},
    money::MicroUsd,
    spec::Goal,
    time::{Millis, UnixMillis},
    view::{BestView, HostState, HostView, JobState, JobView},
};
use std::collections::BTreeMap;

/// The kind of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Kind {
    #[serde(rename = "job.done")]
    JobDone,
    #[serde(rename = "job.new-best")]
    NewBest,
    #[serde(rename = "job.budget-near")]
    BudgetNear,
    #[serde(rename = "job.stalled")]
    Stalled,
    #[serde(rename = "host.lost")]
    HostLost,
}

impl Kind {
    pub(super) const ALL: [Self; 5] =
        [Self::JobDone, Self::NewBest, Self::BudgetNear, Self::Stalled, Self::HostLost];

    /// As files of webhooks and notifications have it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::JobDone => "job.done",
            Self::NewBest => "job.new-best",
            Self::BudgetNear => "job.budget-near",
            Self::Stalled => "job.stalled",
            Self::HostLost => "host.lost",
        }
    }
}

/// From where on something is worth a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Thresholds {
    /// The percentage of a job's budget.
    pub(super) budget_near: u8,
    /// How long a running job makes no progress.
    pub(super) stalled_after: Millis,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { budget_near: 80, stalled_after: Millis::from_secs(1800) }
    }
}

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notification {
    pub(super) kind: Kind,
    /// An id that follows from what is told, so that whoever hears it twice knows it for the same.
    pub(super) id: String,
    /// The JSON text of the notification.
    pub(super) body: String,
}

/// The state that was seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Known {
    jobs: BTreeMap<JobId, KnownJob>,
    /// Hosts, and whether each was in contact.
    hosts: BTreeMap<HostId, bool>,
}

/// A job as it was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct KnownJob {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    goal: Option<Goal>,
    has_ended: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    best: Option<f64>,
    /// The budget that was told to be near.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    near: Option<MicroUsd>,
    /// Hops, evaluations and training.
    progress: (u64, u64, u64),
    /// When that last changed, or the job last stood still on purpose.
    moved_at: UnixMillis,
    is_stall_told: bool,
}

/// The state that is seen now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) jobs: &'a [JobView],
    pub(super) hosts: &'a [HostView],
    /// With the time.
    pub(super) costs: &'a CostsView,
    /// Whether less or more is better, for the jobs of [`Known::unknown_goals`].
    pub(super) goals: &'a BTreeMap<JobId, Goal>,
    /// Hosts have had the time to come back since the server started.
    pub(super) is_settled: bool,
}

impl Known {
    /// The state at the first look: nobody is told of it.
    pub(super) fn first(seen: Seen<'_>) -> Self {
        let mut known = Self::default();
        known.look(seen, Thresholds::default());
        known
    }

    /// Jobs of which [`Seen::goals`] must say whether less or more is better.
    pub(super) fn unknown_goals(&self, jobs: &[JobView]) -> Vec<JobId> {
        let is_unknown = |job: &&JobView| {
            let known = self.jobs.get(&job.job);
            let best = known.and_then(|known| known.best);
            known.is_none_or(|known| known.goal.is_none())
                && job.best.as_ref().is_some_and(|now| Some(now.value) != best)
        };
        jobs.iter().filter(is_unknown).map(|job| job.job).collect()
    }

    /// Takes what is seen now; the answer is what is new in it.
    pub(super) fn look(&mut self, seen: Seen<'_>, thresholds: Thresholds) -> Vec<Notification> {
        let now = seen.costs.at;
        let mut found = Vec::new();
        let before = std::mem::take(&mut self.jobs);
        for job in seen.jobs {
            let new = KnownJob { moved_at: now, ..KnownJob::default() };
            let mut known = before.get(&job.job).copied().unwrap_or(new);
            known.goal = known.goal.or_else(|| seen.goals.get(&job.job).copied());
            let cost = seen.costs.jobs.iter().find(|cost| cost.job == job.job);
            found.extend(known.ended(job, now));
            found.extend(known.better(job, now));
            found.extend(known.budget(job, cost, (now, thresholds.budget_near)));
            found.extend(known.stalled(job, now, thresholds.stalled_after));
            self.jobs.insert(job.job, known);
        }
        let before = std::mem::take(&mut self.hosts);
        for host in seen.hosts {
            let was_live = before.get(&host.host).copied().unwrap_or(false);
            let is_live = match host.state {
                // One that hasn't come back yet may still do so.
                HostState::Away if host.seen_at.is_none() && !seen.is_settled => was_live,
                HostState::Away | HostState::Revoked => false,
                HostState::Live | HostState::Resting { .. } => true,
            };
            let is_lost = was_live && !is_live && host.state == HostState::Away && !host.stopped;
            found.extend(is_lost.then(|| lost(host, now)));
            self.hosts.insert(host.host, is_live);
        }
        found
    }
}

impl KnownJob {
    fn ended(&mut self, job: &JobView, now: UnixMillis) -> Option<Notification> {
        let had_ended = std::mem::replace(&mut self.has_ended, job.state.has_ended());
        if had_ended || !self.has_ended {
            return None;
        }
        let subject = format!("{:?}", job.ended_at.map(|at| at.0));
        let data = json!({ "state": job.state, "ended_at": job.ended_at.map(timestamp), "best": best(job) });
        Some(of_job(Kind::JobDone, job, &subject, now, data))
    }

    fn better(&mut self, job: &JobView, now: UnixMillis) -> Option<Notification> {
        let view = job.best.as_ref();
        let value = view.map(|best| best.value);
        let before = std::mem::replace(&mut self.best, value);
        let (BestView { trial, epoch, .. }, value, goal) = (view?, value?, self.goal?);
        // A trial that is taken back may take the best value with it.
        let is_better = before.is_none_or(|before| match goal {
            Goal::Min => value < before,
            Goal::Max => value > before,
        });
        let subject = format!("{trial}/{epoch}/{value}");
        let data = json!({ "best": best(job), "before": before });
        is_better.then(|| of_job(Kind::NewBest, job, &subject, now, data))
    }

    fn budget(
        &mut self,
        job: &JobView,
        cost: Option<&JobCost>,
        (now, percent): (UnixMillis, u8),
    ) -> Option<Notification> {
        let JobCost { cost, budget, .. } = cost?;
        let budget = budget.filter(|budget| *budget > MicroUsd(0))?;
        let near = u128::from(budget.0) * u128::from(percent);
        let is_near = u128::from(cost.0) * 100 >= near && !job.state.has_ended();
        if !is_near || self.near == Some(budget) {
            return None;
        }
        self.near = Some(budget);
        let data = json!({ "cost": cost.to_string(), "budget": budget.to_string() });
        Some(of_job(Kind::BudgetNear, job, &budget.0.to_string(), now, data))
    }

    fn stalled(&mut self, job: &JobView, now: UnixMillis, after: Millis) -> Option<Notification> {
        let progress = (job.hops, job.evaluations, job.train_micros);
        let before = std::mem::replace(&mut self.progress, progress);
        if before != progress || job.state != JobState::Running {
            (self.moved_at, self.is_stall_told) = (now, false);
            return None;
        }
        if self.is_stall_told || now - self.moved_at < after {
            return None;
        }
        self.is_stall_told = true;
        let since = timestamp(self.moved_at);
        let data = json!({ "since": since, "waiting": job.waiting, "leases": job.leases_live });
        Some(of_job(Kind::Stalled, job, &since, now, data))
    }
}

fn best(job: &JobView) -> Value {
    let best = job.best.as_ref();
    let of = |best: &BestView| json!({ "trial": best.trial, "name": best.name, "epoch": best.epoch, "value": best.value });
    best.map_or(Value::Null, of)
}

fn of_job(kind: Kind, job: &JobView, subject: &str, now: UnixMillis, data: Value) -> Notification {
    let own = json!({ "job": job.job, "name": job.name, "metric": job.metric });
    // Another journal has a job of the same number, submitted at another time.
    let subject = format!("{}/{}/{subject}", job.job, job.submitted_at.0);
    notification(kind, &subject, now, own, data)
}

fn lost(host: &HostView, now: UnixMillis) -> Notification {
    let seen_at = host.seen_at.map(timestamp);
    let subject = format!("{}/{}/{seen_at:?}", host.host, host.name);
    let leases: Vec<Value> =
        host.leases.iter().map(|lease| json!({ "job": lease.job, "trial": lease.trial })).collect();
    let own = json!({ "host": host.host, "name": host.name, "owner": host.owner });
    let data = json!({ "seen_at": seen_at, "leases": leases });
    notification(Kind::HostLost, &subject, now, own, data)
}

fn notification(
    kind: Kind,
    subject: &str,
    now: UnixMillis,
    own: Value,
    more: Value,
) -> Notification {
    let data: serde_json::Map<String, Value> =
        [own, more].into_iter().filter_map(|part| part.as_object().cloned()).flatten().collect();
    let body = json!({ "type": kind, "timestamp": timestamp(now), "data": data });
    let digest = Digest::of(format!("{}/{subject}", kind.name()).as_bytes()).to_string();
    let id = format!("msg_{}", digest.chars().take(32).collect::<String>());
    Notification { kind, id, body: body.to_string() }
}

#[cfg(test)]
#[path = "notice_tests.rs"]
mod tests;
