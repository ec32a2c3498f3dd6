//! The document that describes `/v1` (OpenAPI), as a page: operations by tag with what they take and answer, then all types.
//!
//! The page has no script. Each operation and each type has an address of its own on it (`#op-submitJob`, `#type-JobView`).

mod types;

use crate::frame;
use maud::{Markup, html};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use types::{shape, text, type_of};

/// The tag of operations that name none.
const OTHER: &str = "other";

/// An operation with its address.
struct Operation<'a> {
    method: &'a str,
    path: &'a str,
    about: &'a Value,
}

impl<'a> Operation<'a> {
    fn id(&self) -> &'a str {
        word(self.about, "operationId")
    }

    fn tag(&self) -> &'a str {
        self.about.pointer("/tags/0").and_then(Value::as_str).unwrap_or(OTHER)
    }
}

/// The page.
#[must_use]
pub fn page(document: &Value) -> Markup {
    let operations = operations(document);
    let mut by_tag: BTreeMap<&str, Vec<&Operation<'_>>> = BTreeMap::new();
    for operation in &operations {
        by_tag.entry(operation.tag()).or_default().push(operation);
    }
    let content = html! {
        h1 { "HTTP interface" }
        (text(document.pointer("/info/description")))
        p { "For programs: " a href="/v1/openapi.json" { "this document as OpenAPI 3.1" } "." }
        nav aria-label="Operations" { (contents(&by_tag)) }
        @for (tag, operations) in &by_tag {
            section #{ "tag-" (tag) } {
                h2 { (tag) }
                @for operation in operations { (self::operation(document, operation)) }
            }
        }
        section #tokens { h2 { "Tokens" } (tokens(document)) }
        section #types {
            h2 { "Types" }
            @for (name, schema) in entries(document.pointer("/components/schemas")) {
                article #{ "type-" (name) } { h3 { code { (name) } } (shape(schema)) }
            }
        }
    };
    frame::open("HTTP interface", &content)
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    let paths = entries(document.get("paths"));
    let methods = paths.flat_map(|(path, item)| {
        entries(Some(item)).map(move |(method, about)| Operation { method, path, about })
    });
    methods.collect()
}

fn entries(object: Option<&Value>) -> impl Iterator<Item = (&str, &Value)> {
    let object: Option<&Map<String, Value>> = object.and_then(Value::as_object);
    object.into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn contents(by_tag: &BTreeMap<&str, Vec<&Operation<'_>>>) -> Markup {
    html! {
        dl.contents {
            @for (tag, operations) in by_tag {
                dt { a href={ "#tag-" (tag) } { (tag) } }
                dd {
                    @for operation in operations {
                        a href={ "#op-" (operation.id()) } { (operation.id()) } " "
                    }
                }
            }
        }
    }
}

/// The value that a reference points to; anything else as it is.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let reference = value.get("$ref").and_then(Value::as_str);
    let target = reference.and_then(|reference| reference.strip_prefix('#'));
    target.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}

fn operation(document: &Value, operation: &Operation<'_>) -> Markup {
    let Operation { method, path, about } = operation;
    let parameters = about.get("parameters").and_then(Value::as_array);
    let parameters: Vec<&Value> =
        parameters.into_iter().flatten().map(|one| resolved(document, one)).collect();
    html! {
        article #{ "op-" (operation.id()) } {
            h3 { code { (method.to_uppercase()) " " (path) } " " span.hint { (operation.id()) } }
            (text(about.get("summary")))
            (text(about.get("description")))
            p.hint { (callers(about)) }
            @if !parameters.is_empty() { (self::parameters(operation.id(), &parameters)) }
            @if let Some(body) = about.get("requestBody") {
                h4 { "Body" }
                (text(body.get("description")))
                (contents_of(body))
            }
            h4 { "Answers" }
            dl.answers {
                @for (status, answer) in entries(about.get("responses")) {
                    @let answer = resolved(document, answer);
                    dt { code { (status) } }
                    dd { (text(answer.get("description"))) (contents_of(answer)) }
                }
            }
        }
    }
}

