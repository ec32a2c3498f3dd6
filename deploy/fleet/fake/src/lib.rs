//! A made-up cloud in virtual time: prices that move, capacity that runs out, interruptions, and calls that go wrong.
//!
//! ```text
//!   WorldConfig --seed--> World            the same for whoever buys: prices, capacity, fates
//!                           |
//!   FakeCloud: buy, end, machines, step    one buyer's machines, with faults and an exact bill
//!                           |
//!   FakeClient: impl Cloud                 for programs, with a clock that is passed in
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `config.rs` | what a world and a cloud are made from |
//! | `walk.rs` | prices that move |
//! | `world.rs` | prices, capacity and fates by pool and time |
//! | `machine.rs` | a machine, from its launch to its end |
//! | `cloud.rs` | the cloud itself |
//! | `client.rs` | the cloud behind the trait [`Cloud`](sojourn_fleet::cloud::Cloud) |
//!
//! The same seed gives the same world, to the millionth of a dollar, on any machine.

mod client;
mod cloud;
mod config;
mod machine;
#[cfg(test)]
mod tests;
mod walk;
mod world;

pub use client::{Clock, FakeClient};
pub use cloud::FakeCloud;
pub use config::{
    CapacityConfig, CloudConfig, Faults, InterruptionConfig, PoolConfig, Prices, Walk, WorldConfig,
};
pub use machine::{FakeEvent, Happens};
pub use world::{Fate, World};
