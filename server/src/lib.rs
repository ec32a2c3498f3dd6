//! HTTP, journal and the shell around the core.
//!
//! ```text
//!   HTTP ---commands---> shell (the core's thread) ---records---> writer (the journal's thread)
//!     ^                                                              |
//!     +----------------------replies, once durable-------------------+
//! ```
//!
//! The shell brings time, chance and storage; what is decided, the core decides.

pub mod journal;
pub mod shell;
