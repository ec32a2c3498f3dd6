//! Programs that a server has for machines that start for the first time.

use crate::digest::Digest;
use serde::{Deserialize, Serialize};

/// A program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProgramView {
    /// The name of the program's file.
    pub name: String,
    /// The size of the file, in bytes.
    pub bytes: u64,
    /// The digest of the file, by which it is fetched.
    pub sha256: Digest,
}