/// The tokens with which an operation may be called.
fn callers(about: &Value) -> Markup {
    let schemes = about.get("security").and_then(Value::as_array);
    let Some(schemes) = schemes else { return html! { "Needs no token." } };
    let schemes: Vec<&str> =
        schemes.iter().flat_map(|one| entries(Some(one)).map(|(name, _)| name)).collect();
    html! {
        "Needs a token: "
        @for (number, scheme) in schemes.iter().enumerate() {
            @if number > 0 { " or " }
            a href={ "#token-" (scheme) } { (scheme) }
        }
        "."
    }
}

fn parameters(operation: &str, parameters: &[&Value]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label={ "Parameters of " (operation) } {
            table {
                thead { tr { th scope="col" { "Parameter" } th scope="col" { "In" } th scope="col" { "Type" } th scope="col" { "Meaning" } } }
                tbody {
                    @for parameter in parameters {
                        tr {
                            th scope="row" {
                                code { (word(parameter, "name")) }
                                @if parameter["required"] != true { " " span.hint { "optional" } }
                            }
                            td { (word(parameter, "in")) }
                            td { (type_of(&parameter["schema"])) }
                            td { (text(parameter.get("description"))) }
                        }
                    }
                }
            }
        }
    }
}

/// The types of a body, with an example.
fn contents_of(body: &Value) -> Markup {
    html! {
        @for (media_type, content) in entries(body.get("content")) {
            p { code { (media_type) } @if let Some(schema) = content.get("schema") { ": " (type_of(schema)) } }
            @let example = content.get("example").and_then(|example| serde_json::to_string_pretty(example).ok());
            @if let Some(example) = example {
                details { summary { "Example" } pre { (example) } }
            }
        }
    }
}

fn tokens(document: &Value) -> Markup {
    html! {
        dl.answers {
            @for (name, scheme) in entries(document.pointer("/components/securitySchemes")) {
                dt #{ "token-" (name) } { code { (name) } }
                dd { (text(scheme.get("description"))) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn operations_stand_with_their_tag_and_link_to_types() {
        let job = json!({ "type": "object", "required": ["id"], "properties": {
            "id": { "type": "integer", "format": "uint64", "description": "Its `id`." },
            "state": { "$ref": "#/components/schemas/State" },
        } });
        let document = json!({
            "info": { "description": "A <test>." },
            "paths": { "/v1/jobs": { "get": {
                "operationId": "jobs", "tags": ["jobs"], "summary": "Every job.",
                "security": [{ "admin": [] }], "parameters": [{ "$ref": "#/components/parameters/P" }],
                "responses": { "200": { "description": "All.", "content": { "application/json": {
                    "schema": { "type": "array", "items": { "$ref": "#/components/schemas/Job" } },
                    "example": [{ "id": 1 }],
                } } } },
            } } },
            "components": {
                "parameters": { "P": { "name": "p", "in": "query", "schema": { "type": "string" } } },
                "schemas": { "Job": job, "State": { "type": "string", "enum": ["on"] } },
                "securitySchemes": { "admin": { "description": "A user's." } },
            },
        });
        let page = page(&document).into_string();
        for part in [
            "A &lt;test&gt;.",
            r##"<a href="#op-jobs">jobs</a>"##,
            r#"<article id="op-jobs"><h3><code>GET /v1/jobs</code>"#,
            r##"<a href="#token-admin">admin</a>"##,
            r##"list of <a href="#type-Job">Job</a>"##,
            r#"<article id="type-Job">"#,
            "Its <code>id</code>.",
            "<code>p</code> <span class=\"hint\">optional</span>",
            "<code>&quot;on&quot;</code>",
        ] {
            assert!(page.contains(part), "no {part} in {page}");
        }
        assert!(!page.contains("<script"), "{page}");
    }
}
