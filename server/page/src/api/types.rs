//! Schemas of an OpenAPI document as HTML: a type in a line, and a type in full.

use maud::{Markup, html};
use serde_json::Value;

/// Types within types that are shown in place; deeper ones can't come from the server's own document.
const MAX_DEPTH: usize = 8;
/// Words for schemas that are one of several.
const ONE_OF: [&str; 2] = ["oneOf", "anyOf"];
/// Bounds, and how they read.
const BOUNDS: [(&str, &str); 6] = [
    ("minimum", "from"),
    ("maximum", "to"),
    ("minLength", "at least so many characters:"),
    ("maxLength", "characters at most:"),
    ("maxItems", "entries at most:"),
    ("pattern", "of the form"),
];

/// A description: a paragraph a line, a list where lines begin with `- `, and code between backticks.
pub(super) fn text(description: Option<&Value>) -> Markup {
    let description = description.and_then(Value::as_str).unwrap_or_default();
    let lines = description.lines().filter(|line| !line.trim().is_empty());
    let (items, paragraphs): (Vec<&str>, Vec<&str>) =
        lines.partition(|line| line.starts_with("- "));
    html! {
        @for paragraph in paragraphs { p { (in_line(paragraph)) } }
        @if !items.is_empty() {
            ul { @for item in items { li { (in_line(item.trim_start_matches("- "))) } } }
        }
    }
}

fn in_line(text: &str) -> Markup {
    html! {
        @for (number, part) in text.split('`').enumerate() {
            @if number % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// The name of a referenced type.
fn referenced(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.rsplit('/').next()
}

fn one_of(schema: &Value) -> Option<&Vec<Value>> {
    ONE_OF.iter().find_map(|word| schema.get(*word)?.as_array())
}

/// A type in a line.
pub(super) fn type_of(schema: &Value) -> Markup {
    line(schema, 0)
}

fn line(schema: &Value, depth: usize) -> Markup {
    if let Some(name) = referenced(schema) {
        return html! { a href={ "#type-" (name) } { (name) } };
    }
    if depth > MAX_DEPTH {
        return html! { "any value" };
    }
    if let Some(constant) = schema.get("const") {
        return html! { code { (constant.to_string()) } };
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return html! {
            @for (number, value) in values.iter().enumerate() {
                @if number > 0 { ", " }
                code { (value.to_string()) }
            }
        };
    }
    if let Some(parts) = one_of(schema) {
        return alternatives(parts, " or ", depth);
    }
    if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
        return alternatives(parts, " with ", depth);
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        return html! { "list of " (line(items, depth + 1)) (bounds(schema)) };
    }
    if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
        return html! {
            "object with "
            @for (number, (name, field)) in fields.iter().enumerate() {
                @if number > 0 { ", " }
                code { (name) } ": " (line(field, depth + 1))
            }
        };
    }
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        return html! { "map of text to " (line(values, depth + 1)) };
    }
    html! { (primitive(schema)) (bounds(schema)) }
}

fn alternatives(parts: &[Value], between: &str, depth: usize) -> Markup {
    html! {
        @for (number, part) in parts.iter().enumerate() {
            @if number > 0 { (between) }
            (line(part, depth + 1))
        }
    }
}

/// `integer (uint64) or null`.
fn primitive(schema: &Value) -> String {
    let names: Vec<&str> = match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => return "any value".to_owned(),
    };
    let format = schema.get("format").and_then(Value::as_str);
    let format = format.map(|format| format!(" ({format})")).unwrap_or_default();
    format!("{}{format}", names.join(" or "))
}

fn bounds(schema: &Value) -> Markup {
    let said = BOUNDS.iter().filter_map(|(key, words)| Some((*words, schema.get(*key)?)));
    html! {
        @for (words, value) in said {
            ", " (words) " " @if let Some(text) = value.as_str() { code { (text) } } @else { (value.to_string()) }
        }
    }
}

/// A type in full: what it is, its fields or its forms.
pub(super) fn shape(schema: &Value) -> Markup {
    let fields = schema.get("properties").and_then(Value::as_object);
    html! {
        (text(schema.get("description")))
        @if let Some(fields) = fields {
            (self::fields(fields, schema.get("required").and_then(Value::as_array)))
        } @else if let Some(forms) = one_of(schema) {
            p { "One of:" }
            ul { @for form in forms { li { (line(form, 0)) (text(form.get("description"))) } } }
        } @else {
            p { (line(schema, 0)) }
        }
    }
}

fn fields(fields: &serde_json::Map<String, Value>, required: Option<&Vec<Value>>) -> Markup {
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
    html! {
        dl.fields {
            @for (name, field) in fields {
                dt {
                    code { (name) } ": " (line(field, 0))
                    @if !is_required(name) { " " span.hint { "optional" } }
                }
                dd { (text(field.get("description"))) }
            }
        }
    }
}
