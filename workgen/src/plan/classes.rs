//! Trials that each stay on machines of one numeric class: a class for each trial, then a plan for each class by itself.
//!
//! Classes are chosen so that the one that ends last ends as soon as possible. A class ends with its most loaded machine
//! or its longest trial, if its machines share each shard's visits without loss. Trials are placed longest first, as in
//! list scheduling on unrelated machines (Ibarra and Kim, "Heuristic Algorithms for Scheduling Independent Tasks on
//! Nonidentical Processors", J. ACM 24(2), 1977). Then single trials move out of the class that ends last, or change places
//! with others, for as long as that helps.

#![expect(clippy::indexing_slicing, reason = "ids of a checked problem are indices of its tables")]

use super::{
    Budget, WHOLE,
    problem::{Machine, PACE_ONE, PlanTrial, Problem, id},
    schedule::{Schedule, Step},
};
use sojourn_protocol::quantity::{SaturatingFrom as _, mul_div, mul_div_ceil};
use std::cmp::Reverse;

/// Fixed point of the number of machines that share a load.
const ONE: u64 = 1 << 20;
/// Steps of the search for better classes.
const MAX_EFFORT: u64 = 1 << 24;

/// A function that plans one class, with a seed and a budget.
pub type PlanClass<'a> = dyn Fn(&Problem, u64, &mut dyn Budget) -> Option<Schedule> + 'a;

/// A schedule in which each trial stays in one class, where the problem wants that; each class is planned by `planner`.
pub fn plan_by_class(
    problem: &Problem,
    seed: u64,
    budget: &mut dyn Budget,
    planner: &PlanClass<'_>,
) -> Option<Schedule> {
    let machines = problem.machines_by_class();
    if !problem.stays_in_class || (machines.len() <= 1 && problem.trials.iter().all(any_class)) {
        return planner(problem, seed, budget);
    }
    let mut search = Search::new(problem, machines)?;
    search.place();
    search.improve();
    search.plan(seed, budget, planner)
}

fn any_class(trial: &PlanTrial) -> bool {
    trial.class.is_none()
}

impl Problem {
    /// The machines of each class, by class.
    pub(super) fn machines_by_class(&self) -> Vec<(u32, Vec<u32>)> {
        let mut classes: Vec<(u32, Vec<u32>)> = Vec::new();
        for (machine, of) in (0u32..).zip(&self.machines) {
            match classes.binary_search_by_key(&of.class, |(class, _)| *class) {
                Ok(at) => classes[at].1.push(machine),
                Err(at) => classes.insert(at, (of.class, vec![machine])),
            }
        }
        classes
    }

    /// May a trial train all that it has left on these machines, which are of one class?
    pub(super) fn fits_class(&self, trial: &PlanTrial, class: u32, machines: &[u32]) -> bool {
        let holds = |shard: usize| match self.holders.get(shard) {
            Some(Some(holders)) => holders.iter().any(|machine| machines.contains(machine)),
            Some(None) => true,
            None => false,
        };
        trial.class.is_none_or(|own| own == class)
            && visits(trial, self.holders.len()).all(|(shard, _)| holds(shard))
    }
}

/// The shards that a trial still visits, and how often.
fn visits(trial: &PlanTrial, shards: usize) -> impl Iterator<Item = (usize, u64)> + '_ {
    let mut times = vec![u64::from(trial.epochs_after); shards];
    for shard in &trial.open {
        times[*shard as usize] += 1;
    }
    times.into_iter().enumerate().filter(|(_, times)| *times > 0)
}

/// The hops of a trial in a class: their times, and the trial's end.
#[derive(Debug)]
struct Part {
    /// By machine of the class, in its order: microseconds of the trial's hops there.
    loads: Vec<u64>,
    /// Microseconds until it would end on the best machines of the class alone.
    end: u64,
}

/// A class with the trials that it has.
#[derive(Debug)]
struct Class {
    machines: Vec<u32>,
    /// By machine: when it ends.
    ends: Vec<u64>,
    trials: Vec<u32>,
}

struct Search<'a> {
    problem: &'a Problem,
    classes: Vec<Class>,
    /// By trial, then class; none where the trial can't be there.
    parts: Vec<Vec<Option<Part>>>,
    /// By trial: its class.
    class_of: Vec<usize>,
}

