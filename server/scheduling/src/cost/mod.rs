//! How long things take: units, transfers, the work that is running.
//!
//! | file | holds |
//! |---|---|
//! | `estimate/` | how long units take, measured and guessed |
//! | `view.rs` | what every estimate of time rests on |
//! | `preferred.rs` | the numeric class that a job prefers, and the one that a device works in |
//! | `unit_time.rs` | the time of a unit and of a lease, and how long to wait for it |
//! | `allowance.rs` | how much of everything a lease may take, whatever its host reports |
//! | `transfer.rs` | the time of checkpoints and shards between server and hosts |

mod allowance;
mod estimate;
mod preferred;
mod transfer;
mod unit_time;
mod view;

pub use allowance::Allowance;
pub use estimate::{Estimates, WorkloadId};
pub use preferred::{PreferredClasses, is_proved};
pub use view::Cost;
