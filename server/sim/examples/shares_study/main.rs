//! What FlowCon does on one host and SpeCon on several, beside policies that know what is left to do, in the fluid model.
//!
//!     cargo run --release --locked -p sojourn-sim --example shares_study
//!
//! Prints JSON, from which `examples/scripts/shares.py` writes the page `examples/shares/README.md`. `--seeds N` takes so many seeds instead
//! of 20. The same seeds give the same numbers on any machine.

mod compared;
mod flowcon;
mod specon;

use serde_json::json;
use std::{env, error::Error};

const SEEDS: u64 = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let seeds = match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => SEEDS,
        (Some("--seeds"), Some(seeds)) => seeds.parse::<u64>()?.max(1),
        _ => return Err("`--seeds N` is all that may be said".into()),
    };
    let study = json!({
        "seeds": seeds,
        "schedule": flowcon::schedule(seeds),
        "arrivals": flowcon::arrivals(seeds),
        "long": flowcon::long(seeds),
        "scenarios": specon::scenarios(seeds),
        "sweep": specon::sweep(seeds),
        "residents": specon::residents(),
    });
    println!("{study}");
    Ok(())
}
