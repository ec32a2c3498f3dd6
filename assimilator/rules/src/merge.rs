//! How a returned checkpoint becomes its trial's next version.

use crate::screen::Checked;
use sojourn_protocol::{digest::BlobRef, ids::Version, unit::Hop};

/// A version to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    /// The version's number.
    pub version: Version,
    /// The version's checkpoint.
    pub checkpoint: BlobRef,
}

/// Hop order, `W <- W_c`: the next version is the returned checkpoint byte for byte,
/// optimiser state included, so the base itself isn't needed; that it is the trial's current version
/// (invariant H2) was screened as far as the unit says it, and whoever takes the offer decides it.
#[must_use]
pub fn replace(hop: &Hop, returned: &Checked<'_>) -> Next {
    Next { version: hop.base.version().next(), checkpoint: returned.checkpoint }
}
