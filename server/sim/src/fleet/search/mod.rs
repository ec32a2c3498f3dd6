//! How soon a search finds a good trial on a fleet, and how soon it would with one trial on each slot over whole epochs.
//!
//! ```text
//!   scenario with a surrogate --+--> hopping: the core's own run ----------> reached, makespan, epochs, idle
//!            and a seed         '--> one trial per slot: a model of its own -> the same
//! ```
//!
//! Both have the same trials, losses, speeds and stays of hosts, and the same rule decides by what is known.
//!
//! | file | holds |
//! |---|---|
//! | `target.rs` | what a good trial is |
//! | `hopping.rs` | the core's run, looked at |
//! | `one_per_slot.rs` | the other way |
//! | `tried.rs` | its trials, also those that are suggested |
//! | `slot_time.rs` | what slots were busy with |

mod hopping;
mod one_per_slot;
mod slot_time;
mod target;
mod tried;

pub use hopping::hopping;
pub use one_per_slot::one_per_slot;
use serde::Serialize;
use slot_time::SlotTime;
use sojourn_protocol::quantity::to_u64;
pub use target::target;

/// The result of a search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SearchRun {
    /// Seconds until a loss was known that reaches the target, if any did.
    pub reached: Option<f64>,
    /// Seconds until the search had ended.
    pub makespan: f64,
    /// Epochs that were trained and evaluated.
    pub epochs: u64,
    /// The lowest loss.
    pub best: f64,
    /// The share of the time of present slots in which they did nothing.
    pub idle: f64,
    /// The share of the time in which a trial could have run on a slot and did not. A trial can run on one slot at a
    /// time, from its beginning to its end, except where it waits for a decision.
    pub avoidable_idle: f64,
}

/// The loss of a trial after an epoch, and when it was known in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct KnownLoss {
    at: f64,
    loss: f64,
}

impl SearchRun {
    /// Of losses in the order in which they were known, and of how slots spent their time.
    fn of(losses: &[KnownLoss], target: f64, makespan: f64, time: &SlotTime) -> Self {
        let reached = losses.iter().find(|known| known.loss <= target).map(|known| known.at);
        Self {
            reached,
            makespan,
            epochs: to_u64(losses.len()),
            best: losses.iter().map(|known| known.loss).fold(f64::INFINITY, f64::min),
            idle: time.idle(),
            avoidable_idle: time.avoidable_idle(),
        }
    }
}
