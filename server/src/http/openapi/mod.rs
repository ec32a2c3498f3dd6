//! The document that describes the API (OpenAPI 3.1), generated from handlers and wire types.
//!
//! The parts that all operations share (protocol header, error answers, examples) are added here. Each handler has the
//! rest. Anyone may read the document: it says nothing about this server's jobs or hosts.

mod bounds;
mod components;
mod constants;
mod errors;
mod events;
mod forms;
mod numbers;
mod values;
mod words;

use super::{
    assimilations, blobs, body_limits, changes, checkpoints, deltas, direct, error::HttpError,
    failures, health, hosts, jobs, machines, metrics, page, programs, searches, shares, tokens,
    traffic, trials, work,
};
use actix_web::{HttpResponse, http::header::ContentType};
use serde_json::{Map, Value, json};
use sojourn_protocol::{PROTOCOL_HEADER, PROTOCOL_VERSION, api::FEATURES_HEADER};
use std::sync::LazyLock;
use utoipa::{
    Modify, OpenApi,
    openapi::{
        self as model,
        security::{Http, HttpAuthScheme, SecurityScheme},
    },
};

/// One example for each type of a body, by the type's name.
const EXAMPLES: &str = include_str!("examples.json");

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Sojourn",
        description = "What hosts and people ask a Sojourn server. Whole numbers are written without a decimal point. Times are milliseconds since the Unix \
                       epoch; trials, epochs, shards and batches count from 0; losses are sums over rows. \
                       What was posted may be posted again where its answer was lost: it isn't done twice. \
                       Not so `enrol`, which makes another host; `createToken` and the operations that rotate a token, which make another secret; `work`, which gives unheld leases again \
                       and may grant more beside them; `takeAssimilation`, which may give another unit; and `submitJob` with `again` and without a `nonce`, \
                       which makes another job. \
                       Answers that aren't 2xx carry an `ApiError`, whose `kind` says what can be done.",
    ),
    paths(
        document_route,
        docs,
        health::health,
        hosts::enrol,
        work::work,
        work::heartbeat,
        work::release,
        work::report,
        checkpoints::put_checkpoint,
        checkpoints::checkpoint_state,
        deltas::put,
        deltas::state,
        direct::direct,
        blobs::missing,
        blobs::collect,
        blobs::get,
        blobs::put,
        blobs::upload_state,
        jobs::submit,
        jobs::all,
        jobs::one,
        jobs::cancel,
        jobs::pause,
        jobs::resume,
        jobs::extend,
        searches::one,
        searches::change,
        jobs::place,
        jobs::note,
        jobs::delete,
        jobs::rollback,
        machines::demand,
        machines::costs,
        machines::speeds,
        machines::report,
        machines::drain,
        machines::lead,
        programs::all,
        programs::one,
        trials::trials,
        trials::hops,
        super::events::events,
        trials::history,
        trials::evaluate,
        trials::evaluations,
        assimilations::view,
        assimilations::take,
        assimilations::renew,
        assimilations::lead,
        assimilations::range_made,
        assimilations::assimilated,
        assimilations::rejected,
        assimilations::lost,
        hosts::all,
        failures::all,
        hosts::one,
        hosts::block,
        hosts::forget,
        hosts::unblock,
        hosts::revoke,
        tokens::create,
        tokens::all,
        tokens::rotate,
        tokens::set_quotas,
        tokens::revoke,
        tokens::rotate_own,
        shares::all,
        shares::create,
        shares::revoke,
        traffic::traffic,
        changes::changes,
        metrics::metrics,
    ),
    components(schemas(super::schema::ContentEncoding, sojourn_core::Event, sojourn_protocol::tokens::ServerToken, sojourn_protocol::error::ApiError)),
    modifiers(&Tokens)
)]
struct Document;

/// The kinds of tokens, as security schemes.
struct Tokens;

impl Modify for Tokens {
    fn modify(&self, document: &mut model::OpenApi) {
        let components = document.components.get_or_insert_default();
        for (name, whose) in [
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
        ] {
            let mut scheme = Http::new(HttpAuthScheme::Bearer);
            scheme.description = Some(whose.to_owned());
            components.add_security_scheme(name, SecurityScheme::Http(scheme));
        }
    }
}

/// The document. It can't be made only by a fault of the program, which tests find.
pub(crate) static DOCUMENT: LazyLock<Result<Value, serde_json::Error>> = LazyLock::new(document);

fn document() -> Result<Value, serde_json::Error> {
    let mut document = serde_json::to_value(Document::openapi())?;
    let examples: Map<String, Value> = serde_json::from_str(EXAMPLES)?;
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
        let headers = json!({ "Protocol": header, "Features": features });
        components.insert("headers".to_owned(), headers);
        components.insert("responses".to_owned(), errors::responses()?);
    }
    for (operation, path) in operations(&mut document) {
        complete(operation, &path, &examples);
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

/// Every operation, with its path.
fn operations(document: &mut Value) -> Vec<(&mut Map<String, Value>, String)> {
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    let paths = paths.into_iter().flatten();
    let methods = paths.flat_map(|(path, item)| {
        let item = item.as_object_mut().into_iter().flatten();
        item.map(move |(_, operation)| (operation, path.clone()))
    });
    methods.filter_map(|(operation, path)| Some((operation.as_object_mut()?, path))).collect()
}

/// Adds the parts that all operations share.
fn complete(operation: &mut Map<String, Value>, path: &str, examples: &Map<String, Value>) {
    let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
    if let Some(parameters) = parameters.as_array_mut() {
        parameters.push(json!({ "$ref": "#/components/parameters/Protocol" }));
        if path == "/v1/work" {
            parameters.push(json!({ "$ref": "#/components/parameters/Features" }));
        }
    }
    let id = operation.get("operationId").and_then(Value::as_str).unwrap_or(path).to_owned();
    let secured = operation.contains_key("security");
    let body = operation.get_mut("requestBody");
    let body = body.and_then(|body| {
        limit_body(body, path);
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
            }
        }
    }
    for kind in errors::of(&id, secured, json_body) {
        responses.insert(kind.status().to_string(), errors::reference(kind));
    }
}

/// Says how large a JSON body may be.
fn limit_body(body: &mut Value, path: &str) {
    let is_json = body.pointer("/content/application~1json").is_some();
    if let Some(body) = body.as_object_mut().filter(|_| is_json) {
        let mebibytes = body_limits::body_limit(path) >> 20;
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

/// This document.
#[utoipa::path(
    get,
    path = "/v1/openapi.json",
    tag = "document",
    operation_id = "openapi",
    responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json", body = Object))
)]
pub(super) async fn document_route() -> Result<HttpResponse, HttpError> {
    let document = DOCUMENT.as_ref().map_err(|error| HttpError::fault(error))?;
    Ok(HttpResponse::Ok().content_type(ContentType::json()).body(document.to_string()))
}

/// This document as a page for people.
#[utoipa::path(
    get,
    path = "/v1/docs",
    tag = "document",
    operation_id = "docs",
    responses((status = 200, description = "An HTML page.", content_type = "text/html; charset=utf-8", body = String))
)]
pub(super) async fn docs() -> Result<HttpResponse, HttpError> {
    let document = DOCUMENT.as_ref().map_err(|error| HttpError::fault(error))?;
    Ok(page::html(sojourn_page::api::page(document)))
}
