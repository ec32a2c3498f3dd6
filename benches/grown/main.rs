//! The costs of a deployment on several machines: processes that assimilate, and blobs in an object store.
//! Prints one JSON line per figure.
//!
//! ```text
//! updates         seconds from result to result of one model of 4,972,746 numbers, merged by vc-asgd, with 1 and 2
//!                 processes of `sojourn assimilate`
//! assimilations   results merged a second, of four such models
//! bytes           what goes through the server of each byte that clients move, their blobs being in S3
//! ```
//!
//! The anchor of the first two is what VC-ASGD's authors did: the parameters are one value in a database, which P
//! processes get, merge a result into, and set again. Here as one key of Redis (synced each second), with and without a
//! transaction that lets no update be lost, and as one row of PostgreSQL (synced each time), where there is one. Results
//! are files on the same disk. The anchor of the last is the same job with its blobs in the server's folder.
//! With names of figures as arguments only those are measured. As a test it merges two results, here and in Redis.

#![expect(clippy::unwrap_used, reason = "a bench ends at what it did not expect")]
#![expect(clippy::indexing_slicing, reason = "a bench ends at what it did not expect")]

mod anchor;
mod bytes;
#[path = "../server/connection.rs"]
mod connection;
mod hosts;
mod ours;
mod postgres;
mod redis;
#[expect(dead_code, reason = "the journal's own tests use all of it")]
#[path = "../../server/tests/support/redis.rs"]
mod redis_server;
mod relay;
#[expect(dead_code, reason = "the stores' own suite uses all of it")]
#[path = "../../server/blobs/tests/contract/s3.rs"]
mod s3;

use anchor::Database;
use std::path::Path;

/// Models that are trained at once, and results of each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) models: u32,
    pub(crate) results: u32,
}

const ONE: Shape = Shape { models: 1, results: 16 };
const SEVERAL: Shape = Shape { models: 4, results: 6 };
/// The results that a test merges.
const FEW: Shape = Shape { models: 1, results: 2 };

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, rest @ ..] = arguments.as_slice()
        && flag == anchor::FLAG
    {
        return anchor::work(rest);
    }
    // So cargo calls a bench; without it, it is a test.
    if !arguments.iter().any(|word| word == "--bench") {
        return merge_few();
    }
    let wanted: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| *word == name);
    if is_wanted("updates") {
        merges(ONE, |took, anchor, how| {
            let name = format!("seconds per update of one model of 4,972,746 numbers, {how}");
            figure(&name, took, "s", anchor);
        });
    }
    if is_wanted("assimilations") {
        merges(SEVERAL, |took, anchor, how| {
            let name = format!("assimilations a second, four models of 4,972,746 numbers, {how}");
            figure(&name, took.recip(), "1/s", anchor.recip());
        });
    }
    if is_wanted("bytes") {
        bytes::measure();
    }
}

/// Merges few results with one process. That each is merged once is looked at on the way.
fn merge_few() {
    let results = tempfile::tempdir().unwrap();
    let ours = ours::seconds_per_result(FEW, 1, results.path());
    let databases = Database::all();
    let anchor = databases[0].seconds_per_result(FEW, 1, results.path());
    assert!(ours > 0.0 && anchor > 0.0, "{ours} {anchor}");
}

/// Seconds for each result, ours and each anchor's, with one process and with two.
fn merges(shape: Shape, tell: impl Fn(f64, f64, &str)) {
    let results = tempfile::tempdir().unwrap();
    let databases = Database::all();
    for processes in [1, 2] {
        let ours = ours::seconds_per_result(shape, processes, results.path());
        for database in &databases {
            let anchor = database.seconds_per_result(shape, processes, results.path());
            let many = if processes == 1 { "1 process" } else { "2 processes" };
            tell(ours, anchor, &format!("{many}, beside {}", database.words()));
        }
    }
}

/// Where the result of one of the models lies that the databases are to merge.
pub(crate) fn result_file(folder: &Path, number: u32) -> std::path::PathBuf {
    folder.join(format!("result-{number}"))
}

pub(crate) fn figure(name: &str, value: f64, unit: &str, anchor: f64) {
    let rounded = |value: f64| (value * 10_000.0).round() / 10_000.0;
    println!(
        "{}",
        serde_json::json!({
            "name": name, "value": rounded(value), "unit": unit, "anchor": rounded(anchor),
            "ratio": rounded(value / anchor),
        })
    );
}
