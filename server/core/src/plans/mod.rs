//! Plans that are requested and followed, and what jobs with a budget may still spend.
//!
//! | file | holds |
//! |---|---|
//! | `handler.rs` | when a plan is requested, and what happens when it is ready or a lease was granted |
//! | `count_budgets.rs` | jobs whose money is used up |

mod count_budgets;
mod handler;

pub(crate) use handler::PlanHandler;
