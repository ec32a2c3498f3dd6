//! Cerebro's program of its section 5.1, by `HiGHS`: a reference for small problems.
//!
//! ```text
//!   least C, with for each hop its start X >= 0 and its end X + d <= C, and
//!     two hops of one trial in one epoch:   X1 + d1 <= X2 + V (1 - Y)    X2 + d2 <= X1 + V Y
//!                                           where their order is fixed:  X1 + d1 <= X2
//!     two hops that may be at one machine p:  the same, unless one is elsewhere: + V (2 - A1p - A2p)
//!     a hop of several holders:             sum of Ap = 1,  d = sum of Ap (time at p)
//!     an epoch after another:               X >= the ends of all hops of the one before
//! ```
//!
//! The assignments A are the extension for replicas. V is the end of what `ltrp` makes, which is also the
//! start of the search; times are in parts of the lower bound. What is found becomes whole numbers
//! again by its order alone, each hop as soon as it can (`whole_numbers.rs`).

use crate::whole_numbers::{float, in_order};
use good_lp::{
    Expression, ProblemVariables, Solution, SolutionStatus, SolverModel, Variable,
    WithInitialSolution, WithTimeLimit, constraint, highs, variable,
};
use sojourn_workgen::plan::{Iterations, Ltrp, PlanTrial, Planner, Problem, Schedule, Step};
use std::{collections::BTreeMap, time::Duration};

/// Pairs of hops that may not overlap; beyond it, building the program takes longer than its answer is
/// worth.
const MAX_PAIRS: usize = 100_000;

/// Ends closer than that, in parts of the whole, count as the same.
const TOLERANCE: f32 = 1e-6;

/// The program with its time limit.
#[derive(Debug, Clone, Copy)]
pub struct Milp {
    /// After so much time the best found is taken.
    pub limit: Duration,
}

/// The schedule that was found, with its proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MilpPlan {
    /// The schedule.
    pub schedule: Schedule,
    /// Is it known that none ends sooner?
    pub proof: Proof,
}

/// The proof that a schedule is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// None ends sooner, by more than a hundred-thousandth.
    Optimal,
    /// The time was over first.
    None,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MilpError {
    /// Too many pairs of hops.
    #[error("the program would have more than {MAX_PAIRS} pairs of hops")]
    TooLarge,
    /// The solver has none.
    #[error("the solver found nothing: {0}")]
    Solver(String),
}

/// A hop with its variables.
struct Hop {
    step: Step,
    start: Variable,
    /// By machine that may train it: one where it does. Alone: no variable.
    machines: BTreeMap<u32, Option<Variable>>,
    takes: Expression,
}

