//! The loop that fetches what hosts have uploaded, checks it, merges it and stores it.
//!
//! ```text
//!   Queue::take -> read the upload -> screen, merge (rules) -> publish -> Queue::assimilated
//!                                        '-> Queue::rejected    |----- holds the blobs ----|
//! ```
//!
//! In hop order the upload is the next version. Where results are merged, the base, the current version and the
//! rule's state are read as well, and a checkpoint and the next state are published.
//!
//! The merge of a large model is shared out by ranges of its checkpoint: whoever took the unit leads, and all others that
//! look for work help. What they make is byte for byte what one of them alone would.
//!
//! Where a job asks for it, the loss of a result on held-out rows is looked at before it is merged: a trainer on this
//! machine says what it is.
//!
//! It decides nothing about trials: the queue (the core behind it) takes an offer only where it
//! still fits. A crash between any two steps is harmless, because all of them can be done again.

mod assimilator;
mod canary;
mod http_queue;
mod leading;
mod merging;
mod process;
mod queue;
mod ranges;
mod source;
mod spool_source;
mod workers;

pub use assimilator::{Assimilator, Outcome, SPLIT_OVER, Step};
pub use canary::{Contents, LossError, Losses, Trainer};
pub use http_queue::{HttpQueue, HttpQueueError};
pub use process::{ProcessConfig, ProcessError, run};
pub use queue::{Fault, Made, Merged, Offer, Queue, QueueError, Unit, Work};
pub use source::{SourceError, StagedUploads, UploadSource};
pub use spool_source::SpooledOrStaged;
pub use workers::Workers;
