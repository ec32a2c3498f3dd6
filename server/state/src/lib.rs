//! The durable state of a server: the fold of all events, and nothing else.
//!
//! ```text
//!   Event --Folded::fold--> State, read by all      Changes: which parts are other than before
//! ```
//!
//! [`Folded::fold`] is the only way in which durable state changes, in the running server and at
//! recovery alike: everything else has the state to read. An event that doesn't fit the state is refused with a [`FoldError`],
//! and the state stays as it was: lookups and checks come before changes. What an event implies (a trial's end, a job's end,
//! references to blobs) is derived here and not journalled twice.

mod added_trial;
mod blob;
mod change;
mod configurations;
mod data_sizes;
mod deletion;
mod disk;
mod ending;
mod event;
mod extension;
mod fault;
mod fold;
mod folded;
mod forgotten;
mod host;
mod issued;
mod job;
mod lease;
mod leases;
mod load;
mod lookup;
mod machines;
mod merge_guard;
mod merging;
mod open;
mod parties;
mod queries;
mod refit;
mod reliability;
mod requested_evaluation;
mod residence;
mod results;
mod rollback;
mod sampling;
mod search;
mod sentence;
mod skipped_time;
mod state;
mod stop;
mod taint;
mod trial;
mod units;
mod unverified;
mod verification;

pub use added_trial::{AddedTrial, CloneOf};
pub use blob::{BlobStatus, Blobs};
pub use change::{Change, Changes, LeaseEndReason, ResultEnd};
pub use data_sizes::DataSizes;
pub use event::{
    AtEnd, By, EVENT_VERSION, Event, Fault, HopUnit, JournalPosition, LeaseEnd, MergeFault,
    MergeMode, READ_VERSIONS, Record, RequestedEvaluation, UnitKey,
};
pub use fault::{FoldError, FoldFault};
pub use folded::Folded;
pub use host::Host;
pub use issued::{IssuedToken, IssuedTokens};
pub use job::{Counters, Job, JobEnd};
pub use lease::{Lease, Past, PastState};
pub use machines::{
    Cost as MachineCost, Costs, HeldTimes, KEEP_ENDED_MACHINES, Machine, Machines, TrialCosts,
};
pub use merging::{MergeBase, Merging, ShardUnit};
pub use open::Open;
pub use parties::{Parties, Party};
pub use queries::{InFlight, running_in_flight};
pub use reliability::Reliability;
pub use requested_evaluation::{ExtraEnd, ExtraEvaluation, ExtraResult};
pub use residence::Residence;
pub use sampling::{Checks, PER_MILLE};
pub use search::{Call, SearchProgress};
pub use state::State;
pub use stop::{Spent, Stopped};
pub use taint::{AskedRollback, Taint};
pub use trial::{Best, FailedBy, PendingEvaluation, StoredCheckpoints, Trial, TrialEnd, marks};
pub use verification::{PendingVerification, Trust};

/// Is it what a missing field is read as? For `#[serde(skip_serializing_if)]`.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
