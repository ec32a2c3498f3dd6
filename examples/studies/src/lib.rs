//! The models that only studies need. No program that ships has them.
//!
//! | module | asks |
//! |---|---|
//! | [`fluid`] | what does it change how trials share a host, and where they are? |
//! | [`spot`] | what does a search cost on spot machines, bought by the planner and in five other ways? |
//!
//! The program `sojourn-studies` runs the studies: these two, and how soon searches find a good trial.

pub mod fluid;
pub mod spot;
