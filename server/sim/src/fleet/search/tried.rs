//! The trials of the other way: those that its job begins with, and those that its procedure suggests as slots are free.

use crate::fleet::{
    job::{SimJob, index},
    plan::Plan,
};
use sojourn_protocol::{
    ids::TrialId,
    quantity::{SaturatingFrom as _, to_usize},
    spec::{Goal, SearchMethod, Stopping, Tpe},
};
use sojourn_workgen::{
    Trial,
    search::{
        Tried as Combinations,
        stopping::{TrialProgress, first_epochs},
        tpe::{self, Observation, Outcome},
    },
};

/// The trials so far, with what their training would give.
pub(super) struct Tried<'a> {
    plan: &'a Plan,
    job: &'a SimJob,
    trials: Vec<Trial>,
    /// Of each, the loss after each epoch.
    curves: Vec<Vec<f64>>,
    /// How many there are to be in all.
    wanted: usize,
}

impl<'a> Tried<'a> {
    /// The trials that the plan's only job begins with.
    pub(super) fn new(plan: &'a Plan) -> Result<Self, String> {
        let job = plan.jobs.first().filter(|job| plan.jobs.len() == 1 && job.surrogate.is_some());
        let job = job.ok_or("one job with a `surrogate` is needed")?;
        let first = sojourn_workgen::trials(&job.spec).map_err(|error| error.to_string())?;
        let wanted = match job.spec.search.method {
            SearchMethod::Tpe(Tpe { trials, batch: None, .. }) => to_usize(trials),
            SearchMethod::Grid | SearchMethod::Random { .. } | SearchMethod::Sobol { .. } => {
                first.len()
            }
            _ => return Err("one trial per slot isn't known of this `search.method`".into()),
        };
        let mut tried = Self { plan, job, trials: Vec::new(), curves: Vec::new(), wanted };
        first.into_iter().try_for_each(|trial| tried.add(trial))?;
        Ok(tried)
    }

    fn add(&mut self, trial: Trial) -> Result<(), String> {
        let id = TrialId(u32::saturating_from(self.trials.len()));
        let surrogate = self.job.surrogate.as_ref().ok_or("there are no curves")?;
        self.curves.push(surrogate.curve(&trial.config, self.plan.seed, id)?);
        self.trials.push(trial);
        Ok(())
    }

    pub(super) const fn job(&self) -> &'a SimJob {
        self.job
    }

    pub(super) fn len(&self) -> usize {
        self.trials.len()
    }

    /// Will there be more of them?
    pub(super) fn has_more(&self) -> bool {
        self.trials.len() < self.wanted
    }

    /// How a trial begins: with as many epochs as its rule allows.
    pub(super) fn begun(&self, trial: usize) -> TrialProgress {
        let (rule, epochs) = (self.job.spec.search.stopping, self.job.epochs);
        let id = TrialId(u32::saturating_from(trial));
        let allowed = first_epochs(rule.as_ref(), id, epochs);
        TrialProgress { allowed, ..TrialProgress::default() }
    }

    /// A trial's loss after so many epochs.
    pub(super) fn loss(&self, trial: usize, epochs: u32) -> f64 {
        let curve = self.curves.get(trial);
        let loss = curve.and_then(|curve| curve.get(index(epochs.checked_sub(1)?)));
        loss.copied().unwrap_or(f64::NAN)
    }

    /// Floating-point operations of training on a row of a trial.
    pub(super) fn flops(&self, trial: usize) -> f64 {
        self.trials.get(trial).map_or(0.0, |of| self.job.flops_of(trial, &of.config))
    }

    /// Adds the trial that is suggested by how those before stand.
    pub(super) fn suggest(&mut self, progress: &[TrialProgress]) -> Result<(), String> {
        let tried = self.trials.iter().zip(progress);
        let observations = tried.map(|(trial, of)| Observation {
            model: trial.model,
            choices: &trial.choices,
            outcome: self.outcome(of),
        });
        let observations: Vec<Observation<'_>> = observations.collect();
        let number = u32::saturating_from(self.trials.len());
        let tried = self.trials.iter().map(|trial| (trial.model, &trial.config));
        let tried = Combinations::of(tried);
        let suggested = tpe::suggest(&self.job.spec, &observations, number, &tried, &mut |_| true);
        let trial = suggested.map_err(|error| error.to_string())?;
        self.add(trial)
    }

    /// The outcome of a trial so far, as the core counts it.
    fn outcome(&self, of: &TrialProgress) -> Outcome {
        let search = &self.job.spec.search;
        if of.values.is_empty() || !(of.has_ended || search.stopping.is_some()) {
            return Outcome::Running;
        }
        let epochs = match search.stopping {
            Some(Stopping::Patience { .. }) => self.job.epochs,
            _ => u32::saturating_from(of.values.len()),
        };
        let better = if search.goal == Goal::Max { f64::max } else { f64::min };
        let value = of.values.iter().copied().reduce(better).unwrap_or(f64::NAN);
        Outcome::Ended { epochs, value }
    }
}
