//! Commands that make, check and use models.

pub(crate) mod atomic_file;
pub(crate) mod check;
pub(crate) mod export;
pub(crate) mod file_kind;
pub(crate) mod model_file;
pub(crate) mod predict;
