//! The flag that names a trusted certificate.

use crate::exit::Failure;
use sojourn_http::Authorities;
use sojourn_protocol::error::error_chain;
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

    /// The authorities in the file; `None` for those of the system.
    pub fn authorities(&self) -> Result<Option<Authorities>, Failure> {
        let authorities = self.file().map(|file| Authorities::read(&file)).transpose();
        authorities.map_err(|error| Failure::call(error_chain(&error)))
    }
}
