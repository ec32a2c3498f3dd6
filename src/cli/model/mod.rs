//! Commands that make and use model files.

pub(crate) mod atomic_file;
pub(crate) mod export;
pub(crate) mod file_kind;
pub(crate) mod model_file;
pub(crate) mod predict;
