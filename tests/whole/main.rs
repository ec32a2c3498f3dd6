//! Whole processes: a real server, clients and trainers, killed at random instants; what comes out must
//! be what one machine makes, byte for byte (DESIGN section 14.4).

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test ends at what it did not expect"
)]

mod chaos;
mod people;
mod site;
