//! `sojourn simulate`: a scenario file's hosts and jobs in virtual time, around the core that the server
//! runs. Prints a table; with `--out` also charts, the results as JSON, and what the core decided. Or an
//! open shop from a file, planned by one policy.

mod kinds;
mod look;
mod lying;
mod open_shop;
mod server_load;
mod skew;
mod table;
mod training;

use crate::cli::{
    model::atomic_file::NewFile,
    terminal::{exit::Failure, output},
};
use look::Look;
use serde::Serialize;
use server_load::ServerLoad;
use sojourn_protocol::quantity::to_usize;
use sojourn_sim::fleet::{
    self, Ask, Cell, KindSummary, Policies, Policy, Row, RunResult, ScenarioError, Study, Trains,
};
use std::{
    fs,
    path::{Path, PathBuf},
};
use training::Training;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The scenario file; paths in it are relative to its folder.
    #[arg(value_name = "SCENARIO.TOML")]
    scenario: Option<PathBuf>,
    #[command(flatten)]
    shop: open_shop::Shop,
    /// Compare these policies, instead of those that the file names: `randomized`, `ltrp`, `rollout`,
    /// `vector-rearrangement`, and `milp` where the program was built with it. For an open shop the one to
    /// plan it with, `rollout` if left out.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    policy: Vec<String>,
    /// Begin with this seed, instead of the file's.
    #[arg(long, value_name = "N", value_parser = number, allow_hyphen_values = true)]
    seed: Option<u64>,
    /// Run so many seeds, instead of the file's number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(conflicts_with = "open_shop", allow_hyphen_values = true)]
    seeds: Option<u32>,
    /// Set a key of every row, over what the file says, such as `job.epochs=2`; a value is written as in TOML, a bare
    /// word is a text. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "open_shop")]
    settings: Vec<String>,
    /// Write `result.json`, and for the first seed `gantt.svg`, `gantt.html` and `events.jsonl`, into this
    /// folder; with several rows or policies, the latter into a folder of its own for each. Of an open shop
    /// `schedule.json`, `gantt.svg` and `gantt.html`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Say also what the fleet asks of one server: requests, share of a core, memory, length of the journal. As
    /// `load = true` in the file.
    #[arg(long, conflicts_with = "open_shop")]
    load: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The JSON that is printed and written: the same bytes for the same file and seeds.
