//! A thing that a fleet has in an account, and whether it goes by itself.

use std::fmt;

/// A thing with the fleet's tag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leaving {
    /// The region that has the thing.
    pub region: String,
    /// The kind of the thing in a word or a few, as `launch template`.
    pub kind: &'static str,
    /// The cloud's id of it, or its name.
    pub id: String,
    /// Whether the thing goes by itself, as a machine that is ending.
    pub goes: Goes,
    /// Whether the server's journal, data and models are on it: nobody can bring them back.
    pub has_models: bool,
}

/// Whether something goes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Goes {
    /// The thing stays until it is removed.
    Stays,
    /// The thing goes with something else, or is going.
    Itself,
}

impl fmt::Display for Leaving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} in {}", self.kind, self.id, self.region)
    }
}
