//! `sojourn openapi`: the document that describes the HTTP interface, without a server.

use crate::cli::terminal::{
    exit::{Failure, with_sources},
    output,
};

pub(crate) fn run() -> Result<(), Failure> {
    let document = sojourn_server::openapi().map_err(|error| Failure::work(with_sources(error)))?;
    output::json(document)
}
