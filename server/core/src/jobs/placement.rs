//! Changes of a running job's placement: its priority, its slot share, and its number of hosts.

use super::JobHandler;
use crate::reply::Reply;
use sojourn_protocol::{
    api::PlacementRequest,
    error::{ApiError, ErrorKind},
    ids::JobId,
    spec::{MAX_HOSTS, MAX_PRIORITY, MAX_SLOT_SHARE},
};
use sojourn_state::{Event, Job};

impl JobHandler<'_> {
    /// Changes a job's placement. Running units end as usual, wherever they are.
    pub(crate) fn place(&mut self, job: JobId, request: PlacementRequest) -> Reply<()> {
        let known = self.state().find_running_job(job, "change")?;
        let priority = known.spec.placement.priority;
        if let Some(event) = changed(known, request)? {
            self.record(event)?;
            let ledger = &mut self.results.ledger;
            ledger.planner.change_priority(ledger.state, job, priority);
            // Other hosts may keep its shards, and a plan may have become possible or worthless.
            ledger.planner.forget_plan(job);
            self.results.data.forget_job(job);
            self.results.ledger.planner.budgets_mut().changed();
        }
        Ok(())
    }
}

/// The event of a change; `None` where nothing changes.
fn changed(job: &Job, request: PlacementRequest) -> Result<Option<Event>, ApiError> {
    let is = &job.spec.placement;
    let invalid = |message: String| Err(ApiError::new(ErrorKind::Invalid, message));
    let PlacementRequest { priority, slot_share, max_hosts, budget, deadline } = request;
    if priority.is_some_and(|priority| !(-MAX_PRIORITY..=MAX_PRIORITY).contains(&priority)) {
        return invalid(format!("a priority is -{MAX_PRIORITY} to {MAX_PRIORITY}"));
    }
    if slot_share.is_some_and(|slot_share| !(1..=MAX_SLOT_SHARE).contains(&slot_share)) {
        return invalid(format!("a share is 1 to {MAX_SLOT_SHARE}"));
    }
    if max_hosts.is_some_and(|most| most > MAX_HOSTS) {
        return invalid(format!("a job has at most {MAX_HOSTS} hosts"));
    }
    let (priority, slot_share) =
        (priority.unwrap_or(is.priority), slot_share.unwrap_or(is.slot_share));
    let max_hosts = match max_hosts {
        Some(0) => None,
        Some(most) => Some(most),
        None => is.max_hosts,
    };
    let (budget, deadline) = (budget.map_or(is.budget, some), deadline.map_or(is.deadline, some));
    let mut changed = is.clone();
    (changed.priority, changed.slot_share, changed.max_hosts) = (priority, slot_share, max_hosts);
    (changed.budget, changed.deadline) = (budget, deadline);
    if changed == *is {
        return Ok(None);
    }
    changed.check().map_err(|message| ApiError::new(ErrorKind::Invalid, message))?;
    Ok(Some(Event::JobPlaced { job: job.id, priority, slot_share, max_hosts, budget, deadline }))
}

/// A limit; none where it is 0.
fn some<T: Default + PartialEq>(limit: T) -> Option<T> {
    (limit != T::default()).then_some(limit)
}
