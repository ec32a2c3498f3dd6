//! From a job to its work: trials of the search space, hop chains, policies that choose hops, and plans. All of it is
//! pure.
//!
//! | module | holds |
//! |---|---|
//! | [`search`] | job spec -> trials (grid, random, quasi-random, by a Parzen estimator); and which of them go on (early stopping) |
//! | [`chain`] | a trial's hop chain: its shards, epoch after epoch, with positions |
//! | [`plan`] | whole schedules, made ahead from estimates |
//! | [`policy`] | which trial and shard an idle slot gets, and why |
//! | [`price`] | what a search should cost on bought machines |
//! | [`trade`] | the same on fewer or more of them: money for time |
//! | [`residency`] | on which host a trial stays, and when it moves |
//! | [`shards`] | how many shards, and how large |
//!
//! Nothing here reads a clock or the machine. Random numbers come in as a stream or follow from the job's seed.
//!
//! ```
//! use sojourn_protocol::{
//!     digest::{BlobRef, Digest},
//!     ids::{Epoch, ShardId},
//!     manifest::Shard,
//!     minibatches::Minibatches,
//!     position::Position,
//! };
//! use sojourn_workgen::{Advance, Chain};
//!
//! // One epoch over one shard of 10 rows, in batches of 5.
//! let shard = Shard { blob: BlobRef { sha256: Digest::of(b"rows"), bytes: 4 }, rows: 10 };
//! let mut chain = Chain::new(1, Minibatches::new(5, 1), &[shard]);
//! let start = chain.next(ShardId(0)).unwrap();
//! let end = Position { batch: 2, step: 2, ..start };
//! assert_eq!(chain.advance(start, end), Ok(Advance::Epoch(Epoch(0))));
//! assert!(chain.is_done());
//! ```

pub mod chain;
pub mod plan;
pub mod policy;
pub mod price;
pub mod residency;
pub mod search;
pub mod shards;
pub mod trade;
pub mod visits;

pub use chain::{Advance, Chain, ChainError, Through};
pub use policy::{
    Candidate, Choice, DataLocality, Decision, EarlierFinish, Forecast, NEXT_BY_ORDER, Policy,
    PolicyName, PolicyReason, PolicyView, Shards, locality_text,
};
pub use search::{SearchError, Searched, Trial, trials};
