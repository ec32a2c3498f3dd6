//! What the owner of a machine says to the daemon that runs on it, and hears: lines of JSON over a socket in the
//! data folder that only they can open.
//!
//! | file | holds |
//! |---|---|
//! | `words.rs` | questions and answers |
//! | `serve.rs` | the daemon's side |
//! | `call.rs` | the side of whoever asks |

mod call;
mod serve;
mod words;

pub use call::{CallError, call};
pub use sojourn_protocol::api::HeldState;
pub use words::{
    Answer, Ask, CacheState, Direction, LimitsState, LogEnd, LogPart, Pause, Paused, Resting,
    Status, Task, Transfer, UnitStatus, Work,
};

pub(crate) use serve::{Door, serve};

/// The name of the socket in the data folder.
pub(crate) const SOCKET_FILE: &str = "control.sock";
