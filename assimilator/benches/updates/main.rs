//! How long the assimilator takes for results of 4,972,746 numbers, the VC-ASGD paper's network: JSON lines.
//!
//! Blob to blob, for each rule: three checkpoints and a state in memory; the next ones out, beside hashing them alone,
//! and named, in the store and lasting, beside writing and syncing alone. Then the results that are merged in a second
//! while four clients upload them.

#![expect(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark ends at what it did not expect, and counts"
)]

mod blobs;
mod clients;
#[path = "../../../benches/size.rs"]
mod size;
mod trial;

use sojourn_protocol::spec::RuleSpec;
use std::{hint::black_box, time::Instant};

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for rule in RuleSpec::ALL {
        blobs::blob_to_blob(rule, folder.path(), runtime.handle());
    }
    clients::updates_per_second(folder.path(), runtime.handle());
}

/// Does something and adds the seconds that it took to others.
fn timed<T>(spent: &mut Vec<f64>, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = black_box(work());
    spent.push(begun.elapsed().as_secs_f64());
    done
}

/// The middle one.
fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap()
}

/// Prints a figure beside its anchor.
fn line(name: &str, value: f64, unit: &str, anchor: f64) {
    let ratio = value / anchor;
    println!(
        "{{\"name\":\"{name}\",\"value\":{value:.2},\"unit\":\"{unit}\",\
         \"anchor\":{anchor:.2},\"ratio\":{ratio:.3}}}"
    );
}
