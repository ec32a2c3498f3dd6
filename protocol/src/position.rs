//! Where in a trial's training a checkpoint stands.

use crate::ids::{Epoch, ShardId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The next batch to train: (epoch, shard, batch), and the optimiser steps taken so far.
///
/// No random state is stored with a checkpoint; the position says all (docs/internals/determinism.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// The epoch of the hop.
    pub epoch: Epoch,
    /// The shard of the hop.
    pub shard: ShardId,
    /// Batches of the shard already trained in this epoch, over all passes ([`crate::minibatches`]).
    pub batch: u32,
    /// Optimiser steps of the trial so far, over all hops; schedules count in these.
    pub step: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { epoch, shard, batch, step } = self;
        write!(f, "epoch {epoch}, shard {shard}, batch {batch}, step {step}")
    }
}
