//! The document that describes the API (OpenAPI 3.1), generated from the table of endpoints and the wire types.
//!
//! The parts that all operations share (protocol header, error answers, examples) are added here. The table has the rest. Anyone may read the document: it says nothing about this server's jobs or hosts.

mod bounds;
mod components;
mod constants;
mod errors;
mod events;
mod forms;
mod numbers;
mod values;
mod words;

use super::{error::HttpError, page};
use actix_web::{HttpResponse, http::header::ContentType};
use serde_json::{Map, Value, json};
use sojourn_api::{Endpoint as _, Operation, Schemas, endpoints};
use sojourn_protocol::{
    PROTOCOL_HEADER, PROTOCOL_VERSION,
    api::{FEATURES_HEADER, UNKNOWN_FIELDS_HEADER},
    error::ApiError,
};
use std::sync::LazyLock;

/// One example for each type of a body, by the type's name.
const EXAMPLES: &str = include_str!("examples.json");

/// The sentences before all operations.
const ABOUT: &str = "What hosts and people ask a Sojourn server. Whole numbers are written without a decimal point. Times are milliseconds since the Unix \
     epoch; trials, epochs, shards and batches count from 0; losses are sums over rows. \
     What was posted may be posted again where its answer was lost: it isn't done twice. \
     Not so `enrol`, which makes another host; `createToken` and the operations that rotate a token, which make another secret; `work`, which gives unheld leases again \
     and may grant more beside them; `takeAssimilation`, which may give another unit; and `submitJob` with `again` and without a `nonce`, \
     which makes another job. \
     Answers that aren't 2xx carry an `ApiError`, whose `kind` says what can be done.";

/// The kinds of tokens, as security schemes.
const TOKENS: [(&str, &str); 4] = [
    (
        "enrolment",
        "An enrolment token: the server's own, in its file `enrol-token`, or one from `createToken`.",
    ),
    ("host", "A host's own token, from `enrol`."),
    (
        "admin",
        "A token of a user: the server's own, in its file `admin-token`, or one from `createToken` with the rights that the operation needs.",
    ),
    ("assimilator", "The assimilators' token, in the server's file `assimilator-token`."),
];

fn security_schemes() -> Value {
    let scheme = |about| json!({ "type": "http", "scheme": "bearer", "description": about });
    Value::Object(TOKENS.iter().map(|(name, about)| ((*name).to_owned(), scheme(*about))).collect())
}

/// The document before it is completed: the operations, and the schemas of all wire types.
fn wire_document() -> Result<Value, serde_json::Error> {
    let mut schemas = Schemas::default();
    schemas.reference::<sojourn_core::Event>();
    schemas.reference::<ApiError>();
    let paths = sojourn_api::document::paths(&mut schemas);
    let license = env!("CARGO_PKG_LICENSE");
    Ok(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Sojourn",
            "description": ABOUT,
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": license, "identifier": license },
        },
        "paths": paths,
        "components": { "schemas": schemas.into_json()?, "securitySchemes": security_schemes() },
    }))
}

/// The document. It can't be made only by a fault of the program, which tests find.
pub(crate) static DOCUMENT: LazyLock<Result<Value, serde_json::Error>> =
    LazyLock::new(complete_document);

fn complete_document() -> Result<Value, serde_json::Error> {
    let mut document = wire_document()?;
    let examples: Map<String, Value> = serde_json::from_str(EXAMPLES)?;
    components::complete_names(&mut document);
    events::apply(&mut document);
    values::describe(&mut document);
    bounds::apply(&mut document);
    numbers::bound(&mut document);
    forms::close(&mut document);
    components::apply(&mut document);
    if let Some(components) = document.get_mut("components").and_then(Value::as_object_mut) {
        components.insert(
            "parameters".to_owned(),
            json!({ "Protocol": protocol_parameter(), "Features": features_parameter() }),
        );
        let header = json!({
            "description": "The version that the server speaks.",
            "schema": { "type": "integer" },
        });
        let features = json!({
            "description": "What the server understands beyond the first version, divided by `, `: \
                            `awaiting-shards` (the state `awaiting` of a held lease), `decimal-seeds` (seeds as decimal text), `delta-uploads` (`putDelta`), `direct-uploads` (`directCheckpoint`), \
                            `engines` (the engines of a device), `unit-usage` (what a held lease's unit takes), `unsupported-units` (the failure `unsupported`, and a device's refused workloads), \
                            `upload-progress` (the state `sending` of a held lease), `wrong-units` (the failure `wrong-unit`). Nothing that needs one \
                            is to be sent to a server that doesn't say it.",
            "schema": { "type": "string" },
        });
        let unknown = json!({
            "description": "Fields of the request that the server doesn't know and has left out, divided by `, `; only where there are some.",
            "required": false,
            "schema": { "type": "string" },
        });
        let headers = json!({ "Protocol": header, "Features": features, "UnknownFields": unknown });
        components.insert("headers".to_owned(), headers);
        components.insert("responses".to_owned(), errors::responses()?);
    }
    for row in endpoints::all() {
        let method = row.method.name().to_ascii_lowercase();
        let operation = document.get_mut("paths").and_then(|paths| paths.get_mut(row.pattern));
        let operation =
            operation.and_then(|path| path.get_mut(method)).and_then(Value::as_object_mut);
        if let Some(operation) = operation {
            complete(operation, row, &examples);
        }
    }
    words::plain(&mut document);
    Ok(document)
}

