//! The work of an assimilator for a result, and how its offer must fit that.

use crate::command::MergeOffer;
use sojourn_protocol::{
    assimilation::AssimilationUnit,
    digest::BlobRef,
    ids::{ClaimId, JobId, LeaseId, TrialId, Version},
    manifest::DataSplit,
    report::Trained,
    time::Millis,
    unit::{Canary, Hop, Merge},
    view::MergeRecord,
};
use sojourn_scheduling::leases::hop_message;
use sojourn_state::State;
use sojourn_workgen::Advance;

pub(crate) fn assimilation_unit(
    state: &State,
    lease: LeaseId,
    term: Millis,
) -> Option<AssimilationUnit> {
    if !state.is_to_assimilate(lease) {
        return None;
    }
    let (hop, trained) = trained_hop(state, lease)?;
    let stretch = hop.segments().find(|stretch| stretch.start.shard == trained.end.shard)?;
    Some(AssimilationUnit {
        lease,
        claim: ClaimId::default(),
        term,
        expected_end: stretch.position_at(trained.end.batch)?,
        version: state.trial(hop.job, hop.trial)?.version.next(),
        merge: merge_of(state, lease, &trained),
        hop,
        trained,
    })
}

/// How a result is to be merged; `None` where the trial's results aren't.
fn merge_of(state: &State, lease: LeaseId, trained: &Trained) -> Option<Merge> {
    let lease = state.lease(lease)?;
    let job = state.jobs.get(&lease.unit.job())?;
    let trial = job.trial(lease.unit.trial())?;
    let merging = trial.merging.as_ref()?;
    let position = trial.end_in_chain(lease, trained.end)?;
    let mut chain = trial.chain.clone();
    let spec = job.spec.placement.merging();
    let held_out = job.evaluated_shards(trial, DataSplit::Valid);
    let canary = spec.canary.zip(held_out.first());
    let advance = chain.advance(chain.next(position.shard)?, position).ok()?;
    Some(Merge {
        spec,
        current: trial.base(),
        state: merging.state,
        staleness: trial.staleness(lease),
        in_flight: merging.in_flight.max(1),
        position,
        flush: trial.flush_with(lease, matches!(advance, Advance::Epoch(_))),
        canary: canary.map(|(most, shard)| Canary { shard: *shard, most }),
    })
}

/// The record of a merge that was offered; `None` where the offer doesn't fit the work.
pub(crate) fn merge_record(
    state: &State,
    lease: LeaseId,
    trained: BlobRef,
    checkpoint: BlobRef,
    offer: Option<MergeOffer>,
) -> Option<Option<MergeRecord>> {
    let (known, report) = state.trained_result(lease)?;
    let Some(merge) = merge_of(state, lease, report) else {
        return (offer.is_none() && checkpoint == trained).then_some(None);
    };
    let MergeOffer { state, flush, in_flight } = offer?;
    (checkpoint.bytes == trained.bytes).then_some(Some(MergeRecord {
        base: known.base,
        staleness: merge.staleness,
        in_flight,
        flush,
        from: merge.state,
        state,
    }))
}

fn trained_hop(state: &State, lease: LeaseId) -> Option<(Hop, Trained)> {
    let (past, trained) = state.trained_result(lease)?;
    Some((hop_message(state, past)?, trained.clone()))
}

/// The trial of a result that waits, the version that it would make, and its checkpoint.
pub(crate) fn next_version(
    state: &State,
    lease: LeaseId,
) -> Option<(JobId, TrialId, Version, BlobRef)> {
    let (past, trained) = state.trained_result(lease)?;
    let (job, trial) = (past.unit.job(), past.unit.trial());
    let known = state.trial(job, trial)?;
    Some((job, trial, known.version.next(), trained.checkpoint))
}
