//! Text for people: tables, progress bars, sizes, times and states.

pub(crate) mod csv_cell;
pub(crate) mod owners;
pub(crate) mod progress;
pub(crate) mod schedule;
pub(crate) mod scores;
pub(crate) mod tables;
pub(crate) mod text;
