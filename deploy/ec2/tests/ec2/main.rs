//! EC2 as a cloud: against `moto`, and against answers that `moto` can't give.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod fleet;
mod list_prices;
mod machines;
mod moto;
mod order;
mod policy;
mod prices;
mod reach;
mod removal;
mod replaced;
mod settings;
mod site;
mod support;
mod user_data;
mod wire;
