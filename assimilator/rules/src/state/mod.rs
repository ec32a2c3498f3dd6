//! What a rule remembers between two results: its counters, and for each parameter its slots.

mod counters;

pub use counters::Counters;
