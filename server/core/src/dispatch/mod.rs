//! Giving work to hosts: requests, wake-ups, grants.
//!
//! | file | holds |
//! |---|---|
//! | `dispatcher.rs` | the handler, and what it borrows |
//! | `wake.rs` | which waiting hosts are looked at after a step |
//! | `poll.rs` | a request for work: what it is answered, or that it waits |
//! | `follow_plan.rs` | updates of a job's plan after a lease was granted |
//! | `grant.rs` | leases for the slots of a host |
//! | `speculation.rs` | speculative leases: second leases of hops that hold their job up |

mod dispatcher;
mod follow_plan;
mod grant;
mod poll;
mod speculation;
mod wake;

pub(crate) use dispatcher::Dispatcher;
