//! What a user changes of a running job's placement: whose turn it is, and on how many hosts it may be.

use crate::{command::ReplyTo, core::Core, event::Event, state::Job};
use sojourn_protocol::{
    api::PlacementRequest,
    error::{ApiError, ErrorKind},
    ids::{JobId, LeaseId},
    spec::{HIGHEST_PRIORITY, LARGEST_SHARE},
};

impl Core {
    /// Units that run end as usual, wherever they are.
    pub(crate) fn place(&mut self, to: ReplyTo, job: JobId, request: PlacementRequest) {
        let known = match self.job_under_way(job, "change") {
            Ok(known) => known,
            Err(error) => return self.reply(to, Err(error)),
        };
        match changed(known, request) {
            Ok(Some(event)) => self.take_place(job, event),
            Ok(None) => {}
            Err(error) => return self.reply(to, Err(error)),
        }
        self.reply_job(to, job);
    }

    fn take_place(&mut self, job: JobId, event: Event) {
        let before = self.state.jobs.get(&job).map(|job| job.spec.placement.priority);
        self.emit(event);
        let after = self.state.jobs.get(&job).map(|job| job.spec.placement.priority);
        if before != after {
            let leases = self.state.leases.values().filter(|lease| lease.unit.job() == job);
            let leases: Vec<LeaseId> = leases.map(|lease| lease.id).collect();
            if let Some(shares) = before.and_then(|before| self.soft.shares.get_mut(&before)) {
                shares.leave(job, leases.into_iter());
            }
            self.shares_of(job).enter(job);
        }
        // Other hosts may be its shards' homes, and a plan may have become possible or worthless.
        self.soft.schedule.homes.remove(&job);
        self.soft.schedule.plans.remove(&job);
        self.soft.work_changed = true;
    }
}

/// What a request changes; nothing where all is so already.
fn changed(job: &Job, request: PlacementRequest) -> Result<Option<Event>, ApiError> {
    let is = &job.spec.placement;
    let invalid = |message: String| Err(ApiError::new(ErrorKind::Invalid, message));
    let PlacementRequest { priority, share, max_hosts } = request;
    if priority.is_some_and(|priority| !(-HIGHEST_PRIORITY..=HIGHEST_PRIORITY).contains(&priority))
    {
        return invalid(format!("a priority is -{HIGHEST_PRIORITY} to {HIGHEST_PRIORITY}"));
    }
    if share.is_some_and(|share| !(1..=LARGEST_SHARE).contains(&share)) {
        return invalid(format!("a share is 1 to {LARGEST_SHARE}"));
    }
    let (priority, share) = (priority.unwrap_or(is.priority), share.unwrap_or(is.share));
    let max_hosts = match max_hosts {
        Some(0) => None,
        Some(most) => Some(most),
        None => is.max_hosts,
    };
    let same = (priority, share, max_hosts) == (is.priority, is.share, is.max_hosts);
    Ok((!same).then_some(Event::JobPlaced { job: job.id, priority, share, max_hosts }))
}
