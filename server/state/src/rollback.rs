//! Takes a trial back to the end of an epoch, as if nothing had been trained since (`sojourn rollback`).

use super::{Best, FoldFault, Job, Merging, State, Trial, TrialEnd, trial::is_better};
use sojourn_protocol::{
    digest::BlobRef,
    ids::{Epoch, JobId, LeaseId, TrialId, Version},
    report::Sums,
    spec::{JobSpec, OrderChoice, Pbt, SearchMethod, SearchSpec},
    time::UnixMillis,
};
use sojourn_workgen::{Chain, ChainError};

/// Ends of epochs that are kept for it, where results are checked.
const KEPT: u32 = 3;
/// Ends of generations that are kept, in population-based training. A trial may be a generation ahead of others that will go on from
/// its state of then, but not further.
const KEPT_GENERATIONS: u32 = 2;

/// Which checkpoints of the ends of epochs a job's trials keep.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeptEnds {
    /// The last ones, to take trials back to.
    verified: bool,
    /// The ends of the last generations, which are of so many epochs: other trials may go on from them.
    generation: Option<u32>,
}

impl KeptEnds {
    /// `strangers`: hosts of issued owners are there.
    pub(super) fn of(spec: &JobSpec, strangers: bool) -> Self {
        let generation = match spec.search.method {
            SearchMethod::Pbt(Pbt { interval, .. }) => Some(interval.max(1)),
            _ => None,
        };
        let placement = &spec.placement;
        let verified =
            placement.verifies_all().is_some() || (strangers && placement.verifies_strangers());
        Self { verified, generation }
    }

    /// Is the end of so many epochs kept when `now` of them have ended?
    fn keeps(self, epochs: u32, now: u32) -> bool {
        let is_near = |length: u32| epochs.saturating_add(length) > now;
        let of_generation = self.generation.is_some_and(|interval| {
            epochs.is_multiple_of(interval) && is_near(interval.saturating_mul(KEPT_GENERATIONS))
        });
        of_generation || self.is_verified(epochs, now)
    }

    fn is_verified(self, epochs: u32, now: u32) -> bool {
        self.verified && epochs.saturating_add(KEPT) > now
    }
}

impl Trial {
    /// An epoch has ended with this checkpoint, to which the trial may be taken back, and from which a clone may go on.
    pub(super) fn keep_epoch(&mut self, epoch: Epoch, checkpoint: BlobRef, ends: KeptEnds) {
        let now = epoch.0.saturating_add(1);
        // Nobody goes on from the last end.
        if ends.keeps(now, now) && (ends.verified || now < self.epochs()) {
            self.kept.insert(epoch, checkpoint);
        }
        self.kept.retain(|epoch, _| ends.keeps(epoch.0.saturating_add(1), now));
    }

    /// A generation is over that ended after so many epochs: what was kept because others might go on from it isn't needed.
    fn forget_generation(&mut self, over: u32, ends: KeptEnds) {
        let now = self.chain.epoch().0;
        self.kept.retain(|epoch, _| {
            let epochs = epoch.0.saturating_add(1);
            epochs > over || ends.is_verified(epochs, now)
        });
    }

    /// Of the states that it can be taken back to, the latest after at most so many epochs; 0 is its start.
    #[must_use]
    pub fn kept_after(&self, epochs: u32) -> u32 {
        let kept = self.kept.range(..Epoch(epochs)).next_back();
        let start = self.origin.map_or(0, |origin| origin.epochs);
        kept.map_or(start, |(epoch, _)| epoch.0 + 1)
    }

    /// The trial's chain when it had trained so many epochs of its job.
    fn chain_after(&self, epochs: u32, job: &Job) -> Result<Chain, ChainError> {
        let mut chain = job.new_chain(self, self.chain.epochs());
        for record in self.history.iter().filter(|record| record.epoch().0 < epochs) {
            chain.advance_through(record.start, &record.then, record.end)?;
        }
        Ok(chain)
    }

    /// Has only so many epochs trained, as `chain` says. Leases up to `until` were granted before.
    fn roll_back(&mut self, epochs: u32, chain: Chain, search: &SearchSpec, until: LeaseId) {
        self.history.retain(|record| record.epoch().0 < epochs);
        self.chain = chain;
        self.version = self.history.last().map_or(Version(0), |record| record.version);
        self.checkpoint = self.history.last().map(|record| record.checkpoint);
        // A clone stays in the numeric class of the other.
        if self.history.is_empty() && self.origin.is_none() {
            (self.class, self.mixed) = (None, false);
        }
        self.train_sums = Sums::default();
        self.curve.retain(|point| point.epoch.0 < epochs);
        self.evaluations.retain(|epoch, _| epoch.0 < epochs);
        self.unevaluated.retain(|epoch, _| epoch.0 < epochs);
        for evaluation in self.evaluations.values_mut() {
            evaluation.verification = None;
        }
        self.kept.retain(|epoch, _| epoch.0 < epochs);
        self.extras.retain(|result| result.name.epoch.0 < epochs);
        if self.best.is_some_and(|best| best.epoch.0 >= epochs) {
            self.best = self.best_kept(search);
        }
        if !self.chain.is_done() && self.end == Some(TrialEnd::Finished) {
            (self.end, self.stopped) = (None, None);
            let unevaluated = std::mem::take(&mut self.unevaluated);
            self.evaluations.extend(unevaluated);
        }
        self.failures.clear();
        self.verification = None;
        self.verdicts.clear();
        self.void_until = until;
    }