impl<'a> Search<'a> {
    /// None where a trial fits no class.
    fn new(problem: &'a Problem, machines: Vec<(u32, Vec<u32>)>) -> Option<Self> {
        let part = |trial: &PlanTrial| -> Vec<Option<Part>> {
            let classes = machines.iter();
            classes.map(|(class, machines)| Part::new(problem, trial, *class, machines)).collect()
        };
        let parts: Vec<Vec<Option<Part>>> = problem.trials.iter().map(part).collect();
        if parts.iter().any(|parts| parts.iter().all(Option::is_none)) {
            return None;
        }
        let classes = machines.into_iter().map(|(_, machines)| {
            let ends = machines.iter().map(|machine| problem.machines[*machine as usize].free_at);
            Class { ends: ends.collect(), machines, trials: Vec::new() }
        });
        let class_of = vec![0; parts.len()];
        Some(Self { problem, classes: classes.collect(), parts, class_of })
    }

    /// Gives each trial a class, those first that take longest.
    fn place(&mut self) {
        let least = |trial: &u32| {
            let parts = self.parts[*trial as usize].iter().flatten();
            parts.map(|part| part.end).min().unwrap_or(0)
        };
        let mut order: Vec<u32> = (0..id(self.parts.len())).collect();
        // Those that have no choice are there before all others.
        order.sort_by_key(|trial| {
            let choices = self.parts[*trial as usize].iter().flatten().count();
            (choices > 1, Reverse(least(trial)), *trial)
        });
        for trial in order {
            let allowed =
                (0..self.classes.len()).filter(|class| self.part(trial, *class).is_some());
            let best = allowed.min_by_key(|class| (self.end_with(*class, trial), *class));
            self.add(trial, best.unwrap_or(0));
        }
    }

    /// Moves trials out of the class that ends last, one by one, or for another.
    fn improve(&mut self) {
        let mut effort = 0;
        while effort < MAX_EFFORT {
            let ends: Vec<u64> =
                (0..self.classes.len()).map(|class| self.end(class, &[])).collect();
            let Some(last) = (0..ends.len()).max_by_key(|class| (ends[*class], Reverse(*class)))
            else {
                return;
            };
            let mut best = (ends[last], None);
            for &trial in &self.classes[last].trials {
                for other in (0..self.classes.len()).filter(|other| *other != last) {
                    if self.part(trial, other).is_none() || ends[other] >= best.0 {
                        continue;
                    }
                    effort += self.effort(last) + self.effort(other);
                    let end = self.end(last, &[trial]).max(self.end_with(other, trial));
                    if end < best.0 {
                        best = (end, Some((trial, other, None)));
                    }
                    for &back in &self.classes[other].trials {
                        if effort > MAX_EFFORT || self.part(back, last).is_none() {
                            continue;
                        }
                        effort += self.effort(last) + self.effort(other);
                        let end = self.end_instead(last, trial, back);
                        let end = end.max(self.end_instead(other, back, trial));
                        if end < best.0 {
                            best = (end, Some((trial, other, Some(back))));
                        }
                    }
                }
            }
            let (_, Some((trial, other, back))) = best else { return };
            self.remove(trial);
            if let Some(back) = back {
                self.remove(back);
                self.add(back, last);
            }
            self.add(trial, other);
        }
    }

    fn effort(&self, class: usize) -> u64 {
        let class = &self.classes[class];
        (class.machines.len() + class.trials.len()) as u64
    }

    fn part(&self, trial: u32, class: usize) -> Option<&Part> {
        self.parts[trial as usize][class].as_ref()
    }

    /// When a class ends without these trials.
    fn end(&self, class: usize, without: &[u32]) -> u64 {
        self.end_of(class, without, None)
    }

    fn end_with(&self, class: usize, trial: u32) -> u64 {
        self.end_of(class, &[], Some(trial))
    }

    /// When a class ends that has one trial for another.
    fn end_instead(&self, class: usize, without: u32, with: u32) -> u64 {
        self.end_of(class, &[without], Some(with))
    }

    fn end_of(&self, class: usize, without: &[u32], with: Option<u32>) -> u64 {
        let of = &self.classes[class];
        let part = |trial: &u32| self.part(*trial, class);
        let more = with.as_ref().and_then(part);
        let less: Vec<&Part> = without.iter().filter_map(part).collect();
        let machines = of.ends.iter().enumerate().map(|(n, end)| {
            let more = more.map_or(0, |part| part.loads[n]);
            end + more - less.iter().map(|part| part.loads[n]).sum::<u64>()
        });
        let stays = of.trials.iter().filter(|trial| !without.contains(trial));
        let trials = stays.chain(with.as_ref()).filter_map(part).map(|part| part.end);
        machines.max().unwrap_or(0).max(trials.max().unwrap_or(0))
    }

    fn add(&mut self, trial: u32, class: usize) {
        self.class_of[trial as usize] = class;
        let Some(part) = &self.parts[trial as usize][class] else { return };
        let of = &mut self.classes[class];
        of.trials.push(trial);
        of.ends.iter_mut().zip(&part.loads).for_each(|(end, load)| *end += load);
    }

