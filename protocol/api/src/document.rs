//! The document's part of each endpoint: an OpenAPI operation, and the schemas that it refers to.

use crate::{
    Callers, Operation, endpoints,
    schemas::{Forms, Schemas},
};
use serde_json::{Map, Value, json};

/// The operations of all endpoints by path and method, with their schemas beside those that are there.
#[must_use]
pub fn paths(schemas: &mut Schemas) -> Value {
    let mut paths = Map::new();
    for operation in endpoints::all() {
        let path = paths.entry(operation.pattern).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            let method = operation.method.name().to_ascii_lowercase();
            path.insert(method, describe(operation, schemas));
        }
    }
    paths.into()
}

fn describe(operation: &Operation, schemas: &mut Schemas) -> Value {
    let Forms { parameters, body, answers } = (operation.forms)(schemas);
    let about: Vec<&str> = operation.about.iter().map(|line| line.trim()).collect();
    let answers = answers.into_iter().map(|(status, answer)| (status.to_string(), answer));
    let mut described = Map::from_iter([
        ("operationId".to_owned(), json!(operation.id())),
        ("tags".to_owned(), json!([operation.tag])),
        ("summary".to_owned(), json!(about.join("\n"))),
        ("responses".to_owned(), Value::Object(answers.collect())),
    ]);
    if !parameters.is_empty() {
        described.insert("parameters".to_owned(), parameters.into());
    }
    if let Some(body) = body {
        described.insert("requestBody".to_owned(), body);
    }
    let schemes = schemes(operation.callers);
    if !schemes.is_empty() {
        let schemes = schemes.iter().map(|scheme| json!({ (*scheme): [] }));
        described.insert("security".to_owned(), schemes.collect());
    }
    described.into()
}

/// The security schemes of callers: tokens that the document describes.
const fn schemes(callers: Callers) -> &'static [&'static str] {
    match callers {
        Callers::Anyone => &[],
        Callers::Enrollers => &["enrolment"],
        Callers::Hosts => &["host"],
        Callers::Assimilators => &["assimilator"],
        Callers::Users(_) => &["admin"],
        Callers::HostsAndUsers(_) => &["host", "admin"],
        Callers::AssimilatorsAndUsers(_) => &["assimilator", "admin"],
    }
}
