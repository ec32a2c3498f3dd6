//! A rule's counters.

use crate::{clip::Norms, pass::Pass};
use sojourn_protocol::ids::Version;

/// What a rule has counted up to a version.
#[derive(Debug, Clone, PartialEq)]
pub struct Counters {
    version: Version,
    gathered: u32,
    norms: Norms,
}

impl Counters {
    /// Those of a version that nothing has been merged into.
    #[must_use]
    pub fn new(version: Version) -> Self {
        Self { version, gathered: 0, norms: Norms::default() }
    }

    /// The version whose model these belong to.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Changes in the sum.
    #[must_use]
    pub const fn gathered(&self) -> u32 {
        self.gathered
    }

    /// The norms of the last changes.
    #[must_use]
    pub const fn norms(&self) -> &Norms {
        &self.norms
    }

    /// Those of the next version, made by this pass; with the norm of the change, where one has arrived.
    #[must_use]
    pub fn after(&self, pass: &Pass, norm: Option<f64>) -> Self {
        let mut norms = self.norms.clone();
        norms.extend(norm);
        let gathered = pass.gathered_after(self.gathered);
        Self { version: self.version.next(), gathered, norms }
    }
}
