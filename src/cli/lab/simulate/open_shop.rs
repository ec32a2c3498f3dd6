//! `sojourn simulate --open-shop`: one open shop, planned by one policy, against its lower bound.

use crate::cli::{
    model::atomic_file::NewFile,
    render::text,
    terminal::{exit::Failure, output},
};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use sojourn_protocol::jobfile::nearest;
use sojourn_sim::fleet::{Chart, Span};
use sojourn_workgen::plan::{
    Budget, Iterations, PlannerName, Problem, Schedule, Step, WHOLE, read_open_shop,
};
use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// The policies that plan every open shop, beside `milp`.
const APPLY: [&str; 4] = [
    PlannerName::Randomized.name(),
    PlannerName::Ltrp.name(),
    PlannerName::Rollout.name(),
    PlannerName::VectorRearrangement.name(),
];
/// The budget where none is named.
const BUDGET: Duration = Duration::from_millis(500);

#[derive(Debug, clap::Args)]
pub(super) struct Shop {
    /// Plan an open shop instead of a scenario: plain text, `n m` (jobs, machines), then n rows of m
    /// durations; `#` begins a comment.
    #[arg(long, value_name = "FILE", conflicts_with = "scenario")]
    pub(super) open_shop: Option<PathBuf>,
    /// Plan an open shop by `rollout` for so much processor time, or by `milp` for so long, such as `500ms`, `2s`, `10min`
    /// or `1d`; 500ms if left out. The other policies make one plan and have done.
    #[arg(long, value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    budget: Option<Duration>,
    /// Plan an open shop by `rollout` with so many iterations: the same bytes for the same seed, on any machine.
    #[arg(long, value_name = "N", value_parser = crate::cli::lab::simulate::number, allow_hyphen_values = true)]
    #[arg(conflicts_with = "budget")]
    iterations: Option<u64>,
}

impl Shop {
    /// Refuses a budget that nobody would spend, and says `why`.
    pub(super) fn refuse_budget(&self, why: &str) -> Result<(), Failure> {
        let flag = match (self.budget, self.iterations) {
            (Some(_), _) => "--budget",
            (None, Some(_)) => "--iterations",
            (None, None) => return Ok(()),
        };
        Err(Failure::call(format!("{flag}: {why}: leave it out")))
    }
}

/// The printed result. With a number of iterations it has no time, so that it is the same bytes each time.
#[derive(Debug, Serialize)]
struct Report {
    policy: &'static str,
    seed: u64,
    jobs: usize,
    machines: usize,
    makespan: u64,
    lower_bound: u64,
    ratio: f64,
    iterations: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    schedule: Operations,
}

/// A schedule in the words of open shops.
#[derive(Debug, Serialize)]
struct Operations {
    /// By start, then machine.
    steps: Vec<Operation>,
    makespan: u64,
}

/// One operation; jobs and machines count from 0.
#[derive(Debug, Serialize)]
struct Operation {
    job: u32,
    machine: u32,
    start: u64,
    end: u64,
}

impl Operations {
    fn of(schedule: &Schedule) -> Self {
        let operation = |step: &Step| Operation {
            job: step.trial,
            machine: step.machine,
            start: step.start,
            end: step.end,
        };
        Self { steps: schedule.steps.iter().map(operation).collect(), makespan: schedule.makespan }
    }
}

/// So much of this thread's processor time, counted in iterations: a busy machine makes no worse plan.
struct ProcessorTime {
    begun: Duration,
    length: Duration,
    iterations: u64,
}

impl ProcessorTime {
    fn of(length: Duration) -> Self {
        Self { begun: Self::so_far(), length, iterations: 0 }
    }

    fn so_far() -> Duration {
        // Since the thread began: not negative.
        Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
    }
}

impl Budget for ProcessorTime {
    fn next(&mut self) -> Option<u32> {
        let spent = Self::so_far().saturating_sub(self.begun);
        if spent >= self.length {
            return None;
        }
        self.iterations += 1;
        let ratio = spent.as_nanos() * u128::from(WHOLE) / self.length.as_nanos();
        u32::try_from(ratio).ok()
    }
}

pub(super) fn run(
    file: &Path,
    args: &Shop,
    policies: &[String],
    seed: Option<u64>,
    out: Option<&Path>,
    json: bool,
) -> Result<(), Failure> {
    let policy = Policy::of(policies)?;
    if !policy.searches() {
        args.refuse_budget(&format!("`{}` makes one plan and has done", policy.name()))?;
    }
    let seed = seed.unwrap_or(0);
    let path = file.display();
    let text = fs::read_to_string(file)
        .map_err(|error| Failure::call(format!("can't read `{path}`: {error}")))?;
    let (problem, jobs, machines) = read_open_shop(&text).map_err(|error| {
        let source = error.source().map(|source| format!(": {source}")).unwrap_or_default();
        Failure::call(format!("{path}: {error}{source}"))
    })?;
    let begun = Instant::now();
    let (schedule, iterations) = match policy {
        Policy::Planner(name) => planned(name, &problem, args, seed)?,
        #[cfg(feature = "milp")]
        Policy::Milp => (solved(&problem, args)?, 0),
    };
    let seconds = begun.elapsed().as_secs_f64();
    schedule
        .check(&problem)
        .map_err(|error| Failure::work(format!("the plan is none, which is our fault: {error}")))?;
    let lower_bound = problem.lower_bound();
    let report = Report {
        policy: policy.name(),
        seed,
        jobs,
        machines,
        makespan: schedule.makespan,
        lower_bound,
        ratio: ratio(schedule.makespan, lower_bound),
        iterations,
        seconds: args.iterations.is_none().then_some(seconds),
        schedule: Operations::of(&schedule),
    };
    if let Some(folder) = out {
        write(folder, &report, &schedule)?;
    }
    if json { output::json(&report) } else { output::line(&words(&report)) }
}