impl Milp {
    /// The best schedule within the time.
    ///
    /// # Errors
    ///
    /// The problem is too large, or the solver has no answer at all.
    pub fn solve(&self, problem: &Problem) -> Result<MilpPlan, MilpError> {
        let first = Ltrp.plan(problem, 0, &mut Iterations::new(0));
        let first = first.ok_or_else(|| MilpError::Solver("no start".to_owned()))?;
        let pairs = pairs(problem, &first).ok_or(MilpError::TooLarge)?;
        let bound = problem.lower_bound();
        if first.makespan <= bound {
            return Ok(MilpPlan { schedule: first, proof: Proof::Optimal });
        }
        let unit = float(bound.max(1));
        let big = float(first.makespan) / unit;
        let mut variables = ProblemVariables::new();
        let mut known = Vec::new();
        let end = variables.add(variable().min(float(bound) / unit).max(big));
        known.push((end, big));
        let hops: Vec<Hop> = first
            .steps
            .iter()
            .map(|step| hop(problem, *step, unit, &mut variables, &mut known))
            .collect();
        let choices: Vec<Variable> = pairs
            .iter()
            .map(|&(a, b)| {
                let choice = variables.add(variable().binary());
                let is_first = |(a, b): (&Step, &Step)| (a.start, a.end) <= (b.start, b.end);
                let steps = first.steps.get(a).zip(first.steps.get(b));
                known.push((choice, f64::from(u8::from(steps.is_some_and(is_first)))));
                choice
            })
            .collect();
        let model = variables.minimise(end).using(highs).set_threads(1);
        let model = model.set_mip_rel_gap(TOLERANCE);
        let model = model.map_err(|error| MilpError::Solver(error.to_string()))?;
        let mut model =
            model.with_time_limit(self.limit.as_secs_f64()).with_initial_solution(known);
        for hop in &hops {
            model.add_constraint(constraint!(hop.start + hop.takes.clone() <= end));
            if hop.machines.len() > 1 {
                let sum: Expression = hop.machines.values().flatten().sum();
                model.add_constraint(constraint!(sum == 1.0));
                for (machine, chosen) in &hop.machines {
                    let free = problem.machines.get(*machine as usize).map_or(0, |at| at.free_at);
                    if let (Some(chosen), true) = (chosen, free > 0) {
                        model
                            .add_constraint(constraint!(hop.start >= float(free) / unit * *chosen));
                    }
                }
            }
        }
        for (&(a, b), &choice) in pairs.iter().zip(&choices) {
            let (Some(a), Some(b)) = (hops.get(a), hops.get(b)) else { continue };
            for constraint in apart(problem, a, b, choice, unit, big) {
                model.add_constraint(constraint);
            }
        }
        for (before, after) in epochs(&first).into_iter().chain(fixed_visits(problem, &first)) {
            let (Some(before), Some(after)) = (hops.get(before), hops.get(after)) else { continue };
            model.add_constraint(constraint!(before.start + before.takes.clone() <= after.start));
        }
        let solution = model.solve().map_err(|error| MilpError::Solver(error.to_string()))?;
        let found = whole_numbers(problem, &hops, &solution, unit);
        let schedule = if found.makespan < first.makespan { found } else { first };
        // What the solver proves is of its own fractions: nothing where the whole numbers came out longer.
        let longest = solution.value(end) * unit * (1.0 + 10.0 * f64::from(TOLERANCE)) + 0.5;
        let proof = match solution.status() {
            // The gap that is left is the tolerance.
            SolutionStatus::Optimal | SolutionStatus::GapLimit
                if float(schedule.makespan) <= longest =>
            {
                Proof::Optimal
            }
            _ => Proof::None,
        };
        let proof = if schedule.makespan == bound { Proof::Optimal } else { proof };
        Ok(MilpPlan { schedule, proof })
    }
}

fn hop(
    problem: &Problem,
    step: Step,
    unit: f64,
    variables: &mut ProblemVariables,
    known: &mut Vec<(Variable, f64)>,
) -> Hop {
    let all: Vec<u32> = (0..).take(problem.machines.len()).collect();
    let holders = problem.holders.get(step.shard as usize).and_then(Option::as_ref);
    let holders = holders.unwrap_or(&all);
    let mut free = problem.trials.get(step.trial as usize).map_or(0, |trial| trial.free_at);
    let mut machines = BTreeMap::new();
    let mut takes = Expression::from(0.0);
    for &machine in holders {
        let time = float(problem.time(step.trial, step.shard, machine)) / unit;
        if let [only] = holders[..] {
            free = free.max(problem.machines.get(only as usize).map_or(0, |at| at.free_at));
            machines.insert(machine, None);
            takes += time;
        } else {
            let chosen = variables.add(variable().binary());
            known.push((chosen, f64::from(u8::from(machine == step.machine))));
            machines.insert(machine, Some(chosen));
            takes += time * chosen;
        }
    }
    let start = variables.add(variable().min(float(free) / unit));
    known.push((start, float(step.start) / unit));
    Hop { step, start, machines, takes }
}

