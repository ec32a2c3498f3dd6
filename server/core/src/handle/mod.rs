//! What each command does. Every file adds methods to [`crate::Core`]; none keeps state of its own.

mod admin;
mod ask;
mod assimilate;
mod blobs;
mod choose;
mod copies;
mod course;
mod deadline;
mod evaluating;
mod extra;
mod failing;
mod fit;
mod fleet;
mod grant;
mod holders;
mod hop;
mod house;
mod lease;
mod left;
mod legs;
mod mismatch;
mod moves;
mod order;
mod placement;
mod plan;
mod problem;
mod promise;
mod reason;
mod report;
mod shelf;
mod stock;
mod stop;
mod turn;
mod wire;

pub(crate) use lease::FREE_RETURNS;
pub(crate) use plan::visits;
