//! The terminal and the process: exit codes, failed calls in words, output, screen, log, signals, local folders,
//! trusted certificates, and how figures are written.

pub mod call_error;
pub mod exit;
pub mod local;
pub mod log;
pub mod output;
pub mod screen;
pub mod secrets;
pub mod signals;
mod stderr;
pub mod trust;