/// Hops that may not overlap, and that no epoch keeps apart; none where they are too many.
fn pairs(problem: &Problem, schedule: &Schedule) -> Option<Vec<(usize, usize)>> {
    let mut pairs = Vec::new();
    let share = |a: &Step, b: &Step| {
        (0..)
            .take(problem.machines.len())
            .any(|p| problem.may_train(a.shard, p) && problem.may_train(b.shard, p))
    };
    for (number, a) in schedule.steps.iter().enumerate() {
        for (other, b) in schedule.steps.iter().enumerate().skip(number + 1) {
            let is_free = || !has_fixed_order(problem, a.trial);
            let apart = match a.trial == b.trial {
                true => a.epoch == b.epoch && is_free(),
                false => share(a, b),
            };
            if apart {
                pairs.push((number, other));
            }
        }
        if pairs.len() > MAX_PAIRS {
            return None;
        }
    }
    Some(pairs)
}

fn has_fixed_order(problem: &Problem, trial: u32) -> bool {
    problem.trials.get(trial as usize).is_some_and(PlanTrial::has_fixed_order)
}

/// Hops of one trial that follow each other by the fixed order of its visits. Those of a schedule are in that order.
fn fixed_visits(problem: &Problem, schedule: &Schedule) -> Vec<(usize, usize)> {
    let mut order: Vec<(usize, &Step)> = schedule.steps.iter().enumerate().collect();
    order.retain(|(_, step)| has_fixed_order(problem, step.trial));
    order.sort_by_key(|(_, step)| (step.trial, step.start, step.end, step.epoch));
    let pairs = order.iter().zip(order.iter().skip(1));
    let of_one = pairs.filter(|((_, a), (_, b))| a.trial == b.trial);
    of_one.map(|((before, _), (after, _))| (*before, *after)).collect()
}

/// Hops of one trial in epochs that follow each other.
fn epochs(schedule: &Schedule) -> Vec<(usize, usize)> {
    let steps = || schedule.steps.iter().enumerate();
    let follow = |a: &Step, b: &Step| a.trial == b.trial && b.epoch == a.epoch + 1;
    let after = |(number, a)| {
        steps().filter(move |(_, b)| follow(a, b)).map(move |(other, _)| (number, other))
    };
    steps().flat_map(after).collect()
}

/// One of the two orders, as `choice` says.
fn apart(
    problem: &Problem,
    a: &Hop,
    b: &Hop,
    choice: Variable,
    unit: f64,
    big: f64,
) -> Vec<good_lp::Constraint> {
    let order = |slack: &Expression, rest: f64| {
        let forth = a.start + a.takes.clone() + rest - b.start - big * (1.0 - choice);
        let back = b.start + b.takes.clone() + rest - a.start - big * choice;
        [constraint!(forth <= slack.clone()), constraint!(back <= slack.clone())]
    };
    if a.step.trial == b.step.trial {
        return order(&Expression::from(0.0), 0.0).into();
    }
    let mut constraints = Vec::new();
    for (machine, in_a) in &a.machines {
        let Some(in_b) = b.machines.get(machine) else { continue };
        let mut slack = Expression::from(0.0);
        for chosen in [in_a, in_b].into_iter().flatten() {
            slack += big * (1.0 - *chosen);
        }
        let rest = problem.machines.get(*machine as usize).map_or(0, |machine| machine.latency);
        constraints.extend(order(&slack, float(rest) / unit));
    }
    constraints
}

/// The schedule in the order of the solution.
fn whole_numbers(problem: &Problem, hops: &[Hop], solution: &impl Solution, unit: f64) -> Schedule {
    let found = hops.iter().map(|hop| {
        let chosen = hop.machines.iter().max_by(|(_, a), (_, b)| {
            let value = |chosen: &Option<Variable>| chosen.map_or(1.0, |one| solution.value(one));
            value(a).total_cmp(&value(b))
        });
        let machine = chosen.map_or(hop.step.machine, |(machine, _)| *machine);
        (solution.value(hop.start) * unit, Step { machine, ..hop.step })
    });
    in_order(problem, found)
}
