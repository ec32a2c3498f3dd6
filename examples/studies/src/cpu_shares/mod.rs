//! FlowCon on one host and SpeCon on several, beside policies that know what is left to do, in the fluid model.
//!
//! Prints JSON, from which `examples/scripts/shares.py` writes the page `examples/shares/README.md`.

mod compared;
mod flowcon;
mod specon;

use serde_json::{Value, json};
use sojourn_programs::exit::Failure;
use std::io::{self, Write as _};

/// The arguments of the study.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// So many seeds, from 1 on.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
}

/// Prints the whole study.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    writeln!(io::stdout(), "{}", study(args.seeds)).map_err(|error| Failure::output(&error))
}

/// The whole study, with so many seeds.
fn study(seeds: u64) -> Value {
    json!({
        "seeds": seeds,
        "schedule": flowcon::schedule(seeds),
        "arrivals": flowcon::arrivals(seeds),
        "long": flowcon::long(seeds),
        "scenarios": specon::scenarios(seeds),
        "sweep": specon::sweep(seeds),
        "residents": specon::residents(),
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_smallest_study_has_all_its_parts() {
        let study = super::study(1);
        for part in ["schedule", "arrivals", "long", "scenarios", "sweep"] {
            assert!(study[part].as_array().is_some_and(|rows| !rows.is_empty()), "{part}");
        }
        assert!(study["residents"]["moves"].is_array());
    }
}