/// Writes the schedule and its charts.
fn write(folder: &Path, report: &Report, schedule: &Schedule) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(&report.schedule);
    let json = json.map_err(|error| Failure::work(error.to_string()))? + "\n";
    fs::create_dir_all(folder).map_err(|error| {
        Failure::work(format!("can't make the folder `{}`: {error}", folder.display()))
    })?;
    let title = format!("{}, seed {}", report.policy, report.seed);
    let chart = Chart::of_open_shop(title, report.machines, schedule);
    NewFile::write(&folder.join("schedule.json"), json.as_bytes())?;
    NewFile::write(&folder.join("gantt.svg"), chart.svg().as_bytes())?;
    NewFile::write(&folder.join("gantt.html"), chart.html().as_bytes())
}

/// The planner.
#[derive(Debug, Clone, Copy)]
enum Policy {
    Planner(PlannerName),
    #[cfg(feature = "milp")]
    Milp,
}

impl Policy {
    fn of(names: &[String]) -> Result<Self, Failure> {
        let name = match names {
            [] => return Ok(Self::Planner(PlannerName::Rollout)),
            [name] => name.trim(),
            _ => {
                let message = "--policy: an open shop is planned with one policy at a time";
                return Err(Failure::call(message));
            }
        };
        if name == "milp" {
            #[cfg(feature = "milp")]
            return Ok(Self::Milp);
            #[cfg(not(feature = "milp"))]
            return Err(Failure::call(
                "--policy: this program was built without `milp`; build it with `--features milp`, \
                 which needs cmake and libclang",
            ));
        }
        PlannerName::of(name).map(Self::Planner).ok_or_else(|| {
            let near = nearest(name, APPLY.into_iter().chain(["milp"]));
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let known = APPLY.join(", ");
            Failure::call(format!(
                "--policy: there is no `{name}` for open shops; {known} and milp{near}"
            ))
        })
    }

    /// Does it go on for as long as it may?
    const fn searches(self) -> bool {
        match self {
            Self::Planner(name) => matches!(name, PlannerName::Rollout | PlannerName::Migration),
            #[cfg(feature = "milp")]
            Self::Milp => true,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Planner(name) => name.name(),
            #[cfg(feature = "milp")]
            Self::Milp => "milp",
        }
    }
}

fn planned(
    name: PlannerName,
    problem: &Problem,
    args: &Shop,
    seed: u64,
) -> Result<(Schedule, u64), Failure> {
    let planner = name.planner();
    let (schedule, iterations) = if let Some(count) = args.iterations {
        let mut budget = Iterations::new(count);
        (planner.plan(problem, seed, &mut budget), budget.done())
    } else {
        let mut budget = ProcessorTime::of(args.budget.unwrap_or(BUDGET));
        (planner.plan(problem, seed, &mut budget), budget.iterations)
    };
    let schedule = schedule.ok_or_else(|| {
        let (name, answers) = (name.name(), name.answers());
        Failure::work(format!("`{name}` has no plan for this shop, it plans {answers}"))
    })?;
    Ok((schedule, iterations))
}

#[cfg(feature = "milp")]
fn solved(problem: &Problem, args: &Shop) -> Result<Schedule, Failure> {
    use sojourn_sim::milp::{Milp, Proof};
    if args.iterations.is_some() {
        return Err(Failure::call("--iterations: `milp` goes by time, give it a --budget"));
    }
    let limit = args.budget.unwrap_or(BUDGET);
    let plan = Milp { limit }.solve(problem);
    let plan = plan.map_err(|error| Failure::work(format!("`milp` has no plan: {error}")))?;
    if plan.proof == Proof::Optimal {
        output::remark("no schedule ends sooner");
    }
    Ok(plan.schedule)
}

/// How much longer than the bound; an empty shop is as good as it gets.
#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
fn ratio(makespan: u64, bound: u64) -> f64 {
    if bound == 0 { 1.0 } else { makespan as f64 / bound as f64 }
}

fn words(report: &Report) -> String {
    let Report { policy, jobs, machines, makespan, lower_bound, ratio, iterations, .. } = report;
    let mut text = format!(
        "policy       {}\njobs         {jobs}\nmachines     {machines}\nmakespan     {makespan}\n\
         lower bound  {lower_bound}\nratio        {ratio:.4}\niterations   {}",
        policy,
        text::count(*iterations),
    );
    if let Some(seconds) = report.seconds {
        text += &format!("\ntime         {:.1} ms", seconds * 1000.0);
    }
    text
}

/// A time with its unit.
fn duration(text: &str) -> Result<Duration, String> {
    // A number alone could be anything from milliseconds to minutes.
    if !text.ends_with(|last: char| last.is_ascii_alphabetic()) {
        return Err(format!("`{text}` is no time; write it such as 500ms, 2s, 10min or 1d"));
    }
    text.parse().map(|Span(micros)| Duration::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2 m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1d"), Ok(Duration::from_hours(24)));
        for text in ["", "5", "s", "-1s", "1w", "1e9s", "999999999d"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
