//! Commands that make, check and use models, and say what came of a job.

pub(crate) mod atomic_file;
pub(crate) mod check;
pub(crate) mod export;
pub(crate) mod file_kind;
pub(crate) mod model_file;
pub(crate) mod predict;
pub(crate) mod report;
