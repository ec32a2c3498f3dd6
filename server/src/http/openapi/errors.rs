//! Which errors an operation may answer with, and how each looks: one answer per status, as
//! [`ErrorKind::status`] has it.

use serde_json::{Map, Value, json};
use sojourn_protocol::{
    PROTOCOL_HEADER,
    error::{ApiError, ErrorKind, Retry},
};
use std::collections::BTreeSet;

/// The errors that an operation may answer with, one for each status; `own` are those beside what its form brings.
pub(super) fn of(own: &[ErrorKind], secured: bool, json_body: bool) -> Vec<ErrorKind> {
    let mut kinds = vec![
        ErrorKind::UnsupportedProtocol,
        ErrorKind::TooManyRequests,
        ErrorKind::Unavailable,
        ErrorKind::Internal,
    ];
    if secured {
        kinds.extend([ErrorKind::Unauthorized, ErrorKind::Forbidden]);
    }
    kinds.extend(json_body.then_some(ErrorKind::TooLarge));
    kinds.extend(own);
    let mut seen = BTreeSet::new();
    kinds.retain(|kind| seen.insert(kind.status()));
    kinds
}

/// Refers to the description of a kind's answer.
pub(super) fn reference(kind: ErrorKind) -> Value {
    json!({ "$ref": format!("#/components/responses/{}", name(kind.status())) })
}

fn name(status: u16) -> String {
    format!("Error{status}")
}

/// The descriptions of all error answers, by name.
pub(super) fn responses() -> Result<Value, serde_json::Error> {
    let statuses: BTreeSet<u16> = ErrorKind::ALL.into_iter().map(ErrorKind::status).collect();
    let described = statuses.into_iter().map(|status| Ok((name(status), response(status)?)));
    Ok(Value::Object(described.collect::<Result<_, _>>()?))
}

fn response(status: u16) -> Result<Value, serde_json::Error> {
    let mut descriptions = Vec::new();
    let mut examples = Map::new();
    for kind in ErrorKind::ALL.into_iter().filter(|kind| kind.status() == status) {
        let word = word(kind)?;
        descriptions.push(format!("`{word}`: {}", meaning(kind)));
        examples.insert(word, json!({ "value": example(kind) }));
    }
    Ok(json!({
        "description": descriptions.join("; "),
        "headers": { (PROTOCOL_HEADER): { "$ref": "#/components/headers/Protocol" } },
        "content": { "application/json": {
            "schema": { "$ref": "#/components/schemas/ApiError" },
            "examples": examples,
        } },
    }))
}

/// The kind as it is serialised.
fn word(kind: ErrorKind) -> Result<String, serde_json::Error> {
    serde_json::from_value(serde_json::to_value(kind)?)
}

fn example(kind: ErrorKind) -> ApiError {
    let mut error = ApiError::new(kind, meaning(kind));
    if kind == ErrorKind::WrongOffset {
        error.offset = Some(4096);
    }
    error
}

fn meaning(kind: ErrorKind) -> String {
    let meaning = match kind {
        ErrorKind::Invalid => "the request can't be understood or asks for something impossible",
        ErrorKind::UnsupportedProtocol => "the caller speaks another protocol version",
        ErrorKind::Unauthorized => "no token, an unknown one, or a revoked one",
        ErrorKind::Forbidden => {
            "what is asked for isn't the caller's own, or needs more rights than its token has"
        }
        ErrorKind::NotFound => "nothing has this name",
        ErrorKind::Conflict => "the request contradicts what is already there",
        ErrorKind::WrongOffset => "the upload goes on at `offset`",
        ErrorKind::TooLarge => "more bytes than were declared or are allowed",
        ErrorKind::DigestMismatch => "the bytes don't have the digest that was declared",
        ErrorKind::RangeNotSatisfiable => "the range lies outside the blob",
        ErrorKind::TooManyRequests => {
            "the caller, or its address, asks for more than its share; `Retry-After` says how many seconds to wait"
        }
        ErrorKind::StorageFull => "the server's disk is full",
        ErrorKind::Unavailable => "the server can't decide just now",
        ErrorKind::Internal => "a fault of the server; its log says why",
    };
    let retry = match kind.retry() {
        Retry::Later => " (try again later)",
        Retry::Mended => " (try again, mended)",
        Retry::Never => "",
    };
    format!("{meaning}{retry}")
}
