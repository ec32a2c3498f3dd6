//! Virtual hosts and virtual time around the very same core that the server runs.
//!
//! | module | asks |
//! |---|---|
//! | [`chaos`] | is every promise kept, whatever goes wrong? |

pub mod chaos;
