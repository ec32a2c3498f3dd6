//! Everything that the programs of Sojourn do alike, whatever their work is: `sojourn`, the small daemon, the autoscaler.
//!
//! | module | holds |
//! |---|---|
//! | [`exit`] | the failure that ends a command, and the exit codes |
//! | [`call_error`] | failed calls of a server, in words that say what to do |
//! | [`output`] | lines on stdout and stderr, JSON |
//! | [`log`] | the log: text or JSON lines; with the feature `traces` also spans for a collector |
//! | [`signals`] | the signals that ask a program to end in good order |
//! | [`secrets`] | tokens: from a file, the environment or the command line |
//! | [`trust`] | the authorities whose certificates are trusted |
//! | [`columns`] | the width of the terminal, and text in lines of a width |
//! | [`local`] | the server of this machine |
//! | `metrics` | metrics for Prometheus and the port where they are read, with the feature `metrics` |
//! | `screen` | the whole terminal, with the feature `screen` |

pub mod call_error;
pub mod columns;
pub mod exit;
pub mod local;
pub mod log;
#[cfg(feature = "metrics")]
pub mod metrics;
pub mod output;
#[cfg(feature = "screen")]
pub mod screen;
pub mod secrets;
pub mod signals;
mod stderr;
pub mod trust;
