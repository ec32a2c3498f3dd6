//! The control protocol between a machine's owner and the daemon that runs on it: lines of JSON over a socket in the
//! data folder that only they can open.
//!
//! | file | holds |
//! |---|---|
//! | `messages.rs` | questions and answers |
//! | `serve.rs` | the daemon's side |
//! | `call.rs` | the side of whoever asks |

mod call;
mod messages;
mod serve;

pub use call::{CallError, call};
pub use messages::{
    Answer, Ask, CacheState, Direction, DiskState, LimitsState, LogEnd, LogPart, Pause, Paused,
    Resting, Status, Task, Transfer, UnitStatus, UnusedName, Work,
};
pub use sojourn_protocol::api::HeldState;
pub use sojourn_protocol::usage::UnitUsage;

pub(crate) use serve::{ControlSocket, serve};

/// The name of the socket in the data folder.
pub(crate) const SOCKET_FILE: &str = "control.sock";
