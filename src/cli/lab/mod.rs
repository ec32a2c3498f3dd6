//! Commands about experiments and checks: simulation, replay, the demo; and what the command says of itself.

pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod openapi;
pub(crate) mod replay;
mod replay_file;
pub(crate) mod simulate;