    /// Has not ended. `named`: it is let train all its epochs, whatever a rule of early stopping says.
    fn forget_end(&mut self, named: bool) {
        (self.end, self.stopped, self.training_over) = (None, None, false);
        self.is_exempt |= named;
        if named && self.chain.epochs() < self.epochs() {
            self.chain.extend(self.epochs());
        }
    }

    /// The best evaluated epoch whose checkpoint is still there.
    fn best_kept(&self, search: &SearchSpec) -> Option<Best> {
        let mut best: Option<Best> = None;
        for point in &self.curve {
            let value = search.value(&point.valid, point.f1, &point.own);
            if let Some(checkpoint) = self.kept.get(&point.epoch)
                && is_better(search.goal, value, best.map(|best| best.value))
            {
                best = Some(Best { epoch: point.epoch, value, checkpoint: *checkpoint });
            }
        }
        best
    }
}

impl Job {
    /// Trials have more to train than before. The time since the job's end doesn't count.
    fn reopen(&mut self, at: UnixMillis) {
        if !self.search_ended() {
            self.run_again(at);
        }
        self.recount_load();
    }
}

impl State {
    /// A generation of a population is over, which ended after so many epochs.
    pub(super) fn generation_over(
        &mut self,
        job: JobId,
        epochs: u32,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        let known = self.known_job(job)?;
        let ends = KeptEnds::of(&known.spec, self.owners.has_issued());
        let keeping = known.trials.iter().filter(|trial| !trial.kept.is_empty());
        let keeping: Vec<TrialId> = keeping.map(|trial| trial.id).collect();
        for trial in keeping {
            self.change_trial(job, trial, at, |trial| trial.forget_generation(epochs, ends))?;
        }
        Ok(())
    }

    /// Takes a trial back to where it had trained so many epochs.
    pub(super) fn rolled_back(
        &mut self,
        job: JobId,
        id: TrialId,
        epochs: u32,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        let until = self.last_lease;
        let (known, trial) = (self.known_job(job)?, self.known_trial(job, id)?);
        if trial.kept_after(epochs) != epochs {
            let epoch = Epoch(epochs.saturating_sub(1));
            return Err(FoldFault::NotKept { job, trial: id, epoch });
        }
        let chain = trial.chain_after(epochs, known).map_err(FoldFault::Chain)?;
        let search = known.spec.search.clone();
        let merges = known.spec.placement.order == OrderChoice::Merge;
        let limit = known.spec.placement.merge_in_flight;
        self.change_trial(job, id, at, |trial| {
            trial.roll_back(epochs, chain, &search, until);
            trial.merging = merges.then(|| Merging::new(&trial.chain, limit));
        })?;
        self.known_job_mut(job)?.reopen(at);
        Ok(())
    }

    /// A trial that has failed begins anew: from its initial weights, or, where it is a clone, from the state of the other that it went on
    /// from. Its job runs again if it had ended, and has its time or budget once more if that was used up. No rule of early stopping
    /// ends the trial, since the rule has counted it among the worst.
    pub(super) fn trial_retried(
        &mut self,
        job: JobId,
        id: TrialId,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        let paid = self.paid_of_used_up(job, at);
        let (known, trial) = (self.known_job(job)?, self.known_trial(job, id)?);
        if !matches!(trial.end, Some(TrialEnd::Failed(_))) {
            return Err(FoldFault::NotFailed { job, trial: id });
        }
        let is_over = known.is_over(at);
        let has_rule = known.spec.search.stopping.is_some();
        let start = trial.origin.map_or(0, |origin| origin.epochs);
        self.known_trial_mut(job, id)?.forget_end(has_rule);
        self.rolled_back(job, id, start, at)?;
        self.change_trial(job, id, at, |trial| {
            let unevaluated = std::mem::take(&mut trial.unevaluated);
            trial.evaluations.extend(unevaluated);
            // The host where it stayed may be why it failed.
            trial.residence = None;
        })?;
        if is_over {
            let known = self.known_job_mut(job)?;
            known.begin_anew(at, paid, false);
            known.recount_load();
        }
        Ok(())
    }
}
