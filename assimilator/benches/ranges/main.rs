//! How the merges of one large model go with the processes that share them: JSON lines.
//!
//! First what each step of a merge by ranges takes on one core, then the merges a second of one assimilator and of two,
//! each with a core of its own and a store in memory, beside one that merges in one piece; then the same by a
//! simulation with the costs that were measured, over links of some speeds, to 64 processes.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark ends at what it did not expect, and counts"
)]

mod board;
mod costs;
mod course;
#[path = "../../../benches/size.rs"]
mod size;
mod trial;

use costs::Costs;

/// Gigabits a second of each process' link to the store, each way.
const LINKS: [f64; 3] = [1.0, 10.0, 100.0];
const PROCESSES: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

fn main() {
    let costs = Costs::measured();
    for (name, of) in costs.named() {
        line(&format!("merge by ranges, one core: {name}"), 1e-6 / of, "MB/s", None);
    }
    let whole = board::merges_per_second(1, u64::MAX);
    line("merges of one model in one piece, 1 process", whole, "merges/s", None);
    let one = board::merges_per_second(1, trial::split_over());
    line("merges of one model by ranges, 1 process", one, "merges/s", Some(whole));
    let two = board::merges_per_second(2, trial::split_over());
    line("merges of one model by ranges, 2 processes", two, "merges/s", Some(one));
    let local = course::merges_per_second(&costs, f64::INFINITY, 1);
    line("the same simulated, 1 process", local, "merges/s", Some(one));
    let both = course::merges_per_second(&costs, f64::INFINITY, 2);
    line("the same simulated, 2 processes", both, "merges/s", Some(two));
    for gigabits in LINKS {
        let link = gigabits * 1e9 / 8.0;
        let alone = course::merges_per_second(&costs, link, 1);
        for processes in PROCESSES {
            let name = format!("simulated over {gigabits} Gbit/s, {processes} processes");
            let merges = course::merges_per_second(&costs, link, processes);
            line(&name, merges, "merges/s", Some(alone));
        }
        let bound = course::bound(&costs, link);
        line(&format!("simulated over {gigabits} Gbit/s, bound"), bound, "merges/s", Some(alone));
    }
}

/// Prints a figure, beside its anchor where there is one.
fn line(name: &str, value: f64, unit: &str, anchor: Option<f64>) {
    let beside = anchor.map_or_else(String::new, |anchor| {
        format!(",\"anchor\":{anchor:.4},\"ratio\":{:.3}", value / anchor)
    });
    println!("{{\"name\":\"{name}\",\"value\":{value:.4},\"unit\":\"{unit}\"{beside}}}");
}
