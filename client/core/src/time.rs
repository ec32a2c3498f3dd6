//! Time as it comes in: microseconds of a clock that never goes back.

pub use sojourn_protocol::quantity::Micros;
