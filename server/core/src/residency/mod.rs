//! Trials that stay on hosts, and when they move: decisions from looks at their training losses.
//!
//! ```text
//!   heartbeats, reports --losses--> looks.rs --category, request--> handler.rs --TrialMoved--> the trial's home (schedule/homes.rs)
//!                                                                        '---- its hop is to end where it is far from its end
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `looks.rs` | what earlier looks at trials have shown, and when the next are due |
//! | `handler.rs` | looks, moves by speculation, and moves to rebalance the hosts |
//! | `hosts.rs` | what hosts have, and where a trial could move |

mod handler;
mod hosts;
mod looks;

pub(crate) use handler::ResidencyHandler;
pub(crate) use looks::ConvergenceChecks;
