//! The command line of the spot fleet's study: which runs are made, and what is said meanwhile.

use super::{
    file::{self, SimFile},
    market::{Traces, traces},
    number::float,
    outcome::{self, Outcome, Way},
    setting::Setting,
    table::{World, table},
};
use sojourn_sim::fleet::Watch;
use std::{
    fs,
    io::Write as _,
    ops::Range,
    path::{Path, PathBuf},
};

/// The arguments of a simulation.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The simulation, as examples/spot.toml.
    pub file: PathBuf,
    /// So many seeds, instead of the file's number.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: Option<u64>,
    /// The first seed, instead of the file's.
    #[arg(long)]
    pub seed: Option<u64>,
    /// This rate of interruptions alone: the share of spot machines that are gone after an hour.
    #[arg(long, value_parser = ratio)]
    pub rate: Option<f64>,
    /// The outcomes as JSON, each seed by itself.
    #[arg(long)]
    pub json: bool,
    /// The autoscaler, on demand and the clairvoyant alone.
    #[arg(long)]
    pub quick: bool,
}

/// A ratio of machines: from 0 to less than 1.
fn ratio(text: &str) -> Result<f64, String> {
    let ratio: f64 = text.parse().map_err(|_| "a number is wanted".to_owned())?;
    if (0.0..1.0).contains(&ratio) {
        return Ok(ratio);
    }
    Err("a share from 0 to less than 1 is wanted".to_owned())
}

/// The simulation that the arguments ask for.
#[derive(Debug)]
pub struct Simulation {
    file: SimFile,
    traces: Traces,
    seeds: Range<u64>,
    json: bool,
    quick: bool,
}

/// Reads what is asked for.
///
/// # Errors
/// What is wrong with the file.
pub fn load(args: &Args) -> Result<Simulation, String> {
    let text = read(&args.file)?;
    let named = |error: String| format!("`{}`: {error}", args.file.display());
    let mut file = file::read(&text).map_err(named)?;
    if let Some(rate) = args.rate {
        file.rates = vec![rate];
    }
    let trace = file.market.trace.as_ref().map(|name| {
        let beside = args.file.parent().unwrap_or(Path::new(".")).join(name);
        traces(&read(&beside)?)
    });
    let traces = trace.transpose()?.unwrap_or_default();
    let first = args.seed.unwrap_or(file.seed);
    let seeds = first..first.saturating_add(args.seeds.unwrap_or(file.seeds));
    Ok(Simulation { file, traces, seeds, json: args.json, quick: args.quick })
}

/// Makes all runs, and prints what they come to.
///
/// # Errors
/// Why a run doesn't end.
pub fn run(simulation: &Simulation) -> Result<(), String> {
    let Simulation { file, traces, seeds, json, quick } = simulation;
    let mut all = Vec::new();
    for rate in &file.rates {
        let mut worlds = Vec::new();
        for seed in seeds.clone() {
            worlds.push(world(file, traces, *rate, seed, *quick)?);
        }
        if !json {
            print(&format!("{}\n", table(*rate, &worlds)))?;
        }
        all.extend(worlds);
    }
    if *json {
        let json = serde_json::to_string_pretty(&all).map_err(|error| error.to_string())?;
        print(&format!("{json}\n"))?;
    }
    Ok(())
}

/// All ways in one world.
fn world(
    file: &SimFile,
    traces: &Traces,
    rate: f64,
    seed: u64,
    quick: bool,
) -> Result<World, String> {
    let setting = Setting::new(file, traces, rate, seed);
    let of = |error: String| format!("rate {rate}, seed {seed}: {error}");
    let progress =
        |way: Way| Progress { name: format!("rate {rate}, seed {seed}, {}", way.name()) };
    let autoscaler = outcome::bought(&setting, true, &mut progress(Way::Autoscaler)).map_err(of)?;
    let on_demand = outcome::bought(&setting, false, &mut progress(Way::OnDemand)).map_err(of)?;
    let allowed = match on_demand.out_of_money {
        None => on_demand.makespan * file.others.makespan,
        Some(_) => float(file.market.length.0) / 3.6e9,
    };
    let mut outcomes = vec![autoscaler, on_demand];
    if !quick {
        let slots = |ratio: f64| {
            let slots = super::number::whole(ratio * setting.trials_float());
            u32::try_from(slots).unwrap_or(u32::MAX).max(1)
        };
        for (merges, ratios, way) in
            [(false, &file.others.fixed, Way::FixedSpot), (true, &file.others.merging, Way::VcAsgd)]
        {
            let tried = ratios.iter().map(|ratio| {
                outcome::fixed(&setting, merges, slots(*ratio), &mut progress(way)).map_err(of)
            });
            outcomes.extend(best(tried.collect::<Result<_, _>>()?, allowed));
        }
        outcomes.push(outcome::per_trial(&setting).map_err(of)?);
    }
    outcomes.push(outcome::clairvoyant(&setting, allowed));
    Ok(World { rate, seed, outcomes })
}

/// The cheapest of those that are done in time; where none is, the first to be done.
fn best(tried: Vec<Outcome>, allowed: f64) -> Option<Outcome> {
    let in_time = tried.iter().filter(|of| of.makespan <= allowed);
    let cheapest = in_time.min_by(|a, b| a.cost.total_cmp(&b.cost));
    cheapest.or_else(|| tried.iter().min_by(|a, b| a.makespan.total_cmp(&b.makespan))).cloned()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("`{}`: {error}", path.display()))
}

fn print(text: &str) -> Result<(), String> {
    std::io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string())
}

/// Says how far a run is.
struct Progress {
    name: String,
}

impl Watch for Progress {
    fn progress(&mut self, done: u64, of: u64) {
        if done.is_multiple_of(8192) {
            eprintln!("{}: {done} of {of} hops", self.name);
        }
    }
}
