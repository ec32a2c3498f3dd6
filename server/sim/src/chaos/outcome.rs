//! The conditions that must hold when all is done.

use super::training;
use sojourn_core::{
    Core, Record, State,
    state::{ExtraEnd, Job, JobEnd, Trial, TrialEnd},
};
use sojourn_protocol::{
    digest::Digest,
    ids::{Epoch, HostId, LeaseId, ShardId, Version},
    manifest::DataSplit,
    quantity::to_u64,
    report::Sums,
    time::Millis,
    unit::shard_index,
    view::{HopRecord, TrialHistory, Verification},
};
use std::collections::BTreeSet;

/// A world that ended well.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Steps of the core.
    pub steps: u64,
    /// Events in the journal.
    pub events: u64,
    /// Trials that finished.
    pub finished: u64,
    /// Finished trials whose checkpoint follows from the job alone.
    pub fixed: u64,
    /// Trials that failed.
    pub failed: u64,
    /// Trials that their search has stopped.
    pub stopped: u64,
    /// Epochs that each trial of the job has trained.
    pub lengths: Vec<u32>,
    /// Of each trial, the one from which it goes on, after so many epochs, and its settings.
    pub lineage: Vec<String>,
    /// Leases that ran out.
    pub expired: u64,
    /// Evaluations outside the search.
    pub extras: u64,
    /// Results that came too late.
    pub superseded: u64,
    /// Results that were refused.
    pub rejected: u64,
    /// Second copies of running hops.
    pub copies: u64,
    /// Deaths of the server.
    pub server_crashes: u64,
    /// Crashes and silences of hosts.
    pub host_faults: u64,
    /// Pauses that stopped a running job.
    pub pauses: u64,
    /// Extensions of trials.
    pub extensions: u64,
    /// Results that went through several shards.
    pub several: u64,
    /// Results that went through several shards and ended within their last one.
    pub several_cut: u64,
    /// Results that were merged, and those of them whose base wasn't the version before.
    pub merged: u64,
    /// See `merged`.
    pub stale: u64,
    /// Results that other hosts came to as well, and those that others came to otherwise.
    pub confirmed: u64,
    /// See `confirmed`.
    pub refuted: u64,
    /// Versions that nobody was there to verify.
    pub unverified: u64,
    /// Units that a host got while the result that they go on from was on its way.
    pub went_on: u64,
    /// Moves of trials that stay on hosts.
    pub moved: u64,
    /// In worlds with liars: versions of all trials that are lies.
    pub false_versions: u64,
    /// Is one of them, or a lie about an evaluation, in the best model, which would be released?
    pub false_best: u64,
    /// The same where nothing says so: no result of a refuted party is in doubt.
    pub false_best_unsaid: u64,
    /// Trials that were taken back after a refutation, without anybody's word.
    pub rolled_back: u64,
    /// Rollbacks that waited for the user's word.
    pub asked: u64,
    /// From the first job's submission to its end.
    pub took: Millis,
}

/// A world that didn't, with the line that runs it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The condition that doesn't hold, in words.
    pub what: String,
    /// How to see it again.
    pub reproduce: String,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\nto see it again: {}", self.what, self.reproduce)
    }
}

impl std::error::Error for Broken {}

/// Every finished trial is what one machine would have made, and every acknowledged report has ended. What liars came to
/// is in none of them, but where nobody could be asked to come to it as well.
pub(crate) fn check(
    core: &Core,
    journal: &[Record],
    acknowledged: &BTreeSet<LeaseId>,
    liars: &Liars,
) -> Result<(), String> {
    check_trials(core.state(), liars)?;
    for lease in acknowledged {
        let past = core.state().past.get(lease);
        let state = past.and_then(|past| past.report_state());
        if !matches!(state, Some(sojourn_protocol::report::ReportState::Ended(_))) {
            return Err(format!(
                "A1: the acknowledged report of lease {lease} has not ended: {state:?}"
            ));
        }
    }
    let gap = journal.iter().zip(1u64..).find(|(record, n)| record.position.0 != *n);
    gap.map_or(Ok(()), |(record, n)| Err(format!("event {n} is {record:?}")))
}

/// The hosts of a world that lie.
#[derive(Debug)]
pub(crate) struct Liars {
    pub(crate) hosts: BTreeSet<HostId>,
    /// Whether the lies of these hosts are counted, and needn't be found.
    pub(crate) are_counted: bool,
}

/// The versions of a trial that aren't what their replay makes.
fn false_versions(job: &Job, trial: &Trial) -> Vec<Version> {
    training::different(&history_of(job, trial))
}

