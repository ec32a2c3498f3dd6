//! The commands that connect to the server, make one call and print its answer.

use crate::{
    api_client::ApiClient,
    cli::terminal::{connection::Connection, exit::Failure, output},
};
use serde::Serialize;
use sojourn_http::CallError;

/// Makes one call, and prints its answer: as JSON, or as the text that `text` makes of it.
pub(crate) async fn simple<A: Serialize>(
    connection: &Connection,
    json: bool,
    call: impl AsyncFnOnce(&ApiClient) -> Result<A, CallError>,
    text: impl FnOnce(&A) -> String,
) -> Result<(), Failure> {
    show(&call(&connection.client()?).await?, json, text)
}

/// Prints an answer: as JSON, or as the text that `text` makes of it.
pub(crate) fn show<A: Serialize>(
    answer: &A,
    json: bool,
    text: impl FnOnce(&A) -> String,
) -> Result<(), Failure> {
    if json { output::json(answer) } else { output::line(&text(answer)) }
}
