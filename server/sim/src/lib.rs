//! Virtual hosts and virtual time around the very same core that the server runs.
//!
//! | module | asks |
//! |---|---|
//! | [`chaos`] | is every promise kept, whatever goes wrong? |
//! | [`fleet`] | how long does it take, and what does it cost? |

mod call;
pub mod chaos;
mod corruption;
pub mod fleet;
mod liveness;
#[cfg(feature = "milp")]
pub mod milp;
#[cfg(any(test, feature = "milp"))]
mod whole_numbers;

pub use corruption::Corruption;
