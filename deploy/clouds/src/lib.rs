//! The traits by which a program knows clouds. One package implements them for each cloud, and the program lists the providers that
//! it was built with; nothing else names a cloud.
//!
//! ```text
//!   file's table --Provider::read--> Account --connect--> Cloud      machines are bought, listed, ended
//!                                       |------open-----> Holdings   all that the fleet has: checked, listed, removed
//!                                       '------site-----> Site       the server's machine: made and removed
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `provider` | [`Provider`], [`Account`] and [`Holdings`], and why one of them fails |
//! | `site` | [`Site`] and its parts, costs and files |
//! | `leaving` | [`Leaving`]: a thing that a fleet has in an account |
//!
//! [`Cloud`](sojourn_fleet::cloud::Cloud) itself is in `sojourn-fleet`, which the planner uses too. Pure: only the implementations ask
//! anything of a cloud.

mod leaving;
mod provider;
mod site;

pub use leaving::{Goes, Leaving};
pub use provider::{Account, Holdings, Provider, ProviderError, Providers};
pub use site::{Costs, MONTH_HOURS, PartState, ServerMachine, Site, SiteDefaults, State};
