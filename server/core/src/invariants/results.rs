//! Invariants of results: none is forgotten between its report and its end.

use super::{Invariant, Subject, Violation, holds};
use sojourn_state::{PastState, State};

/// A1: an acknowledged report has ended, or waits in its trial's queue.
pub(super) fn reports_have_ended_or_wait(state: &State) -> Result<(), Violation> {
    for (id, past) in &state.past {
        holds(Invariant::A1, !state.leases.contains_key(id), || {
            format!("lease {id} is live and past")
        })?;
        let waits = matches!(past.state, PastState::Acknowledged(_));
        let unit = past.lease.unit;
        let trial = state.trial(unit.job(), unit.trial());
        let verification = state.jobs.get(&unit.job()).and_then(|job| job.verification_of(&unit));
        let in_line = trial.is_some_and(|trial| trial.waiting().any(|waiting| waiting == *id))
            || verification.is_some_and(|verification| verification.results.contains_key(id));
        holds(Invariant::A1, waits == in_line, || {
            format!("report {id}: acknowledged and open {waits}, in its queue {in_line}")
        })?;
    }
    Ok(())
}

/// A2: whatever could be assimilated now waits for an assimilator, or one has it.
pub(super) fn waiting_results_are_queued(of: Subject<'_>) -> Result<(), Violation> {
    let assimilations = of.queue;
    holds(Invariant::A2, assimilations.agree(), || {
        "the assimilators' queue and its index differ".into()
    })?;
    if of.clock.is_recovering() {
        return Ok(());
    }
    let trials = of.state.jobs.values().flat_map(|job| &job.trials);
    for lease in trials.filter_map(|trial| trial.awaiting.front().copied()) {
        let known = !of.state.is_to_assimilate(lease) || assimilations.since(lease).is_some();
        holds(Invariant::A2, known, || format!("no assimilator will ever be given lease {lease}"))?;
    }
    Ok(())
}
