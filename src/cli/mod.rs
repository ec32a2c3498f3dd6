//! The command line: a module for each subcommand, in seven groups, and two that they share.
//!
//! | module | holds |
//! |---|---|
//! | `serve` | the server, its journal and its store |
//! | `work` | the process that assimilates; client and service are in `sojourn-daemon` |
//! | `submit` | checking and submitting a job |
//! | `jobs` | asking a server about jobs and hosts, and changing them |
//! | `cloud` | a fleet in a cloud, by the autoscaler's program |
//! | `model` | model files: export, predict |
//! | `lab` | simulation, replay, the demo, the OpenAPI document, shell completions |
//! | `render` | tables, text, progress bars |
//! | `terminal` | exit codes, output, log, signals, local folders, the connection |
//!
//! Every subcommand has `Args` and `run`. Exit codes: 0 done, 1 the work failed, 2 the call was wrong,
//! 3 the server could not be reached.

#[cfg(test)]
mod advice_tests;
mod cloud;
mod command_groups;
mod command_line;
mod jobs;
mod lab;
mod model;
pub(crate) mod render;
mod serve;
pub(crate) mod submit;
pub(crate) mod terminal;
mod token;
mod work;

pub(crate) use command_line::main;
