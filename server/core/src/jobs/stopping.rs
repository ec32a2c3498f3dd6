//! Jobs whose wall time is over.

use super::JobHandler;
use crate::{
    event::Event,
    fault::CoreFault,
    state::{Job, running_in_flight},
};
use sojourn_protocol::ids::JobId;

impl JobHandler<'_> {
    /// Ends the searches whose wall time is over.
    pub(crate) fn stop_overdue(&mut self) -> Result<(), CoreFault> {
        let now = self.results.ledger.clock.now();
        let over = |job: &&Job| job.time_up_at().is_some_and(|at| at <= now);
        let over: Vec<JobId> = self.state().jobs.values().filter(over).map(|job| job.id).collect();
        for job in over {
            let in_flight = self.state().jobs.get(&job).map(running_in_flight);
            self.record(Event::JobTimeUp { job })?;
            for of_trial in in_flight.into_iter().flatten() {
                self.results.abandon(of_trial)?;
            }
        }
        let ledger = &mut self.results.ledger;
        ledger.index.update_wall_time(ledger.state);
        Ok(())
    }
}
