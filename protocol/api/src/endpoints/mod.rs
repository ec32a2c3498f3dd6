//! The table: a file for each kind of caller or thing.

mod assimilations;
mod blobs;
mod hosts;
mod jobs;
mod machines;
mod server;
mod tokens;

pub use crate::operation::Endpoint;
pub use assimilations::*;
pub use blobs::*;
pub use hosts::*;
pub use jobs::*;
pub use machines::*;
pub use server::*;
pub use tokens::*;

use crate::Operation;

/// Every row, in the order of the files.
pub fn all() -> impl Iterator<Item = &'static Operation> {
    let groups = [
        hosts::HOSTS,
        hosts::DELTAS,
        jobs::JOBS,
        blobs::BLOBS,
        blobs::PROGRAMS,
        assimilations::ASSIMILATIONS,
        tokens::TOKENS,
        tokens::PAGE_LINKS,
        machines::MACHINES,
        server::DOCUMENT,
        server::FAILURES,
        server::METRICS,
        server::TRAFFIC,
    ];
    groups.into_iter().flatten()
}
