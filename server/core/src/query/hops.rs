//! The view of a job's hops: its running trials by its shards.

use super::Views;
use sojourn_protocol::{
    error::ApiError,
    ids::{Epoch, HostId, JobId, LeaseId, ShardId},
    quantity::SaturatingFrom as _,
    report::Outcome,
    view::{HopMatrixView, HopRow, HopState},
};
use sojourn_state::{Job, Lease, PastState, PendingEvaluation, Trial, UnitKey};
use std::collections::BTreeMap;

/// Trials in a matrix at most.
const MAX_ROWS: usize = 200;
/// Cells that all rows of a matrix have together at most; one row is whole, however many it has.
const MAX_CELLS: usize = 10_000;

/// The leases of a shard's hop.
#[derive(Default)]
struct HopLeases {
    /// Hosts that train it now.
    running: Vec<HostId>,
    /// A host that has a lease for it.
    leased: Option<HostId>,
    /// Whether the hop's result waits.
    reported: bool,
}

impl Views<'_> {
    /// How far the hops of a job's running trials are.
    pub(crate) fn hops(&self, job: JobId) -> Result<HopMatrixView, ApiError> {
        let job = self.state.find_job(job)?;
        let running = || job.trials.iter().filter(|trial| trial.is_running());
        let shards = job.data.train.len();
        let rows = (MAX_CELLS / shards.max(1)).clamp(1, MAX_ROWS);
        let begun = running().filter(|trial| has_begun(trial));
        let others = running().filter(|trial| !has_begun(trial));
        let rows = begun.chain(others).take(rows);
        Ok(HopMatrixView {
            job: job.id,
            shards: u32::saturating_from(shards),
            running: u32::saturating_from(running().count()),
            trials: rows.map(|trial| self.hop_row(job, trial)).collect(),
        })
    }

    fn hop_row(&self, job: &Job, trial: &Trial) -> HopRow {
        let mut leases = self.leases_by_shard(trial);
        let shards = 0..u32::saturating_from(job.data.train.len());
        let cell = |shard| hop_state(trial, shard, leases.remove(&shard).unwrap_or_default());
        let is_evaluated = |evaluation: &PendingEvaluation| !evaluation.live.is_empty();
        let last = Epoch(trial.chain.epochs().saturating_sub(1));
        HopRow {
            trial: trial.id,
            epoch: trial.chain.epoch().min(last),
            cells: shards.map(ShardId).map(cell).collect(),
            evaluating: trial.evaluations.values().any(is_evaluated),
            waiting: self.trial_waits(job, trial).map(|reason| reason.to_string()),
        }
    }

    /// The leases of a trial's hops in its current epoch.
    fn leases_by_shard(&self, trial: &Trial) -> BTreeMap<ShardId, HopLeases> {
        let mut all: BTreeMap<ShardId, HopLeases> = BTreeMap::new();
        for id in reported_hops(trial) {
            for shard in self.reported_shards(id) {
                all.entry(shard).or_default().reported = true;
            }
        }
        for lease in trial.live_hops().filter_map(|id| self.state.leases.get(&id)) {
            let now = self.trained_now(trial, lease);
            for shard in shards_of(trial, lease) {
                let hop = all.entry(shard).or_default();
                hop.leased = Some(lease.host);
                if now == Some(shard) {
                    hop.running.push(lease.host);
                }
            }
        }
        all
    }

    /// The shard that a live lease's host trains now, by the batches that it has reported; `None` where it hasn't begun, or has
    /// trained all of them.
    fn trained_now(&self, trial: &Trial, lease: &Lease) -> Option<ShardId> {
        let deadline = self.leases.deadline(lease.id).filter(|deadline| deadline.is_running())?;
        let mut shards = shards_of(trial, lease).peekable();
        let mut done = deadline.done;
        while let Some(shard) = shards.next() {
            let batches = trial.chain.remaining_in(shard);
            if done < batches || shards.peek().is_none() {
                return Some(shard);
            }
            done -= batches;
        }
        None
    }

    /// The shards that a reported lease has trained.
    fn reported_shards(&self, lease: LeaseId) -> Vec<ShardId> {
        let past = self.state.past.get(&lease);
        let Some((lease, outcome)) = past.and_then(|past| match &past.state {
            PastState::Acknowledged(outcome) => Some((&past.lease, outcome)),
            PastState::Closed(_) | PastState::Failed(_) | PastState::Ended(_) => None,
        }) else {
            return Vec::new();
        };
        let (UnitKey::Train { shard, .. }, Outcome::Trained(trained)) = (lease.unit, &**outcome)
        else {
            return Vec::new();
        };
        let all = [shard].into_iter().chain(lease.then.iter().copied());
        let last = all.clone().position(|shard| shard == trained.end.shard);
        all.take(last.map_or(0, |last| last + 1)).collect()
    }
}

/// Has a hop of it been trained or leased?
fn has_begun(trial: &Trial) -> bool {
    trial.chain.step() > 0 || trial.live_hops().next().is_some()
}

/// Leases of a trial's hops whose results wait: to be assimilated, or for other hosts to come to the same.
fn reported_hops(trial: &Trial) -> impl Iterator<Item = LeaseId> {
    let merging = trial.merging.iter().flat_map(|merging| merging.units.values());
    let merging = merging.flat_map(|unit| &unit.reported);
    let verified = trial.verification.iter().flat_map(|of| of.results.keys());
    trial.awaiting.iter().chain(merging).chain(verified).copied()
}

/// The shards of a lease of the trial's current epoch, in order.
fn shards_of(trial: &Trial, lease: &Lease) -> impl Iterator<Item = ShardId> {
    let first = match lease.unit {
        UnitKey::Train { epoch, shard, .. } if epoch == trial.chain.epoch() => Some(shard),
        UnitKey::Train { .. } | UnitKey::Evaluate { .. } | UnitKey::Extra { .. } => None,
    };
    let then = lease.then.iter().copied().filter(move |_| first.is_some());
    first.into_iter().chain(then)
}

fn hop_state(trial: &Trial, shard: ShardId, leases: HopLeases) -> HopState {
    if !trial.chain.is_open(shard) {
        return HopState::Done;
    }
    if !leases.running.is_empty() {
        return HopState::Running { hosts: leases.running };
    }
    if leases.reported {
        return HopState::Reported;
    }
    match (leases.leased, trial.chain.progress(shard)) {
        (Some(host), _) => HopState::Leased { host },
        (None, Some((batches, of))) if batches > 0 => HopState::Partial { batches, of },
        (None, _) => HopState::Open,
    }
}
