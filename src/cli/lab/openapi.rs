//! `sojourn openapi`: the document that describes the HTTP interface, without a server.

use crate::cli::terminal::{exit::Failure, output};

pub(crate) fn run() -> Result<(), Failure> {
    output::json(sojourn_server::openapi())
}
