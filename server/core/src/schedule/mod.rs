//! Deciding who gets which unit: eligibility, data locality, plans, fair shares, speculation.
//!
//! | file | holds |
//! |---|---|
//! | `planner.rs` | estimates, plans, fair shares: what the decisions rest on |
//! | `select.rs` | the unit that a slot gets |
//! | `hops.rs`, `plan_advice.rs`, `evaluations.rs` | candidates of each kind |
//! | `deferred.rs` | units that a slot leaves to other hosts for a while |
//! | `depth.rs` | jobs whose trials are to end one after the other |
//! | `beginning.rs` | where trials of jobs whose results are verified may begin |
//! | `eligibility.rs`, `locality.rs`, `device_shards.rs` | who may do a unit, and what a fetch costs |
//! | `homes.rs` | trials that stay on hosts: which host keeps one, and which is loaded less |
//! | `fair_share.rs`, `shares.rs` | the order in which jobs are served |
//! | `budgets.rs`, `count_budgets.rs` | jobs whose money is used up |
//! | `priority.rs` | slots and leases that jobs of higher priority get from others |
//! | `plan.rs`, `job_plan.rs`, `plan_problem.rs`, `plan_machines.rs` | the plan of a job |
//! | `speculation.rs` | second leases of hops that everything waits for |
//! | `verifiers.rs` | who may reproduce a result that is verified |
//! | `explain.rs` | why a unit went where it did |

mod assignment;
mod batching;
mod beginning;
mod budgets;
mod count_budgets;
mod deferred;
mod depth;
mod device_shards;
mod eligibility;
mod epoch_budget;
mod evaluations;
mod explain;
mod fair_share;
mod homes;
mod hops;
mod job_plan;
mod locality;
mod owner_shares;
mod plan;
mod plan_advice;
mod plan_machines;
mod plan_problem;
mod plan_request;
mod planner;
mod plans;
mod priority;
mod scheduler;
mod select;
mod shares;
mod speculation;
mod verifiers;

pub(crate) use assignment::{Assignment, Pick};
pub(crate) use budgets::price_of_slot;
pub(crate) use eligibility::{Eligibility, idle_reason};
pub(crate) use explain::Explanation;
pub(crate) use homes::Homes;
pub(crate) use locality::Locality;
pub(crate) use plan::PlannedHop;
pub(crate) use planner::Planner;
pub(crate) use plans::PlanHandler;
pub(crate) use priority::{NotBegun, Priorities};
pub(crate) use scheduler::Scheduler;
pub(crate) use speculation::consider_speculation;
pub(crate) use verifiers::Verifiers;
