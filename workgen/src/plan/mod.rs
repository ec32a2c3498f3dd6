//! Planners: whole schedules, made ahead from estimates. They are pure: no clock and no I/O. All decisions are made on
//! whole numbers, random ones with `ChaCha`, and ties go to the lower index.
//!
//! ```text
//!   Problem ---> Planner ---> Schedule        lower_bound() <= makespan
//!      seed, budget ^                         check(): it is one
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `problem`, `bounds` | a problem, and lower bounds of its makespan |
//! | `open_shop` | a problem from plain text |
//! | `schedule` | hops with machines and times, and the check that they solve a problem |
//! | `budget` | how many iterations: a count here, a clock in the command |
//! | `shop`, `list_schedule` | list scheduling: the forward simulation that dispatching planners share |
//! | `randomized`, `ltrp`, `cyclic`, `vector_rearrangement` | plans made in one go |
//! | `migration` | whole trials to machines, where moving them costs bytes |
//! | `rollout` | the best of many |
//! | `classes` | a numeric class for each trial, where trials stay in one |
//! | `graph`, `anneal` | a schedule as a graph, and moves of single hops in it |

mod anneal;
mod bounds;
mod budget;
mod classes;
mod cyclic;
mod graph;
mod list_schedule;
mod ltrp;
mod migration;
mod open_shop;
mod problem;
mod randomized;
mod rollout;
mod schedule;
mod shop;
mod vector_rearrangement;

pub use budget::{Budget, Iterations, WHOLE};
pub use classes::{PlanClass, plan_by_class};
pub use cyclic::Cyclic;
pub use ltrp::Ltrp;
pub use migration::Migration;
pub use open_shop::{OpenShopError, read_open_shop};
pub use problem::{Line, MAX_TOTAL_TIME, Machine, PACE_ONE, PlanTrial, Problem, ProblemError};
pub use randomized::Randomized;
pub use rollout::Rollout;
pub use schedule::{Schedule, ScheduleError, Step};
pub use vector_rearrangement::VectorRearrangement;

use serde::{Deserialize, Serialize};

/// Makes whole schedules.
pub trait Planner: std::fmt::Debug {
    /// A schedule of a problem that passes [`Problem::check`]; `None` where this planner has no answer
    /// for such a problem. Problem, seed and the budget's answers decide it.
    fn plan(&self, problem: &Problem, seed: u64, budget: &mut dyn Budget) -> Option<Schedule> {
        plan_by_class(problem, seed, budget, &|class, seed, budget| {
            self.plan_class(class, seed, budget)
        })
    }

    /// The same where each trial may use any machine.
    fn plan_class(&self, problem: &Problem, seed: u64, budget: &mut dyn Budget)
    -> Option<Schedule>;
}

/// A planner by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlannerName {
    /// [`Randomized`].
    Randomized,
    /// [`Ltrp`].
    Ltrp,
    /// [`Cyclic`].
    Cyclic,
    /// [`Rollout`].
    Rollout,
    /// [`Migration`].
    #[serde(rename = "roam")]
    Migration,
    /// [`VectorRearrangement`].
    VectorRearrangement,
}

impl PlannerName {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Randomized,
        Self::Ltrp,
        Self::Cyclic,
        Self::Rollout,
        Self::Migration,
        Self::VectorRearrangement,
    ];

    /// The planner.
    #[must_use]
    pub fn planner(self) -> Box<dyn Planner> {
        match self {
            Self::Randomized => Box::new(Randomized),
            Self::Ltrp => Box::new(Ltrp),
            Self::Cyclic => Box::new(Cyclic),
            Self::Rollout => Box::new(Rollout),
            Self::Migration => Box::new(Migration),
            Self::VectorRearrangement => Box::new(VectorRearrangement),
        }
    }

    /// The planner's name, as people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Randomized => "randomized",
            Self::Ltrp => "ltrp",
            Self::Cyclic => "cyclic",
            Self::Rollout => "rollout",
            Self::Migration => "roam",
            Self::VectorRearrangement => "vector-rearrangement",
        }
    }

    /// The planner of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|planner| planner.name() == name)
    }

    /// Where it has an answer, for people who got none.
    #[must_use]
    pub const fn answers(self) -> &'static str {
        match self {
            Self::Randomized | Self::Ltrp | Self::Rollout | Self::VectorRearrangement => {
                "any problem"
            }
            Self::Migration => "problems in which any machine may train any shard",
            Self::Cyclic => {
                "problems of one shard for each machine, where its order ends at the lower bound: equal \
                 trials, as many as machines or several times as many"
            }
        }
    }
}
