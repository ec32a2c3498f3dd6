//! Assimilation: the loop that fetches the results of hosts, checks them, merges them and stores the new versions.
//!
//! ```text
//!   Queue::take -> read the upload -> screen, merge (rules) -> publish -> Queue::assimilated
//!                                        '-> Queue::rejected    |----- holds the blobs ----|
//! ```
//!
//! In hop order the upload itself is the next version. Where results are merged, the base, the current version and the
//! state of the merge rule are read too; a checkpoint and the next state are published.
//!
//! The merge of a large model is shared by ranges of its checkpoint: the process that took the unit leads, and all others
//! that look for work help. The result is byte for byte that of one process.
//!
//! Where a job asks for it, a trainer on this machine computes the loss of a result on held-out rows before the result is
//! merged.
//!
//! Nothing is decided here about trials: the queue, with the server's core behind it, takes an offer only where it still
//! fits. A crash between any two steps is harmless, because all of them can be done again.
//!
//! | module | is about |
//! |---|---|
//! | `pipeline` | one result, from start to offer |
//! | `merge` | the merged version of a result, in memory |
//! | `range_leader`, `range_worker` | the same by ranges: sharing them, doing one |
//! | `renewal` | renews the claim of a unit while it is worked at |
//! | `canary` | losses on held-out rows before a merge |
//! | `small_results` | small results, many at once beside the threads |
//! | `upload_source`, `spool_source` | where uploads are read |
//! | `queue`, `http_queue` | where work comes from; the same over HTTP |
//! | `thread_pool`, `process` | threads that assimilate; a process of its own |
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use sojourn_assimilator::HttpQueue;
//! use sojourn_http::{HttpClient, HttpConfig, Servers};
//! use tokio::{runtime::Runtime, sync::watch};
//!
//! // The queue of two servers, of which one is active. Nothing is sent yet.
//! let servers = Servers::parse("http://10.0.0.1:7070,http://10.0.0.2:7070", false)?;
//! let http = HttpClient::new(servers, &HttpConfig::default())?.with_token("secret".to_owned());
//! let runtime = Runtime::new()?;
//! let (stop, stopping) = watch::channel(false);
//! let queue = HttpQueue::new(http, "node-7".to_owned(), runtime.handle().clone(), stopping);
//!
//! // Once told to stop, a process waits for no more work.
//! stop.send(true)?;
//! assert_eq!(sojourn_assimilator::Queue::take(&queue, false)?, None);
//! # Ok(())
//! # }
//! ```

mod canary;
mod http_queue;
mod merge;
mod pipeline;
mod process;
mod queue;
mod range_leader;
mod range_worker;
mod renewal;
mod small_results;
mod spool_source;
mod thread_pool;
mod upload_source;

pub use canary::{Contents, LossError, Losses, Trainer};
pub use http_queue::{HttpQueue, HttpQueueError};
pub use pipeline::{Assimilator, DEFAULT_SPLIT_OVER, Outcome, Step};
pub use process::{ProcessConfig, ProcessError, run};
pub use queue::{Fault, Merged, NewVersion, Offer, Queue, QueueError, Unit, Work};
pub use small_results::DEFAULT_SMALL_RESULTS;
pub use spool_source::SpooledOrStaged;
pub use thread_pool::Workers;
pub use upload_source::{SourceError, StagedUploads, UploadSource};
