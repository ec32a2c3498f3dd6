//! The CPU share of each trial on a host: its part of the processor. No clock, no I/O: samples of the running trials and
//! the time come in, CPU shares go out. The policies with their parameters are those of a job's placement. A simulation applies them exactly, a machine by control groups or by pauses between batches.
//!
//! | file | holds |
//! |---|---|
//! | `cpu_share.rs` | the CPU share of one trial |
//! | `history.rs` | what a trial has reported over its last two windows of running time |
//! | `efficiency.rs` | growth efficiency, of such a history |
//! | `member.rs` | a trial that runs here: its list, its CPU share |
//! | `flowcon.rs` | FlowCon's algorithm 1 |
//! | `first.rs` | policies by which one trial goes before the others |
//! | `planner.rs` | a host: who is here, when CPU shares are planned next |
//! | `divide.rs` | what CPU shares amount to on a busy processor |
//! | `paces.rs` | the same by pauses between batches |
//!
//! FlowCon is from W. Zheng, M. Tynes, H. Gorelick, Y. Mao, L. Cheng, Y. Hou, "FlowCon: Elastic Flow Configuration for Containerized
//! Deep Learning Applications" (2019).
//!
//! ```
//! use sojourn_protocol::{ids::{JobId, TrialId}, quantity::Micros};
//! use sojourn_shares::{Carried, FlowCon, List, Planner, Sample, CpuSharePolicy};
//!
//! let (old, new) = ((JobId(1), TrialId(0)), (JobId(1), TrialId(1)));
//! let second = |loss| Sample { span: Micros::from_secs(1), busy: Micros::from_secs(1), loss: Some(loss) };
//! let mut planner = Planner::new(CpuSharePolicy::FlowCon(FlowCon::thesis()), 1.0);
//!
//! // A trial whose loss has long been the same goes one list further at each interval.
//! planner.set_members(Micros::ZERO, &[(old, Carried::default())]);
//! for time in 1..=90 {
//!     planner.record(old, second(if time < 10 { 1.0 } else { 0.2 }));
//!     planner.run(Micros::from_secs(time));
//! }
//! assert_eq!(planner.list(old), Some(List::Completing));
//!
//! // When another one comes and learns, it leaves that most of the processor: the least of two trials is a quarter.
//! planner.set_members(Micros::from_secs(90), &[(old, Carried::default()), (new, Carried::default())]);
//! for time in 91..=120 {
//!     planner.record(old, second(0.2));
//!     planner.record(new, second(if time < 110 { 1.0 } else { 0.1 }));
//!     planner.run(Micros::from_secs(time));
//! }
//! assert_eq!((planner.cpu_share(old).unwrap().get(), planner.cpu_share(new).unwrap().get()), (0.25, 1.0));
//! ```

mod cpu_share;
mod divide;
mod efficiency;
mod first;
mod flowcon;
mod history;
mod member;
mod paces;
mod planner;

pub use cpu_share::CpuShare;
pub use divide::{Demand, divide};
pub use history::Sample;
pub use member::Estimate;
pub use paces::{Runner, paces};
pub use planner::{Planner, SetCpuShare, TrialKey};
pub use sojourn_protocol::{
    cpu_shares::{Carried, List, Window},
    spec::{Apply, CpuSharePolicy, First, FlowCon, Order, Threshold},
};
