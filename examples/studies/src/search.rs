//! How soon searches find one of the best 5 % of a space, with hops and with one trial per slot:
//! `examples/search/study/study.toml` over each space with recorded curves.
//!
//! Prints a table in Markdown for each space. Hours to the best 5 % are means over the seeds with which both ways find one; all other
//! means are over all seeds. The same seeds give the same tables on any machine. Another procedure is another `[[case]]` of the
//! file.

use serde::Serialize;
use serde_json::json;
use sojourn_sim::fleet::{
    self, Row, Surrogate,
    search::{SearchRun, hopping, one_per_slot, target},
};
use std::{error::Error, fs, path::Path, thread};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../search/study");

/// A space with its settings over those of the scenario.
const SPACES: [(&str, [&str; 6]); 2] = [
    (
        "digits",
        [
            "job.file=digits.toml",
            "job.surrogate=digits.csv",
            "job.shape=[1, 8, 8]",
            "job.rows=1438",
            "job.valid_rows=359",
            "hosts.efficiency=1",
        ],
    ),
    (
        "mnist",
        [
            "job.file=mnist.toml",
            "job.surrogate=mnist.csv",
            "job.shape=[1, 28, 28]",
            "job.rows=2000",
            "job.valid_rows=500",
            // Hosts that are 25 times as fast, so that an epoch takes about as long as one of the digits.
            "hosts.efficiency=25",
        ],
    ),
];

/// Both ways with one seed.
#[derive(Serialize)]
struct Pair {
    seed: u64,
    hopping: SearchRun,
    one_per_slot: SearchRun,
}

/// The arguments of the study.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// So many seeds, instead of the file's.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    seeds: Option<u32>,
    /// Only rows with this text in `digits random, asha, count 2`, for example.
    #[arg(long, value_name = "TEXT", default_value_t)]
    only: String,
    /// A key of the scenario, over what the file says; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// A line of JSON for each search, fleet and seed, instead of tables.
    #[arg(long)]
    json: bool,
}

/// Prints the rows that the command line asks for, and returns their number.
pub(crate) fn run(args: &Args) -> Result<usize, Box<dyn Error>> {
    let mut count = 0;
    let text = fs::read_to_string(Path::new(FOLDER).join("study.toml"))?;
    for (space, settings) in SPACES {
        let settings = settings.into_iter().map(str::to_owned).chain(args.set.iter().cloned());
        let study = fleet::read_with(&text, &settings.collect::<Vec<_>>())?;
        let is_wanted = |row: &&Row| format!("{space} {}", row.label).contains(&args.only);
        let rows: Vec<&Row> = study.rows.iter().filter(is_wanted).collect();
        let Some(first) = rows.first() else { continue };
        let target = target(&first.scenario, &mut read)?;
        count += rows.len();
        if !args.json {
            head(space, target)?;
        }
        for row in rows {
            let pairs = pairs(row, args.seeds.unwrap_or(row.scenario.seeds), target)?;
            let (hosts, search) = (row.scenario.host_count(), name(row));
            for pair in pairs.iter().filter(|_| args.json) {
                let line =
                    json!({ "space": space, "search": search, "hosts": hosts, "runs": pair });
                println!("{line}");
            }
            if !args.json {
                println!("| {search} | {hosts} | {} |", cells(&pairs));
            }
        }
    }
    Ok(count)
}

/// The label of a row without the number of hosts in a group.
fn name(row: &Row) -> &str {
    row.label.split(", count").next().unwrap_or("")
}

/// Prints the lines above a table.
fn head(space: &str, target: f64) -> Result<(), Box<dyn Error>> {
    let curves = Surrogate::read(space, &read(&format!("{space}.csv"))?)?;
    let of = curves.quality();
    println!(
        "\n{space}: {} curves; held out, rank correlation {:.3} after the first epoch and {:.3} after the last, error {:.3}; the \
         best 5 % reach {target:.4}\n",
        curves.len(),
        of.rank_first,
        of.rank_last,
        of.error
    );
    println!(
        "| search | hosts | to the best 5 %, hours | one per slot | ratio | sooner | found | in all, hours | one per slot | ratio \
         | epochs | avoidable idle | idle |"
    );
    println!("|---|---:|---:|---:|---:|---:|---|---:|---:|---:|---|---:|---|");
    Ok(())
}