/// Counts the lies in a job at its end.
pub(crate) fn count_lies(state: &State, job: &Job, outcome: &mut Outcome) {
    for trial in &job.trials {
        outcome.false_versions += to_u64(false_versions(job, trial).len());
    }
    let Some((id, best)) = job.best() else { return };
    let Some(trial) = job.trial(id) else { return };
    let false_ones: BTreeSet<Version> = false_versions(job, trial).into_iter().collect();
    let mut of_best = trial.history.iter().filter(|hop| hop.epoch() <= best.epoch);
    let is_trained_so = of_best.any(|hop| false_ones.contains(&hop.version));
    let point = trial.curve.iter().find(|point| point.epoch == best.epoch);
    let is_evaluated_so =
        point.is_some_and(|point| point.valid != valid_sums(job, trial, &best.checkpoint.sha256));
    if is_trained_so || is_evaluated_so {
        outcome.false_best += 1;
        outcome.false_best_unsaid += u64::from(state.is_beyond_doubt(job));
    }
}

/// The sums that the validation rows give for a checkpoint.
fn valid_sums(job: &Job, trial: &Trial, checkpoint: &Digest) -> Sums {
    let shards = job.evaluated_shards(trial, DataSplit::Valid);
    shards
        .iter()
        .fold(Sums::default(), |all, shard| all.plus(&training::sums(checkpoint, shard.rows)))
}

fn history_of(job: &Job, trial: &Trial) -> TrialHistory {
    TrialHistory {
        merge: None,
        job: job.id,
        trial: trial.id,
        job_seed: trial.seed_in(job),
        context: trial.context.clone(),
        former: trial.former.clone(),
        data: job.data.clone(),
        numeric_class: trial.class,
        initial_weights: trial.initial_weights,
        origin: trial.origin,
        hops: trial.history.clone(),
    }
}

fn check_trials(state: &State, liars: &Liars) -> Result<(), String> {
    for job in state.jobs.values() {
        check_test(job)?;
        for trial in &job.trials {
            check_extras(job, trial, liars)?;
            check_curve(job, trial, liars)?;
            let history = history_of(job, trial);
            let lied = |version: &Version| {
                let mut hops = trial.history.iter().filter(|hop| hop.version == *version);
                let unverified = |hop: &HopRecord| {
                    liars.are_counted || hop.verified == Some(Verification::Unverified)
                };
                hops.any(|hop| liars.hosts.contains(&hop.host) && unverified(hop))
            };
            if let Some(version) = training::different(&history).iter().find(|of| !lied(of)) {
                return Err(format!(
                    "version {version} of trial {} isn't what its replay makes",
                    trial.id
                ));
            }
            if trial.end == Some(TrialEnd::Finished) && !is_cut_short(trial) {
                if follows_from_job(job, trial) && trial.checkpoint != training::of_job(job, trial)
                {
                    return Err(format!("trial {} isn't what its job decides", trial.id));
                }
                check_whole(trial, &history)?;
            }
        }
    }
    Ok(())
}

/// Has its search stopped it before its first epoch ended, after an epoch that wasn't its last one begun, or before all of them were
/// evaluated?
fn is_cut_short(trial: &Trial) -> bool {
    let length = trial.length();
    let begun = trial.history.last().map_or(0, |hop| hop.epoch().0 + 1);
    let is_evaluated = to_u64(trial.curve.len()) >= length.into();
    length == 0 || (length < trial.epochs() && (begun > length || !is_evaluated))
}

/// Does the job alone decide a trial's checkpoints: its visits are fixed, and nobody has changed its length?
pub(crate) fn follows_from_job(job: &Job, trial: &Trial) -> bool {
    job.spec.placement.has_fixed_visits() && trial.former.is_empty()
}

/// Versions of a trial that were made over several shards, and those of them that end within their last.
pub(crate) fn several(job: &Job, trial: &Trial) -> (u64, u64) {
    let records = trial.history.iter().filter(|record| !record.then.is_empty());
    let minibatches = trial.context.config.training.minibatches();
    records.fold((0, 0), |(several, cut), record| {
        let shard = job.data.train.get(shard_index(record.end.shard));
        let size = shard.map_or(0, |shard| minibatches.of_hop(shard.rows));
        (several + 1, cut + u64::from(record.end.batch < size))
    })
}

