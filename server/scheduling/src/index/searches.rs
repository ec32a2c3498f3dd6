//! Jobs whose search is to be asked again, because more is known of their trials or slots have come and gone.

use sojourn_protocol::{
    ids::JobId,
    spec::{SearchMethod, Stopping},
};
use sojourn_state::Job;
use std::collections::BTreeSet;

/// The searches to decide on. It begins with all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Searches {
    /// More is known since they were decided on.
    undecided: BTreeSet<JobId>,
    /// Searches whose number of trials at once follows the slots.
    by_slots: BTreeSet<JobId>,
    /// The slots by which they were decided on.
    slots: u64,
}

impl Searches {
    /// Something of the job has changed; or it isn't there any more.
    pub fn changed(&mut self, id: JobId, job: Option<&Job>) {
        let Some(job) = job.filter(|job| job.is_running() && decides(job)) else {
            self.undecided.remove(&id);
            self.by_slots.remove(&id);
            return;
        };
        self.undecided.insert(id);
        if matches!(job.spec.search.stopping, Some(Stopping::Asha(_))) || job.search.is_open() {
            self.by_slots.insert(id);
        }
    }

    /// Is a search to be decided on, with so many slots?
    pub fn are_due(&self, slots: u64) -> bool {
        !self.undecided.is_empty() || (slots != self.slots && !self.by_slots.is_empty())
    }

    /// The searches to decide on, which are decided on with so many slots now.
    pub fn take_due(&mut self, slots: u64) -> BTreeSet<JobId> {
        let mut due = std::mem::take(&mut self.undecided);
        if slots != self.slots {
            due.extend(&self.by_slots);
            self.slots = slots;
        }
        due
    }

    /// The decisions on a job have changed it. No further decision is due, unless there is more to decide.
    pub fn decided(&mut self, job: JobId, has_more: bool) {
        if has_more {
            self.undecided.insert(job);
        } else {
            self.undecided.remove(&job);
        }
    }
}

/// Is there something to decide of its trials, or are there trials to come?
fn decides(job: &Job) -> bool {
    let search = &job.spec.search;
    let is_outside = search.method.is_outside();
    search.stopping.is_some()
        || search.total_epochs.is_some()
        || search.refit
        || matches!(search.method, SearchMethod::Pbt(_))
        || (job.search.is_open() && !is_outside)
        || job.ended_by_program().is_some()
}
