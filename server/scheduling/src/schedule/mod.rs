//! Deciding who gets which unit: eligibility, data locality, plans, fair shares, speculation.
//!
//! | file | holds |
//! |---|---|
//! | `scheduler.rs` | the widest view: everything that the choice of a unit rests on |
//! | `planner.rs` | estimates, plans, fair shares: what the decisions rest on |
//! | `select.rs`, `assignment.rs` | the unit that a slot gets |
//! | `hops.rs`, `plan_advice.rs`, `evaluations.rs` | candidates of each kind |
//! | `deferred.rs` | units that a slot leaves to other hosts for a while |
//! | `depth.rs` | jobs whose trials are to end one after the other |
//! | `beginning.rs` | where trials of jobs whose results are verified may begin |
//! | `eligibility.rs`, `locality.rs`, `device_shards.rs` | who may do a unit, and what a fetch costs |
//! | `homes.rs` | trials that stay on hosts: which host keeps one, and which is loaded less |
//! | `due_plans.rs`, `offers.rs` | when plans are due, and whom work of a trial is offered to |
//! | `batching.rs`, `epoch_budget.rs` | how many hops one lease has, and which trials may begin another epoch |
//! | `fair_share.rs`, `slot_shares.rs`, `owner_slot_shares.rs` | the order in which jobs are served |
//! | `placement.rs`, `preferred_class.rs` | which hosts keep a job's shards, and the class that it prefers |
//! | `budgets.rs` | what jobs with a budget may still spend |
//! | `priority.rs` | slots and leases that jobs of higher priority get from others |
//! | `plan.rs`, `job_plan.rs`, `plan_request.rs`, `plan_problem.rs`, `plan_machines.rs` | the plan of a job |
//! | `speculation.rs` | second leases of hops that everything waits for |
//! | `verifiers.rs` | who may reproduce a result that is verified |
//! | `explain.rs` | why a unit went where it did |

mod assignment;
mod batching;
mod beginning;
mod budgets;
mod deferred;
mod depth;
mod device_shards;
mod due_plans;
mod eligibility;
mod epoch_budget;
mod evaluations;
mod explain;
mod fair_share;
mod homes;
mod hops;
mod job_plan;
mod locality;
mod offers;
mod owner_slot_shares;
mod placement;
mod plan;
mod plan_advice;
mod plan_machines;
mod plan_problem;
mod plan_request;
mod planner;
mod preferred_class;
mod priority;
mod scheduler;
mod select;
mod slot_shares;
mod speculation;
mod verifiers;

pub use assignment::{Assignment, Pick};
pub use budgets::{Budgets, price_of_slot};
pub use due_plans::PLAN_INTERVAL;
pub use eligibility::{Eligibility, idle_reason};
pub use explain::Explanation;
pub use homes::Homes;
pub use locality::Locality;
pub use plan::PlannedHop;
pub use plan_machines::PlanProblems;
pub use plan_request::PlanRequest;
pub use planner::{PlanCounts, Planner};
pub use priority::{NotBegun, Priorities};
pub use scheduler::Scheduler;
pub use speculation::{Speculate, SpeculationTarget};
pub use verifiers::Verifiers;
