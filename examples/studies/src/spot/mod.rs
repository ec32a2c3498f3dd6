//! The cost of a search on a made-up cloud in virtual time, bought by the planner and in five
//! other ways in the same world.
//!
//! ```text
//!   SimFile --seed--> Setting: World, Scenario --+--> Buyer (driver, planner)   --.
//!   (TOML)                                       +--> Buyer, on demand only       |
//!                                                +--> FixedFleet, hop order       +--> Outcome, ... --> table, JSON
//!                                                +--> FixedFleet, merging         |
//!                                                +--> per_trial (no server)       |
//!                                                '--> clairvoyant (a bound)     --'
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `args.rs` | the command line, runs and progress |
//! | `file.rs`, `market.rs`, `setting.rs` | the file, the world that it makes, and all that one run needs |
//! | `ground.rs` | machines of a fake cloud that become hosts, and what happens to them |
//! | `buyer.rs`, `mailbox.rs` | the driver at work, and the server that it sees |
//! | `fixed.rs` | a fleet of one size |
//! | `per_trial.rs` | one machine for each trial |
//! | `clairvoyant.rs` | what nobody can do for less |
//! | `outcome.rs`, `table.rs` | what each came to, and how it is shown |

mod args;
mod buyer;
mod clairvoyant;
mod file;
mod fixed;
mod ground;
mod mailbox;
mod market;
mod number;
mod outcome;
mod per_trial;
mod setting;
mod table;

pub use args::{Args, Simulation, load, run};
pub use buyer::{Buyer, Trouble};
pub use file::{SimFile, read};
pub use ground::Ground;
pub use outcome::{Outcome, Way, ground, play};
pub use setting::Setting;