fn protocol_parameter() -> Value {
    json!({
        "name": PROTOCOL_HEADER,
        "in": "header",
        "description": "The version that the caller speaks; another than the server's is refused.",
        "schema": { "type": "integer", "minimum": PROTOCOL_VERSION, "maximum": PROTOCOL_VERSION },
    })
}

fn features_parameter() -> Value {
    json!({
        "name": FEATURES_HEADER,
        "in": "header",
        "description": "What the caller understands beyond the first version, divided by `, `: `decimal-seeds` (seeds come as decimal text), `engines` (its devices name \
                        their engines to servers with that feature; one that names none is asked for its inventory again).",
        "schema": { "type": "string" },
    })
}

/// Adds the parts that all operations share.
fn complete(operation: &mut Map<String, Value>, row: &Operation, examples: &Map<String, Value>) {
    let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
    if let Some(parameters) = parameters.as_array_mut() {
        parameters.push(json!({ "$ref": "#/components/parameters/Protocol" }));
        if row.name == endpoints::Work::OPERATION.name {
            parameters.push(json!({ "$ref": "#/components/parameters/Features" }));
        }
    }
    let secured = operation.contains_key("security");
    let body = operation.get_mut("requestBody");
    let body = body.and_then(|body| {
        limit_body(body, row.max_body);
        body.get_mut("content")
    });
    let json_body = body.as_ref().is_some_and(|content| content.get("application/json").is_some());
    if let Some(content) = body {
        exemplify(content, examples);
    }
    let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else {
        return;
    };
    for (_, response) in responses.iter_mut() {
        if let Some(content) = response.get_mut("content") {
            exemplify(content, examples);
        }
        if let Some(response) = response.as_object_mut() {
            let headers = response.entry("headers").or_insert_with(|| json!({}));
            if let Some(headers) = headers.as_object_mut() {
                let reference = json!({ "$ref": "#/components/headers/Protocol" });
                headers.insert(PROTOCOL_HEADER.to_owned(), reference);
                let reference = json!({ "$ref": "#/components/headers/Features" });
                headers.insert(FEATURES_HEADER.to_owned(), reference);
                if json_body {
                    let reference = json!({ "$ref": "#/components/headers/UnknownFields" });
                    headers.insert(UNKNOWN_FIELDS_HEADER.to_owned(), reference);
                }
            }
        }
    }
    for kind in errors::of(row.errors, secured, json_body) {
        responses.insert(kind.status().to_string(), errors::reference(kind));
    }
}

/// Says how large a JSON body may be.
fn limit_body(body: &mut Value, limit: usize) {
    let is_json = body.pointer("/content/application~1json").is_some();
    if let Some(body) = body.as_object_mut().filter(|_| is_json) {
        let mebibytes = limit >> 20;
        body.insert("description".to_owned(), json!(format!("At most {mebibytes} MiB.")));
    }
}

/// Adds an example to each schema that names a type, or is a list of one.
fn exemplify(content: &mut Value, examples: &Map<String, Value>) {
    let Some(body) = content.get_mut("application/json").and_then(Value::as_object_mut) else {
        return;
    };
    let Some(schema) = body.get("schema") else { return };
    let named = |schema: &Value| -> Option<Value> {
        let name = schema.get("$ref")?.as_str()?.rsplit('/').next()?;
        examples.get(name).cloned()
    };
    let listed = || Some(Value::Array(vec![named(schema.get("items")?)?]));
    if let Some(example) = named(schema).or_else(listed) {
        body.insert("example".to_owned(), example);
    }
}

pub(super) async fn document() -> Result<HttpResponse, HttpError> {
    let document = DOCUMENT.as_ref().map_err(|error| HttpError::fault(error))?;
    Ok(HttpResponse::Ok().content_type(ContentType::json()).body(document.to_string()))
}

pub(super) async fn docs() -> Result<HttpResponse, HttpError> {
    let document = DOCUMENT.as_ref().map_err(|error| HttpError::fault(error))?;
    Ok(page::html(sojourn_page::api::page(document)))
}