    fn remove(&mut self, trial: u32) {
        let class = self.class_of[trial as usize];
        let Some(part) = &self.parts[trial as usize][class] else { return };
        let of = &mut self.classes[class];
        of.trials.retain(|other| *other != trial);
        of.ends.iter_mut().zip(&part.loads).for_each(|(end, load)| *end -= load);
    }

    /// Plans each class by itself.
    fn plan(
        &mut self,
        seed: u64,
        budget: &mut dyn Budget,
        planner: &PlanClass<'_>,
    ) -> Option<Schedule> {
        let all = self.problem.hops().max(1);
        let (mut steps, mut before) = (Vec::new(), 0);
        for class in &mut self.classes {
            class.trials.sort_unstable();
            if class.trials.is_empty() {
                continue;
            }
            let problem = one_class(self.problem, class);
            let hops = problem.hops().max(1);
            let share = |hops: u64| u32::saturating_from(mul_div(u64::from(WHOLE), hops, all));
            let mut part = PartBudget {
                whole: budget,
                from: share(before),
                to: share(before + hops),
                each: all / hops,
                left: 0,
                spent: 0,
            };
            before += hops;
            let schedule = planner(&problem, seed, &mut part)?;
            steps.extend(schedule.steps.into_iter().map(|step| Step {
                trial: class.trials[step.trial as usize],
                machine: class.machines[step.machine as usize],
                ..step
            }));
        }
        Some(Schedule::new(steps))
    }
}

impl Part {
    fn new(problem: &Problem, trial: &PlanTrial, class: u32, machines: &[u32]) -> Option<Self> {
        if !problem.fits_class(trial, class, machines) {
            return None;
        }
        let pace =
            |machine: u32| trial.pace.get(machine as usize).copied().unwrap_or(PACE_ONE).max(1);
        let speed = |machine: u32| mul_div(ONE, PACE_ONE, pace(machine)).max(1);
        let (mut loads, mut end) = (vec![0; machines.len()], trial.begins_at());
        for (shard, times) in visits(trial, problem.holders.len()) {
            let may = |machine: u32| problem.may_train(id(shard), machine);
            let here = || machines.iter().enumerate().filter(|(_, machine)| may(**machine));
            let speeds: u64 = here().map(|(_, machine)| speed(*machine)).sum();
            let best = here().map(|(_, machine)| pace(*machine)).min()?;
            let work = trial.work[shard] * times;
            let each = mul_div_ceil(work, ONE, speeds.max(1));
            here().for_each(|(n, _)| loads[n] += each);
            end += mul_div_ceil(work, best, PACE_ONE);
        }
        Some(Self { loads, end })
    }
}

/// A class' own problem.
fn one_class(problem: &Problem, class: &Class) -> Problem {
    let here = |machine: u32| class.machines.binary_search(&machine).ok().map(id);
    let trials = class.trials.iter().map(|trial| {
        let trial = &problem.trials[*trial as usize];
        let pace = class.machines.iter().filter_map(|machine| trial.pace.get(*machine as usize));
        PlanTrial {
            pace: pace.copied().collect(),
            at: trial.at.and_then(|(machine, here_at)| Some((here(machine)?, here_at))),
            class: None,
            ..trial.clone()
        }
    });
    let machines = class.machines.iter().map(|machine| problem.machines[*machine as usize]);
    let holders = problem.holders.iter().map(|holders| {
        let holders = holders.as_ref()?;
        Some(holders.iter().filter_map(|machine| here(*machine)).collect())
    });
    Problem {
        trials: trials.collect(),
        machines: machines.map(|machine| Machine { class: 0, ..machine }).collect(),
        holders: holders.collect(),
        stays_in_class: false,
        spread: problem.spread,
    }
}

/// The part of a budget that one class has. Its iterations are smaller than those of the whole problem, and as many more.
struct PartBudget<'a> {
    whole: &'a mut dyn Budget,
    from: u32,
    to: u32,
    /// Iterations of this class for one of the whole.
    each: u64,
    left: u64,
    spent: u32,
}

impl Budget for PartBudget<'_> {
    fn next(&mut self) -> Option<u32> {
        if self.left == 0 {
            let spent = self.whole.next().filter(|spent| *spent < self.to)?;
            let of = u64::from(self.to - self.from).max(1);
            let spent = mul_div(u64::from(spent.saturating_sub(self.from)), u64::from(WHOLE), of);
            (self.spent, self.left) = (u32::saturating_from(spent), self.each.max(1));
        }
        self.left -= 1;
        Some(self.spent)
    }
}
