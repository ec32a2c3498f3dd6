//! A whole schedule, and the proof that it is one.

use super::problem::{Problem, id};
use serde::{Deserialize, Serialize};
use sojourn_protocol::quantity::to_usize;

/// One hop with its machine and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The trial.
    pub trial: u32,
    /// The epoch of the hop; 0 is the trial's current one.
    pub epoch: u32,
    /// The shard.
    pub shard: u32,
    /// The machine.
    #[serde(rename = "place")]
    pub machine: u32,
    /// Microseconds from now until it begins.
    pub start: u64,
    /// And until it ends.
    pub end: u64,
}

/// Every hop of a problem, once.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// By start, then machine.
    pub steps: Vec<Step>,
    /// When the last one ends.
    pub makespan: u64,
}

/// Why a schedule is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum ScheduleError {
    #[error("{0:?} is no hop of the problem at a machine that may train it")]
    Unknown(Step),
    #[error("{0:?} stands twice")]
    Twice(Step),
    #[error("trial {trial} has {found} hops of {needed}")]
    Missing { trial: usize, found: u64, needed: u64 },
    /// Another duration than the problem's.
    #[error("{0:?} takes {1}")]
    Duration(Step, u64),
    #[error("{0:?} begins before {1}, when it can")]
    TooEarly(Step, u64),
    #[error("{0:?} stands behind epoch {1}")]
    Epoch(Step, u32),
    /// The step's trial has another shard next, by a fixed order.
    #[error("{0:?} comes before shard {1}")]
    Visit(Step, u32),
    #[error("{0:?} is on a machine of another class than the trial's hops before")]
    Class(Step),
    #[error("{0:?} is out of order")]
    Order(Step),
    #[error("the last hop ends at {0}, the makespan is {1}")]
    Makespan(u64, u64),
}

impl Schedule {
    /// The schedule of these steps.
    #[must_use]
    pub fn new(mut steps: Vec<Step>) -> Self {
        steps.sort_unstable_by_key(|step| {
            (step.start, step.machine, step.end, step.trial, step.shard)
        });
        let makespan = steps.iter().map(|step| step.end).max().unwrap_or(0);
        Self { steps, makespan }
    }

    /// The steps with their indices, each behind all that it follows in its trial or on its machine: of those that begin
    /// at one instant the hops that take no time come first, those of a trial in its order.
    pub(super) fn in_turn(&self, problem: &Problem) -> Vec<(usize, Step)> {
        let shards = problem.holders.len();
        let visit = |step: &Step| {
            let trial = problem.trials.get(step.trial as usize)?;
            let before = step
                .epoch
                .checked_sub(1)
                .map_or(0, |whole| trial.open.len() + whole as usize * shards);
            trial.order.iter().skip(before).position(|shard| *shard == step.shard)
        };
        let mut steps: Vec<(usize, Step)> = self.steps.iter().copied().enumerate().collect();
        // A visit is looked for in the whole order.
        steps.sort_by_cached_key(|(_, step)| (step.start, step.end, step.epoch, visit(step)));
        steps
    }

    /// Is every hop there once, on a machine that may train it and for its time, epochs and fixed visits in their
    /// order, and no trial and no machine busy twice at a time?
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check(&self, problem: &Problem) -> Result<(), ScheduleError> {
        let shards = problem.holders.len();
        let mut seen: Vec<Vec<bool>> = Vec::with_capacity(problem.trials.len());
        for trial in &problem.trials {
            // Shards of the current epoch that are not open count as seen.
            let mut of_trial = vec![false; shards * (trial.epochs_after as usize + 1)];
            of_trial.iter_mut().take(shards).for_each(|seen| *seen = true);
            for &shard in &trial.open {
                if let Some(seen) = of_trial.get_mut(shard as usize) {
                    *seen = false;
                }
            }
            seen.push(of_trial);
        }
        let mut trials: Vec<(u64, u32, u64)> =
            problem.trials.iter().map(|trial| (trial.begins_at(), 0, 0)).collect();
        let mut machines: Vec<u64> =
            problem.machines.iter().map(|machine| machine.free_at).collect();
        let mut classes: Vec<Option<u32>> =
            problem.trials.iter().map(|trial| trial.class).collect();
        for (before, step) in self.steps.iter().zip(self.steps.iter().skip(1)) {
            if (step.start, step.machine) < (before.start, before.machine) {
                return Err(ScheduleError::Order(*step));
            }
        }
        for (_, step) in self.in_turn(problem) {
            let unknown = ScheduleError::Unknown(step);
            let trial = step.trial as usize;
            let hop = step.epoch as usize * shards + step.shard as usize;
            let (Some(seen), Some((free, epoch, hops)), Some(machine), Some(at)) = (
                seen.get_mut(trial).and_then(|seen| seen.get_mut(hop)),
                trials.get_mut(trial),
                machines.get_mut(step.machine as usize),
                problem.machines.get(step.machine as usize),
            ) else {
                return Err(unknown);
            };
            if (step.shard as usize) >= shards || !problem.may_train(step.shard, step.machine) {
                return Err(unknown);
            }
            let class = classes.get_mut(trial).filter(|_| problem.stays_in_class);
            if class.is_some_and(|class| *class.get_or_insert(at.class) != at.class) {
                return Err(ScheduleError::Class(step));
            }
            if std::mem::replace(seen, true) {
                return Err(ScheduleError::Twice(step));
            }
            let time = problem.time(step.trial, step.shard, step.machine);
            if step.end.checked_sub(step.start) != Some(time) {
                return Err(ScheduleError::Duration(step, time));
            }
            if step.start < (*free).max(*machine) {
                return Err(ScheduleError::TooEarly(step, (*free).max(*machine)));
            }
            if step.epoch < *epoch {
                return Err(ScheduleError::Epoch(step, *epoch));
            }
            let next = problem.trials.get(trial).and_then(|of| of.ordered(to_usize(*hops)));
            if let Some(next) = next.filter(|next| *next != step.shard) {
                return Err(ScheduleError::Visit(step, next));
            }
            (*free, *epoch, *hops) = (step.end, step.epoch, *hops + 1);
            *machine = step.end + at.latency;
        }
        self.check_whole(problem, &trials)
    }

    fn check_whole(
        &self,
        problem: &Problem,
        trials: &[(u64, u32, u64)],
    ) -> Result<(), ScheduleError> {
        // All hops once, and epochs never fall: so each epoch is whole before the next begins.
        for (number, (trial, (_, _, found))) in problem.trials.iter().zip(trials).enumerate() {
            let epochs = u64::from(trial.epochs_after);
            let needed = trial.open.len() as u64 + epochs * u64::from(id(problem.holders.len()));
            if *found != needed {
                return Err(ScheduleError::Missing { trial: number, found: *found, needed });
            }
        }
        let last = self.steps.iter().map(|step| step.end).max().unwrap_or(0);
        if last == self.makespan {
            Ok(())
        } else {
            Err(ScheduleError::Makespan(last, self.makespan))
        }
    }
}
