//! The flag that names a trusted certificate.

use std::path::PathBuf;

/// The trusted certificates of a server.
#[derive(Debug, clap::Args)]
pub struct Trust {
    /// A PEM file with the certificate of the authority, or of the server itself, to trust instead of the
    /// system's authorities.
    #[arg(long, env = "SOJOURN_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
}

impl Trust {
    /// The file; a variable without a value names none.
    pub fn file(&self) -> Option<PathBuf> {
        self.ca.clone().filter(|file| !file.as_os_str().is_empty())
    }
}