fn read(name: &str) -> Result<String, String> {
    fs::read_to_string(Path::new(FOLDER).join(name)).map_err(|error| format!("`{name}`: {error}"))
}

/// A row's runs with so many seeds, on all cores.
fn pairs(row: &Row, seeds: u32, target: f64) -> Result<Vec<Pair>, Box<dyn Error>> {
    let scenario = &row.scenario;
    let seeds: Vec<u64> = (scenario.seed..).take(usize::try_from(seeds)?).collect();
    let run = |seed: &u64| {
        let policy = scenario.server.policy.0.first().copied().unwrap_or_default();
        let hopping = hopping(scenario, policy, *seed, target, &mut read)?;
        let one_per_slot = one_per_slot(scenario, *seed, target, &mut read)?;
        Ok::<Pair, fleet::ScenarioError>(Pair { seed: *seed, hopping, one_per_slot })
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let parts = thread::scope(|scope| {
        let parts = seeds.chunks(seeds.len().div_ceil(workers));
        let parts = parts.map(|part| scope.spawn(move || part.iter().map(run).collect()));
        // All are begun before the first is waited for.
        let parts: Vec<_> = parts.collect();
        parts.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    let mut pairs = Vec::new();
    for part in parts {
        let part: Result<Vec<Pair>, _> = part.map_err(|_| "a thread has failed")?;
        pairs.extend(part?);
    }
    Ok(pairs)
}

/// The figures of a row of the table.
fn cells(pairs: &[Pair]) -> String {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / float(values.len());
    let both = |of: fn(&SearchRun) -> f64| {
        let [ours, others] = [
            pairs.iter().map(|pair| of(&pair.hopping)).collect::<Vec<_>>(),
            pairs.iter().map(|pair| of(&pair.one_per_slot)).collect(),
        ];
        [mean(&ours), mean(&others)]
    };
    let reached = |pair: &Pair| pair.hopping.reached.zip(pair.one_per_slot.reached);
    let (ours, others): (Vec<f64>, Vec<f64>) = pairs.iter().filter_map(reached).unzip();
    let sooner = ours.iter().zip(&others).filter(|(ours, others)| ours < others).count();
    let found = |of: fn(&Pair) -> &SearchRun| {
        pairs.iter().filter(|pair| of(pair).reached.is_some()).count()
    };
    let [to, to_alone] = [mean(&ours) / 3600.0, mean(&others) / 3600.0];
    let [hours, hours_alone] = both(|run| run.makespan / 3600.0);
    let [epochs, epochs_alone] = both(|run| u32::try_from(run.epochs).map_or(0.0, f64::from));
    let [idle, idle_alone] = both(|run| 100.0 * run.idle);
    let [avoidable, _] = both(|run| 100.0 * run.avoidable_idle);
    format!(
        "{to:.2} | {to_alone:.2} | {:.2} | {sooner} of {} | {}, {} | {hours:.2} | {hours_alone:.2} | {:.2} \
         | {epochs:.0}, {epochs_alone:.0} | {avoidable:.1} % | {idle:.0} %, {idle_alone:.0} %",
        to / to_alone,
        ours.len(),
        found(|pair| &pair.hopping),
        found(|pair| &pair.one_per_slot),
        hours / hours_alone,
    )
}

fn float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_each_space_is_run_at_its_smallest() {
        let args = Args {
            seeds: Some(1),
            only: " random, asha, count 2".into(),
            set: vec!["job.epochs=9".into()],
            json: false,
        };
        assert_eq!(run(&args).unwrap(), SPACES.len());
    }
}
