//! Population-based training: after each generation the worst of a population go on from the best, with other settings.
//!
//! ```text
//!   generation 1      generation 2          epochs of a generation: `interval`
//!   trial 0 --------> trial 0 ----->
//!   trial 1 --------> trial 1 ----->
//!   trial 2 --ends    trial 3 ----->        trial 3 takes the place of 2: it has the weights of 0, and settings near those of 0
//!                 from 0 ^
//! ```
//!
//! M. Jaderberg et al., "Population Based Training of Neural Networks", 2017: `exploit` is its truncation selection, `explore` its
//! perturbation and resampling.
//!
//! The outcome of a generation follows from the values of its trials and the job's seed. When results arrive and on which
//! machines trials train changes nothing of it: who is replaced, by a clone of whom, with which settings and which id. Still
//! hardly anybody waits for others: who is certainly not among the worst goes on at once, up to the end of the next generation.
//!
//! | file | holds |
//! |---|---|
//! | `population.rs` | who goes on, who is replaced, and by a clone of whom |
//! | `explore.rs` | the settings of a clone |

mod explore;
mod population;

pub use explore::explore;
pub use population::{Decided, Exploit, Member, MemberEnd, Replaces, decide};

#[cfg(test)]
mod tests;
