//! Population-based training: which trials of a population go on, and which are replaced by clones of others.

use super::{
    JobHandler,
    added_trials::{has_layout_of, settings},
};
use crate::{fault::CoreFault, submission::check_trial};
use sojourn_protocol::{
    ids::JobId,
    quantity::{SaturatingFrom as _, to_usize},
    spec::{Pbt, SearchMethod},
};
use sojourn_state::{AddedTrial, CloneOf, Event, Job, Trial, TrialEnd};
use sojourn_workgen::search::{
    MAX_TRIALS,
    pbt::{self, Decided, Exploit, Member, MemberEnd, Replaces},
    stopping::Decision,
};

impl JobHandler<'_> {
    /// Decides on a job's population, as far as is known. What is decided is journalled event by event: a server that starts again in
    /// between decides the rest.
    pub(super) fn decide_on_population(&mut self, job: JobId) -> Result<(), CoreFault> {
        loop {
            let known = self.state().jobs.get(&job);
            // Once its time is up nothing more is trained.
            let known = known.filter(|job| job.is_running() && job.grace.is_none());
            let Some((known, pbt)) = known.and_then(|job| Some((job, pbt_of(job)?))) else {
                return Ok(());
            };
            let (mut decisions, exploits, why) = decided(known, &pbt);
            decisions.extend(of_no_population(known, &pbt));
            if decisions.is_empty() && exploits.is_empty() {
                return Ok(());
            }
            decisions.into_iter().try_for_each(|decision| self.carry_out(job, decision))?;
            if !exploits.is_empty() {
                let (trials, nonce) = (exploits, None);
                let (suggested, by) = (0, None);
                self.record(Event::TrialsAdded { job, trials, suggested, why, nonce, by })?;
                self.results.ledger.planner.outdate_plan(job);
            }
        }
    }
}

/// How a job's population is trained, if it has one.
pub(crate) fn pbt_of(job: &Job) -> Option<Pbt> {
    match job.spec.search.method {
        SearchMethod::Pbt(pbt) => Some(pbt),
        _ => None,
    }
}

/// Is a trial of its job's population, or was it before it was replaced? Those that a user has added aren't.
pub(crate) fn is_of_population(job: &Job, pbt: &Pbt, trial: &Trial) -> bool {
    let first = to_usize(pbt.trials).saturating_mul(job.spec.seeds.len().max(1));
    trial.replaces.is_some() || to_usize(trial.id.0) < first
}

fn decided(job: &Job, pbt: &Pbt) -> (Vec<Decision>, Vec<AddedTrial>, String) {
    let of_it = job.trials.iter().filter(|trial| is_of_population(job, pbt, trial));
    let members: Vec<Member> = of_it.map(|trial| member(job, pbt, trial)).collect();
    let count = u32::saturating_from(members.len());
    let is_full = job.trials.len().saturating_add(to_usize(pbt.replaced_of(count))) > MAX_TRIALS;
    let can_clone = |trial, epochs| !is_full && job.can_clone(CloneOf { trial, epochs });
    let (goal, seed) = (job.spec.search.goal, job.spec.seed);
    let Decided { decisions, exploits, why } = pbt::decide(pbt, goal, seed, &members, &can_clone);
    let added = exploits.iter().filter_map(|exploit| added(job, pbt, exploit));
    (decisions, added.collect(), why)
}

/// A trial as the population has it.
fn member(job: &Job, pbt: &Pbt, trial: &Trial) -> Member {
    let interval = to_usize(pbt.interval).max(1);
    // Epochs may be evaluated in another order than they were trained in.
    let known = (0u32..).zip(&trial.curve).take_while(|(epoch, point)| point.epoch.0 == *epoch);
    let ends = known.skip(interval - 1).step_by(interval);
    let search = &job.spec.search;
    let replaces = trial.replaces.zip(trial.origin).map(|(replaced, origin)| Replaces {
        trial: replaced,
        from: origin.trial,
        generation: origin.epochs / pbt.interval.max(1),
    });
    Member {
        trial: trial.id,
        replaces,
        allowed: trial.chain.epochs(),
        epochs: trial.epochs(),
        waits: trial.is_held(),
        values: ends.map(|(_, point)| search.value(&point.valid, point.f1, &point.own)).collect(),
        end: trial.end.as_ref().map(|end| match end {
            TrialEnd::Failed(_) => MemberEnd::Failed,
            TrialEnd::Finished | TrialEnd::Cancelled => MemberEnd::Finished,
        }),
    }
}

/// The clone that takes the place of another.
fn added(job: &Job, pbt: &Pbt, exploit: &Exploit) -> Option<AddedTrial> {
    let Exploit { replaces: Replaces { trial, from, generation }, epochs, allowed } = *exploit;
    let parent = job.trial(from)?;
    let mut fits = |trial: &sojourn_workgen::Trial| {
        check_trial(&job.spec, &job.data, trial).is_ok()
            && has_layout_of(job, trial, parent).is_ok_and(|is_same| is_same)
    };
    let of = (trial, generation);
    let clone = pbt::explore(&job.spec, &settings(parent), of, pbt.resample, &mut fits);
    let from = Some(CloneOf { trial: from, epochs });
    let (replaces, allowed) = (Some(trial), Some(allowed));
    Some(AddedTrial { from, replaces, allowed, ..AddedTrial::new(clone) })
}

/// Trials that a user has added to the job train all their epochs: nobody compares them.
fn of_no_population(job: &Job, pbt: &Pbt) -> Vec<Decision> {
    let others = job.trials.iter().filter(|trial| !is_of_population(job, pbt, trial));
    let go_on = |trial: &Trial| Decision::Continue {
        trial: trial.id,
        epochs: trial.epochs(),
        why: "it isn't of the population".to_owned(),
    };
    others.filter(|trial| trial.is_held()).map(go_on).collect()
}
