//! Programs that a server has for machines that start for the first time.

use crate::digest::Digest;
use serde::{Deserialize, Serialize};

/// A program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProgramView {
    /// Its file's name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its digest, by which it is fetched.
    pub sha256: Digest,
}
