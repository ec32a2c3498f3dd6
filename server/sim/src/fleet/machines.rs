//! Machines that come and go as somebody decides while a fleet works: whoever buys them takes part in a run.
//!
//! ```text
//!   Run --act(now, Site)--> Machines      at the times that it names, and when a client has ended
//!    ^                         |
//!    '------ Site: comes, ending, goes; and what the server answers
//! ```
//!
//! A scenario's `[[hosts]]` are the kinds of machine then: their `count`s are of those that shards and the lower bound are
//! made for, and none of them is there by itself.

use sojourn_core::{Answer, Command};
use sojourn_protocol::{
    error::ApiError,
    machines::MachineName,
    time::{Millis, UnixMillis},
};

/// A buyer of machines. Time is virtual: milliseconds since the run's beginning.
pub trait Machines {
    /// When it is to be asked next; none: only when something happens.
    fn next_at(&self) -> Option<UnixMillis>;

    /// Lets the buyer act, at a time that it named or when a machine's client has ended.
    ///
    /// # Errors
    /// Why the run can't go on.
    fn act(&mut self, now: UnixMillis, site: &mut dyn Site) -> Result<(), String>;

    /// A machine's client has ended in good order, as it was told: it has given everything back.
    fn exited(&mut self, now: UnixMillis, machine: &MachineName);

    /// Is nothing more to come, once all jobs have ended? The run goes on until then.
    fn is_done(&self) -> bool;

    /// Can't the server be reached? Then all calls fail.
    fn server_is_away(&self, now: UnixMillis) -> bool {
        let _ = now;
        false
    }
}

/// Where machines are: the server, and the hosts that they are.
pub trait Site {
    /// The server's answer to a command of its API.
    ///
    /// # Errors
    /// What it refuses, or that it can't be reached: outside for a fault of the core, after which nothing goes on.
    fn ask(&mut self, command: Command) -> Result<Result<Answer, ApiError>, String>;

    /// Have all jobs ended?
    fn all_ended(&self) -> bool;

    /// A machine's client starts, on a host of the scenario's group of this number. It enrols with a token that the server
    /// has issued to be used with this secret. A machine of one name comes once.
    ///
    /// # Errors
    /// As [`Site::ask`].
    fn comes(
        &mut self,
        machine: &MachineName,
        group: usize,
        secret: &str,
    ) -> Result<Result<(), ApiError>, String>;

    /// A machine's client hears from its cloud that it ends in so long.
    fn noticed(&mut self, machine: &MachineName, left: Millis);

    /// A machine is gone.
    fn goes(&mut self, machine: &MachineName);

    /// Since when no unit runs on a machine that is there.
    fn idle_since(&self, machine: &MachineName) -> Option<UnixMillis>;
}