#[derive(Serialize)]
struct Report<'a> {
    normalised_by: String,
    cells: &'a [Cell],
    /// Drawn fleets by their kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kinds: Vec<KindSummary>,
    /// With `--load`: of this machine, and not the same each time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    load: Vec<ServerLoad>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let file = match (&args.shop.open_shop, &args.scenario) {
        (Some(shop), _) => {
            let out = args.out.as_deref();
            return open_shop::run(shop, &args.shop, &args.policy, args.seed, out, args.json);
        }
        (None, Some(scenario)) => scenario,
        (None, None) => {
            return Err(Failure::call(
                "name a scenario file, such as examples/scheduling/first.toml, or an open shop by `--open-shop FILE`",
            ));
        }
    };
    args.shop.refuse_budget("a scenario's plans have the server's own number of iterations")?;
    let path = file.display();
    let text = fs::read_to_string(file)
        .map_err(|error| Failure::call(format!("can't read `{path}`: {error}")))?;
    let mut study = fleet::read_with(&text, &args.settings)
        .map_err(|error| Failure::call(format!("{path}: {error}")))?;
    override_with(&mut study, args)?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut files = |name: &str| {
        fs::read_to_string(folder.join(name))
            .map_err(|error| format!("can't read `{name}`: {error}"))
    };
    let runs = study
        .rows
        .iter()
        .enumerate()
        .map(|(n, row)| study.policies(n).len() * to_usize(row.scenario.seeds));
    let load = args.load || study.rows.iter().any(|row| row.scenario.load);
    let mut look = Look::new(runs.sum(), load);
    let mut loads = Vec::new();
    let trained = |row: &Row| row.scenario.all_jobs().any(|job| job.train);
    let mut training = match study.rows.iter().any(trained) {
        true => Some(Training::new(folder)?),
        false => None,
    };
    let mut all: Vec<Vec<RunResult>> = Vec::new();
    for (n, row) in study.rows.iter().enumerate() {
        let policies = study.policies(n);
        let single = study.rows.len() == 1 && policies.len() == 1;
        for policy in policies {
            let mut of_seeds = Vec::new();
            let place = args.out.as_deref().map(|out| match single {
                true => out.to_owned(),
                false => out.join(folder_name(&row.label, policy.name())),
            });
            for at in 0..u64::from(row.scenario.seeds) {
                let seed = row.scenario.seed.wrapping_add(at);
                let drawn = place.as_deref().filter(|_| at == 0);
                look.begin(drawn)?;
                let mut chart = None;
                let ask = if drawn.is_some() { Ask::Chart(&mut chart) } else { Ask::Result };
                let trains = training.as_mut().map(|training| training as &mut dyn Trains);
                let scenario = &row.scenario;
                let result =
                    fleet::run_training(scenario, policy, seed, ask, &mut files, trains, &mut look)
                        .map_err(|error| failed(file, &error))?;
                if let Some(training) = &mut training {
                    training.clear();
                }
                let journal = look.end()?;
                if load {
                    loads.push(ServerLoad::of(&row.label, policy.name(), &result, journal));
                }
                if let (Some(folder), Some(chart)) = (drawn, chart) {
                    NewFile::write(&folder.join("gantt.svg"), chart.svg().as_bytes())?;
                    NewFile::write(&folder.join("gantt.html"), chart.html().as_bytes())?;
                }
                of_seeds.push(result);
            }
            all.push(of_seeds);
        }
    }
    drop(look);
    let cells = study.cells(all);
    let normalised_by = study.normalise.to_string();
    let kinds = fleet::by_kind(&study, &cells);
    let mut report = Report { normalised_by, cells: &cells, kinds, load: Vec::new() };
    if let Some(out) = &args.out {
        let json = serde_json::to_string_pretty(&report);
        let json = json.map_err(|error| Failure::work(error.to_string()))? + "\n";
        NewFile::write(&out.join("result.json"), json.as_bytes())?;
    }
    if args.json {
        report.load = loads;
        return output::json(&report);
    }
    if report.kinds.is_empty() {
        output::line(&table::text(&study, &cells))?;
    } else {
        output::line(&kinds::text(&report.kinds))?;
    }
    if load { output::line(&format!("\n{}", server_load::text(&loads))) } else { Ok(()) }
}

/// A scenario that asks for something impossible is a wrong call; a run that doesn't end has failed.
fn failed(file: &Path, error: &ScenarioError) -> Failure {
    let message = format!("{}: {error}", file.display());
    match error {
        ScenarioError::Wrong(_) => Failure::call(message),
        ScenarioError::Endless(_) => Failure::work(message),
    }
}

/// A whole number from 0.
fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a whole number from 0 to {} is wanted", u64::MAX))
}

/// Flags go over the file.
fn override_with(study: &mut Study, args: &Args) -> Result<(), Failure> {
    let policies = args.policy.iter().map(|name| {
        let policy = Policy::named(name.trim());
        let policy = policy.map_err(|error| Failure::call(format!("--policy: {error}")))?;
        if policy.is_built() {
            Ok(policy)
        } else {
            Err(Failure::call(format!("--policy: {}", Policy::MISSING)))
        }
    });
    let policies = Policies::each_once(policies.collect::<Result<Vec<_>, _>>()?);
    let policies = policies.map_err(|error| Failure::call(format!("--policy: {error}")))?;
    for row in &mut study.rows {
        let scenario = &mut row.scenario;
        scenario.seed = args.seed.unwrap_or(scenario.seed);
        scenario.seeds = args.seeds.unwrap_or(scenario.seeds);
        if !policies.0.is_empty() {
            scenario.server.policy = policies.clone();
        }
    }
    leave_out_missing(study)
}

/// A file may name what this program wasn't built with, beside what it was.
fn leave_out_missing(study: &mut Study) -> Result<(), Failure> {
    let mut left_out = false;
    for row in &mut study.rows {
        let policies = &mut row.scenario.server.policy.0;
        let named = policies.len();
        policies.retain(|policy| policy.is_built());
        if policies.is_empty() {
            return Err(Failure::call(format!("`server.policy`: {}", Policy::MISSING)));
        }
        left_out |= policies.len() < named;
    }
    if left_out {
        output::remark(&format!("left out: {}", Policy::MISSING));
    }
    Ok(())
}

/// A folder's name without what shells and file systems mind.
fn folder_name(label: &str, policy: &str) -> String {
    let name = if label.is_empty() { policy.to_owned() } else { format!("{label} {policy}") };
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    name.chars().map(plain).collect()
}
