//! Virtual hosts and virtual time around the very same core that the server runs.
//!
//! | module | asks |
//! |---|---|
//! | [`chaos`] | is every promise kept, whatever goes wrong? |
//! | [`fleet`] | how long does it take, and what does it cost? |

pub mod chaos;
pub mod fleet;
mod lie;
#[cfg(feature = "milp")]
pub mod milp;
#[cfg(any(test, feature = "milp"))]
mod whole_numbers;

pub use lie::Lie;

/// An error and all that it came from, on one line.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
