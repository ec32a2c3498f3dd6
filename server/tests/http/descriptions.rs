//! The document says what each of its parts means, and which limits hold, in words that need no source.

use crate::{
    document::Described,
    folder,
    world::{World, send},
};
use serde_json::Value;
use sojourn_core::CoreConfig;

fn described() -> Described {
    Described::of(sojourn_server::openapi().unwrap().clone())
}

fn is_said(value: &Value) -> bool {
    value["description"].as_str().is_some_and(|text| !text.trim().is_empty())
}

/// Does a schema, or the type that it refers to, say what it means?
fn means_something(schema: &Value) -> bool {
    let parts = ["oneOf", "anyOf", "allOf"].iter().filter_map(|word| schema[*word].as_array());
    is_said(schema)
        || schema.get("$ref").is_some()
        || schema.get("items").is_some_and(means_something)
        || parts.flatten().any(means_something)
}

#[test]
fn every_operation_parameter_body_and_answer_is_described() {
    let described = described();
    for operation in described.operations() {
        let id = operation.id();
        let summary = operation.about["summary"].as_str().unwrap_or_default();
        assert!(is_said(operation.about) || !summary.is_empty(), "{id}");
        for parameter in described.parameters(&operation) {
            assert!(is_said(parameter), "{id}: {parameter}");
        }
        for (status, answer) in operation.about["responses"].as_object().unwrap() {
            assert!(is_said(described.resolve(answer)), "{id}: {status}");
        }
        if let Some(body) = operation.about.get("requestBody") {
            assert!(is_said(body), "{id}: how large may the body be?");
        }
    }
}

/// Looks at a schema and all within it. `at`: where it is.
fn look(schema: &Value, at: &str, missing: &mut Vec<String>) {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let meanings = schema["x-enum-descriptions"].as_array().map_or(0, Vec::len);
        let text = schema["description"].as_str().unwrap_or_default();
        let all = values.iter().filter_map(Value::as_str).all(|value| {
            (values.len() == 1 && !text.is_empty()) || text.contains(&format!("`{value}`: "))
        });
        if !all || (values.len() > 1 && meanings != values.len()) {
            missing.push(format!("{at}: the values {values:?}"));
        }
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let at = format!("{at}.{name}");
        // The only field of a variant is what its variant's description is about.
        let is_variant = is_said(schema) && schema["properties"].as_object().unwrap().len() == 1;
        if !is_variant && !means_something(field) {
            missing.push(at.clone());
        }
        look(field, &at, missing);
    }
    for word in ["oneOf", "anyOf", "allOf"] {
        for (number, part) in schema[word].as_array().into_iter().flatten().enumerate() {
            look(part, &format!("{at} {word} {number}"), missing);
        }
    }
    for word in ["items", "additionalProperties"] {
        if let Some(part) = schema.get(word) {
            look(part, &format!("{at} {word}"), missing);
        }
    }
}

#[test]
fn every_type_field_and_value_is_described() {
    let described = described();
    let schemas = described.document["components"]["schemas"].as_object().unwrap();
    assert!(schemas.len() > 100, "{}", schemas.len());
    let mut missing = Vec::new();
    for (name, schema) in schemas {
        if !is_said(schema) {
            missing.push(name.clone());
        }
        look(schema, name, &mut missing);
    }
    assert!(missing.is_empty(), "{} without a description:\n{}", missing.len(), missing.join("\n"));
}

fn texts(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                if let ("description" | "summary", Value::String(text)) = (key.as_str(), value) {
                    all.push(text.clone());
                }
                texts(value, all);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| texts(value, all)),
        _ => {}
    }
}

#[test]
fn no_description_names_what_only_the_source_has() {
    let mut all = Vec::new();
    texts(&described().document, &mut all);
    let wrong: Vec<&String> = all
        .iter()
        .filter(|text| ["::", "[`", "crate", "`Self"].iter().any(|word| text.contains(word)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_longest_waits_are_said() {
    let described = described();
    let longest = CoreConfig::default().longest_wait.0 / 1_000;
    let schemas = &described.document["components"]["schemas"];
    for (name, seconds) in [("WorkRequest", longest), ("TakeRequest", 20), ("LeadRequest", 20)] {
        let text = schemas[name]["properties"]["wait"]["description"].as_str().unwrap();
        assert!(text.contains(&format!("{seconds} seconds")), "{name}: {text}");
    }
}

#[tokio::test]
async fn the_document_is_a_page_too_with_every_operation_and_type() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let answer = send(world.address(), "GET", "/v1/docs", "", &[], b"").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type").unwrap(), "text/html; charset=utf-8");
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'"), "{policy}");
    let page = String::from_utf8(answer.body).unwrap();
    let described = described();
    for operation in described.operations() {
        let part = format!("<article id=\"op-{}\">", operation.id());
        assert!(page.contains(&part), "no {part}");
    }
    let schemas = described.document["components"]["schemas"].as_object().unwrap();
    for name in schemas.keys() {
        assert!(page.contains(&format!("<article id=\"type-{name}\">")), "no {name}");
    }
    // Each link within the page leads somewhere, and it runs nothing.
    for part in page.split("href=\"#").skip(1) {
        let target = part.split('"').next().unwrap();
        assert!(page.contains(&format!("id=\"{target}\"")), "nothing is `{target}`");
    }
    assert!(!page.contains("<script") && !page.contains("style="), "{page}");
    world.server.stop().await;
}
