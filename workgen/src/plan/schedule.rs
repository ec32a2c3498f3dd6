//! A whole schedule, and the proof that it is one.

use super::problem::{Problem, id};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One hop with its machine and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The trial.
    pub trial: u32,
    /// Its epoch; 0 is the current one.
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

    /// The same hops on the same machines, with the trials of a machine in turn by epochs instead of one after the other.
    /// `epochs`: the current epoch of each trial, which the steps count from.
    ///
    /// A machine that shares a trial with another machine keeps its order. On the others hops follow one another without
    /// gaps: while one trial waits for its checkpoint, others train.
    #[must_use]
    pub fn breadth_first(self, epochs: &[u32]) -> Self {
        let epoch =
            |step: &Step| epochs.get(step.trial as usize).map_or(0, |first| first + step.epoch);
        let mut machines: BTreeMap<u32, Vec<Step>> = BTreeMap::new();
        let mut first_machine: BTreeMap<u32, u32> = BTreeMap::new();
        let mut moving = BTreeSet::new();
        for step in &self.steps {
            machines.entry(step.machine).or_default().push(*step);
            if *first_machine.entry(step.trial).or_insert(step.machine) != step.machine {
                moving.insert(step.trial);
            }
        }
        for steps in machines.values_mut() {
            if steps.iter().any(|step| moving.contains(&step.trial)) {
                continue;
            }
            let mut time = steps.iter().map(|step| step.start).min().unwrap_or(0);
            steps.sort_by_key(|step| (epoch(step), step.start));
            for step in steps {
                let takes = step.end.saturating_sub(step.start);
                (step.start, step.end) = (time, time.saturating_add(takes));
                time = step.end;
            }
        }
        Self::new(machines.into_values().flatten().collect())
    }

    /// Is every hop there once, on a machine that may train it and for its time, epochs in their order,
    /// and no trial and no machine busy twice at a time?
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
        // Hops that take no time come before others that begin with them.
        let mut steps = self.steps.clone();
        steps.sort_by_key(|step| (step.start, step.end, step.epoch));
        for step in steps {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn step(trial: u32, epoch: u32, machine: u32, start: u64) -> Step {
        Step { trial, epoch, shard: 0, machine, start, end: start + 10 }
    }

    fn order(schedule: &Schedule, machine: u32) -> Vec<(u32, u32, u64)> {
        let steps = schedule.steps.iter().filter(|step| step.machine == machine);
        steps.map(|step| (step.trial, step.epoch, step.start)).collect()
    }

    #[test]
    fn the_trials_of_a_machine_take_turns_by_epochs() {
        // The second trial is two epochs behind, and the machine waits between epochs.
        let steps = vec![step(0, 0, 0, 5), step(0, 1, 0, 20), step(1, 0, 0, 40), step(1, 1, 0, 60)];
        let breadth = Schedule::new(steps).breadth_first(&[2, 1]);
        assert_eq!(order(&breadth, 0), [(1, 0, 5), (0, 0, 15), (1, 1, 25), (0, 1, 35)]);
        assert_eq!(breadth.makespan, 45);
    }

    #[test]
    fn machines_between_which_a_trial_moves_keep_their_order() {
        let steps = vec![
            step(0, 0, 0, 0),
            step(0, 1, 0, 10),
            step(1, 0, 0, 20),
            step(1, 1, 1, 30),
            step(2, 0, 2, 0),
        ];
        let schedule = Schedule::new(steps);
        assert_eq!(schedule.clone().breadth_first(&[0, 0, 0]), schedule);
    }
}
