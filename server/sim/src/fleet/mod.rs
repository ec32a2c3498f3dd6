//! A fleet in virtual time: how long jobs take on machines that differ, come and go.
//!
//! Every claim about scheduling is measured with this simulator. Discrete events drive the same core that the server runs
//! and the same agent that hosts run, with their policies, timeouts, retries, heartbeats and order of fetches. Only the
//! machines are simulated.
//!
//! ```text
//!   file --read--> Study --make_plan(seed)--> Plan --Run--> RunResult --cells--> table, result.json
//!   (TOML)         rows: one                  every host     events    '--Chart--> gantt.svg, .html
//!                  scenario each              and trial                '--Watch--> events.jsonl
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `scenario/`, `quantity.rs`, `day_time.rs` | the file's keys, sizes and times |
//! | `read.rs`, `vary.rs`, `files.rs` | its text to the scenarios that it asks for; what varies; files that it names |
//! | `drawn.rs`, `by_kind.rs` | fleets that are drawn by chance; how the default policy does in each kind of them |
//! | `check.rs`, `lines.rs`, `words.rs`, `error.rs` | validation of each scenario; line numbers and wording of its errors |
//! | `plan.rs`, `make_plan.rs` | a scenario with one seed: hosts, speeds, terms; how it is made |
//! | `job.rs` | a job as the core is told of it, and what is true of it |
//! | `make_job.rs`, `costs.rs`, `job_file.rs`, `job_data.rs` | how it is made: trials of a cost table or of a job file, shards |
//! | `feasible.rs` | what a plan must keep to |
//! | `policy.rs` | what decides: the server's policies, and references |
//! | `arrival.rs` | when hosts are there |
//! | `machines.rs` | machines that somebody buys and gives back meanwhile |
//! | `bound.rs`, `lower_bound.rs`, `pins.rs` | no schedule is shorter than this |
//! | `lognormal.rs` | factors that are drawn by chance |
//! | `queue.rs`, `run/` | virtual time, and who does what when |
//! | `host/`, `fate.rs`, `link.rs`, `cache.rs` | a virtual host: its agent, units, line and disk |
//! | `training.rs`, `skew.rs` | real training, where a job asks for it; rows by their labels |
//! | `surrogate/` | losses by recorded learning curves, where nothing is trained |
//! | `tally.rs`, `result.rs` | counts, and what they come to |
//! | `search/` | how soon a search finds a good trial, and without hops |
//! | `study.rs`, `gantt.rs` | all runs of a file; charts |
//!
//! The same seed gives the same bytes, on any machine: time is whole microseconds, chance is `ChaCha`,
//! what needs more than a square root is `libm`'s.

mod arrival;
mod bound;
mod by_kind;
mod cache;
mod check;
mod costs;
mod day_time;
mod drawn;
mod error;
mod fate;
mod feasible;
mod files;
mod gantt;
mod host;
mod job;
mod job_data;
mod job_file;
mod lines;
mod link;
mod lognormal;
mod lower_bound;
mod machines;
mod make_job;
mod make_plan;
mod pins;
mod plan;
mod policy;
mod quantity;
mod queue;
mod read;
mod result;
mod run;
pub mod scenario;
pub mod search;
mod skew;
mod study;
mod surrogate;
mod tally;
mod training;
mod vary;
mod words;

pub use bound::Names;
pub use by_kind::{KindSummary, by_kind};
pub use drawn::FleetKind;
pub use error::ScenarioError;
pub use files::Files;
pub use gantt::Chart;
pub use machines::{Machines, Site};
pub use policy::{Policies, Policy};
pub use quantity::{Auto, Bytes, Span};
pub use read::{Normalise, Row, Study, at_key, parse, read, read_with};
pub use result::{JobResult, RunResult, Spread};
pub use run::{Interval, Watch};
pub use scenario::Scenario;
pub use skew::shared_out;
pub use study::{Ask, Cell, cell, lower_bound, run, run_buying, run_training};
pub use surrogate::{Quality, Surrogate};
pub use tally::Requests;
pub use training::{Merged, Point, Score, Trains};
