//! `sojourn openapi`: the document that describes the HTTP interface, without a server.

use crate::cli::terminal::{exit::Failure, output};
use sojourn_protocol::error::error_chain;

pub(crate) fn run() -> Result<(), Failure> {
    let document = sojourn_server::openapi().map_err(|error| Failure::work(error_chain(error)))?;
    output::json(document)
}