/// The best trial of a finished job was tested, or its test was given up after errors.
fn check_test(job: &Job) -> Result<(), String> {
    let finished = matches!(job.end, Some((JobEnd::Finished, _)));
    let Some(test) = job.test_of_best().filter(|_| finished && !job.data.test.is_empty()) else {
        return Ok(());
    };
    let tested = job.extra_result(&test).is_some();
    tested.then_some(()).ok_or_else(|| format!("job {} has ended without its test", job.id))
}

/// Every evaluation outside the search is of what the trial's history has, over the rows of its split.
fn check_extras(job: &Job, trial: &Trial, liars: &Liars) -> Result<(), String> {
    for result in &trial.extras {
        let mut of_epoch = trial.history.iter().filter(|hop| hop.epoch() == result.name.epoch);
        if of_epoch.next_back().map(|hop| hop.checkpoint) != Some(result.checkpoint) {
            return Err(format!("{result:?} isn't of the checkpoint of its epoch"));
        }
        if let ExtraEnd::Evaluated { sums, by_class, verified, .. } = &result.end {
            if may_be_a_lie(*verified, liars) {
                continue;
            }
            let shards = job.evaluated_shards(trial, result.name.split);
            let wanted = shards.iter().fold(Sums::default(), |all, shard| {
                all.plus(&training::sums(&result.checkpoint.sha256, shard.rows))
            });
            let fault = by_class.as_ref().map(|by_class| by_class.fault(2, sums));
            if *sums != wanted || fault != Some(None) {
                return Err(format!("{result:?} isn't what its checkpoint gives"));
            }
        }
    }
    Ok(())
}

/// Nobody could be asked about an evaluation, and one of the hosts lies.
fn may_be_a_lie(verified: Option<Verification>, liars: &Liars) -> bool {
    (liars.are_counted || verified == Some(Verification::Unverified)) && !liars.hosts.is_empty()
}

/// Every evaluation of the search is of its epoch's checkpoint.
fn check_curve(job: &Job, trial: &Trial, liars: &Liars) -> Result<(), String> {
    // A clone has the curve of the other trial, up to where it goes on from it.
    let first = trial.origin.map_or(0, |origin| origin.epochs);
    let own = trial.curve.iter().filter(|point| point.epoch.0 >= first);
    for point in own.filter(|point| !may_be_a_lie(point.verified, liars)) {
        let of_epoch = trial.history.iter().rfind(|hop| hop.epoch() == point.epoch);
        let checkpoint = of_epoch.ok_or_else(|| format!("{point:?} is of no epoch"))?.checkpoint;
        let wanted = valid_sums(job, trial, &checkpoint.sha256);
        if point.valid != wanted {
            return Err(format!("trial {}: {point:?} isn't what its checkpoint gives", trial.id));
        }
    }
    Ok(())
}

/// A finished trial was trained on every batch of every shard but those of its fold once in every epoch, from first to last.
fn check_whole(of: &Trial, history: &TrialHistory) -> Result<(), String> {
    let (trial, epochs, evaluated) = (of.id, of.length(), to_u64(of.curve.len()));
    let minibatches = history.context.config.training.minibatches();
    let mut trained = BTreeSet::new();
    for hop in &history.hops {
        let way = history.hop_of(hop, history.first_base()).ok_or("a shard is unknown")?;
        for stretch in way.segments() {
            let (start, shard) = (stretch.start.batch, stretch.start.shard);
            let last = shard == hop.end.shard;
            let end = if last { hop.end.batch } else { stretch.end.batch };
            for batch in start..end {
                if !trained.insert((hop.epoch(), shard, batch)) {
                    return Err(format!("H1: trial {trial}: {hop:?} trains batch {batch} again"));
                }
            }
        }
    }
    let mut wanted = BTreeSet::new();
    let first = history.origin.map_or(0, |origin| origin.epochs);
    for epoch in (first..epochs).map(Epoch) {
        let all = (0u32..).map(ShardId).zip(&history.data.train);
        let is_visited = |shard: &ShardId| of.fold.is_none_or(|fold| !fold.holds_out(*shard));
        for (shard, data) in all.filter(|(shard, _)| is_visited(shard)) {
            let batches = minibatches.of_hop(data.rows);
            wanted.extend((0..batches).map(|batch| (epoch, shard, batch)));
        }
    }
    if trained != wanted {
        return Err(format!("H1: trial {trial} missed or added batches"));
    }
    let to_evaluate = if of.refit.is_some() { 0 } else { epochs };
    if u64::from(to_evaluate) != evaluated {
        return Err(format!("trial {trial} was evaluated {evaluated} times in {epochs} epochs"));
    }
    Ok(())
}
