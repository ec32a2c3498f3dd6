//! A job as three tables, and the formats that they are written in.
//!
//! | table | has a row for |
//! |---|---|
//! | `trials` | each trial |
//! | `hops` | each result that is in its trial's model |
//! | `metrics` | each metric of each evaluated epoch |

pub(super) mod csv_file;
mod hops;
pub(super) mod hyper_parameters;
pub(super) mod json_file;
pub(super) mod metrics;
#[cfg_attr(not(feature = "parquet"), path = "parquet_absent.rs")]
pub(super) mod parquet_file;
pub(super) mod table;
mod trials;

use super::answers::Answers;
use table::Table;

/// The three tables.
pub(super) fn tables(answers: &Answers) -> [Table; 3] {
    [trials::table(answers), hops::table(answers), metrics::table(answers)]
}

#[cfg(test)]
mod tests;
