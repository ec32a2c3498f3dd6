//! FlowCon on one host and SpeCon on several, beside policies that know what is left to do, in the fluid model.
//!
//!     cargo run --release --locked -p sojourn-sim --example shares_study
//!
//! Prints JSON, from which `examples/scripts/shares.py` writes the page `examples/shares/README.md`. `--seeds N` takes so many seeds instead
//! of 20. The same seeds give the same numbers on any machine.

mod compared;
mod flowcon;
mod specon;

use serde_json::{Value, json};
use std::{env, error::Error};

const SEEDS: u64 = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let seeds = match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => SEEDS,
        (Some("--seeds"), Some(seeds)) => seeds.parse::<u64>()?.max(1),
        _ => return Err("`--seeds N` is all that may be said".into()),
    };
    println!("{}", study(seeds));
    Ok(())
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
