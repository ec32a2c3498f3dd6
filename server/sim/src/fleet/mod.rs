//! A fleet in virtual time: how long jobs take on machines that differ, come and go.
//!
//! Every scheduling claim is made with this. Discrete events drive the very core that the server runs with
//! the very commands that hosts send: policies, timeouts, retries, caches and placement are the server's
//! own. Only the clients' machines are made up.
//!
//! ```text
//!   file --read--> Study --Plan::new(seed)--> Plan --Run--> RunResult --cells--> table, result.json
//!   (TOML)         rows: one                  every host     events    '--Chart--> gantt.svg, .html
//!                  scenario each              and trial                '--Watch--> events.jsonl
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `scenario/`, `quantity.rs` | the file's keys, sizes and times |
//! | `read.rs`, `check.rs`, `lines.rs`, `words.rs` | its text to the scenarios that it asks for; what each must keep to; where it doesn't, and how that is said |
//! | `plan.rs` | a scenario with one seed: hosts, speeds, terms |
//! | `job.rs`, `costs.rs` | a job as the core is told of it, and what is true of it |
//! | `feasible.rs` | what a plan must keep to |
//! | `policy.rs` | what decides: the server's policies, and references |
//! | `arrival.rs` | when hosts are there |
//! | `bound.rs`, `pins.rs` | no schedule is shorter than this |
//! | `queue.rs`, `run/` | virtual time, and who does what when |
//! | `host/`, `fate.rs`, `link.rs`, `cache.rs` | a virtual client: its units, its line, its disk |
//! | `training.rs`, `skew.rs` | real training, where a job asks for it; rows by their labels |
//! | `tally.rs`, `result.rs` | counts, and what they come to |
//! | `study.rs`, `gantt.rs` | all runs of a file; charts |
//!
//! The same seed gives the same bytes, on any machine: time is whole microseconds, chance is `ChaCha`,
//! what needs more than a square root is `libm`'s.

mod arrival;
mod bound;
mod cache;
mod check;
mod costs;
mod fate;
mod feasible;
mod gantt;
mod host;
mod job;
mod lines;
mod link;
mod pins;
mod plan;
mod policy;
mod quantity;
mod queue;
mod read;
mod result;
mod run;
pub mod scenario;
mod skew;
mod study;
mod tally;
mod training;
mod words;

pub use bound::Names;
pub use gantt::Chart;
pub use policy::Policy;
pub use quantity::{Auto, Bytes, Policies, Span};
pub use read::{Files, Normalise, Row, ScenarioError, Study, read};
pub use result::{JobResult, Requests, RunResult, Spread};
pub use run::Watch;
pub use scenario::Scenario;
pub use skew::shared_out;
pub use study::{Ask, Cell, cell, lower_bound, run, run_training};
pub use training::{Merged, Point, Score, Trains};
