//! Jobs as users and operators act on them: submission, control, placement, rollback, ends.
//!
//! | file | holds |
//! |---|---|
//! | `submit.rs` | submission of a job that was checked before |
//! | `control.rs` | pause, resume, extend, cancel |
//! | `delete.rs` | deletion of jobs that have ended |
//! | `note.rs` | what a user notes about a job |
//! | `population.rs` | population-based training: which trials go on, and which are replaced |
//! | `placement.rs` | priority, slot share and number of hosts |
//! | `evaluations.rs` | evaluations that users ask for |
//! | `retention.rs` | how much of ended jobs the operator keeps |
//! | `rollback.rs` | taking trials back to an earlier version |
//! | `search.rs` | early stopping: which trials go on |
//! | `suggest.rs` | trials that a search adds while others train |
//! | `change_search.rs`, `added_trials.rs`, `retried_trials.rs` | changes that users make: trials that they add, clone, stop, or run again |
//! | `stopping.rs` | the end of a job's wall time |

mod added_trials;
mod change_search;
mod control;
mod delete;
mod evaluations;
mod note;
mod placement;
mod population;
mod retention;
mod retried_trials;
mod rollback;
mod search;
mod stopping;
mod submit;
mod suggest;

pub(crate) use search::room as search_room;

use crate::{fault::CoreFault, results::ResultHandler};
use sojourn_protocol::{ids::JobId, spec::Replicas};
use sojourn_state::{Event, State, Trial};

/// Commands of users and operators.
pub(crate) struct JobHandler<'a> {
    pub(crate) results: ResultHandler<'a>,
}

impl JobHandler<'_> {
    fn state(&self) -> &State {
        self.results.ledger.state
    }

    fn record(&mut self, event: Event) -> Result<(), CoreFault> {
        self.results.ledger.record(event)
    }

    /// Trials were added, the first of them at this index. Hosts that keep the job's shards may not be capable of a model that is new.
    fn look_at_added(&mut self, job: JobId, first: usize) {
        let is_new = self.state().jobs.get(&job).is_some_and(|known| {
            let (before, added) = known.trials.split_at(first.min(known.trials.len()));
            let is_known = |new: &Trial| {
                before.iter().any(|of| of.context.config.model == new.context.config.model)
            };
            known.spec.placement.replicas != Replicas::Demand && !added.iter().all(is_known)
        });
        if is_new {
            self.results.data.outdate_replicas(job);
        }
    }

    /// A job that stood still goes on: it isn't owed what others got meanwhile.
    fn enter_fair_share(&mut self, job: JobId) {
        let ledger = &mut self.results.ledger;
        ledger.planner.enter(ledger.state, job);
    }
}
