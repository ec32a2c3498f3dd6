//! Writes the bounds of requests into the document: `maxLength`, `maxItems`, `minimum` and `maximum`.
//!
//! The bounds come from the table by which requests are read ([`sojourn_protocol::bounds`]). Types that only answers have are
//! left as they are.

use serde_json::{Map, Value, json};
use sojourn_protocol::{
    api::{BYTES_HEADER, RESULT_BYTES_HEADER},
    bounds::{Bound, Leaf, MAX_BLOB_BYTES},
    spec::{MAX_CONSTRAINT_CHARS, MIN_DEADLINE},
    text::{MAX_NAME_CHARS, NOT_IN_NAMES, NOT_IN_PLAIN_LINES},
};
use std::collections::BTreeSet;

/// Names that people give, and that have no space at their ends.
const GIVEN_NAMES: [&str; 2] = ["OwnerName", "TokenLabel"];
/// Numbers that are 0 for none, or from a least one on: the type, the field, that one.
const NONE_OR_FROM: [(&str, &str, u64); 1] = [("PlacementRequest", "deadline", MIN_DEADLINE.0)];
/// Headers that say the size of a blob.
const SIZES: [&str; 2] = [BYTES_HEADER, RESULT_BYTES_HEADER];

/// Where schemas refer to others.
const SCHEMAS: &str = "#/components/schemas/";

/// The pattern of names.
fn name_pattern() -> String {
    let inner = NOT_IN_NAMES;
    format!("^([^\\s{inner}]([^{inner}]*[^\\s{inner}])?)?$")
}

/// Bounds each field of each type that a request's body consists of.
pub(super) fn apply(document: &mut Value) {
    bound_headers(document);
    let mut names = BTreeSet::new();
    let paths = document.get("paths").and_then(Value::as_object).into_iter().flatten();
    let operations = paths.filter_map(|(_, item)| item.as_object()).flatten();
    let bodies = operations.filter_map(|(_, operation)| operation.get("requestBody"));
    let mut left: Vec<String> = bodies.flat_map(named).collect();
    let Some(schemas) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut)
    else {
        return;
    };
    for name in GIVEN_NAMES {
        if let Some(schema) = schemas.get_mut(name).and_then(Value::as_object_mut) {
            schema.insert("pattern".to_owned(), json!(name_pattern()));
        }
    }
    // A text with a type of its own.
    if let Some(formula) = schemas.get_mut("Formula").and_then(Value::as_object_mut) {
        formula.insert("maxLength".to_owned(), json!(MAX_CONSTRAINT_CHARS));
    }
    while let Some(name) = left.pop() {
        if let Some(schema) = schemas.get(&name)
            && names.insert(name)
        {
            left.extend(named(schema));
        }
    }
    let lists: BTreeSet<String> =
        names.iter().filter(|name| is_list(schemas.get(*name))).cloned().collect();
    let mut listed = Vec::new();
    for name in &names {
        // `Dimension_u32` is one form of `Dimension`.
        let owner = name.split('_').next().unwrap_or(name);
        if let Some(schema) = schemas.get_mut(name) {
            bound_fields(owner, schema, &lists, &mut listed);
        }
    }
    for (owner, field, least) in NONE_OR_FROM {
        let schema = schemas.get_mut(owner).and_then(|of| of["properties"].get_mut(field));
        if let Some(schema) = schema.and_then(Value::as_object_mut) {
            // Nothing at all is no number, and is taken.
            let most = least.saturating_sub(1);
            let between = json!({ "type": "integer", "minimum": 1, "maximum": most });
            schema.insert("not".to_owned(), between);
        }
    }
    // A type that is a list has its bound from the field that is of this type.
    for (name, bound) in listed {
        if let Some(schema) = schemas.get_mut(&name) {
            bound_value(schema, bound, 0);
        }
    }
}

/// Bounds the sizes of blobs in headers.
fn bound_headers(document: &mut Value) {
    let paths = document.get_mut("paths").and_then(Value::as_object_mut).into_iter().flatten();
    let operations = paths.filter_map(|(_, item)| item.as_object_mut()).flatten();
    let parameters = operations
        .filter_map(|(_, operation)| operation.get_mut("parameters")?.as_array_mut())
        .flatten();
    for parameter in parameters {
        let is_size =
            parameter.get("name").is_some_and(|name| SIZES.iter().any(|size| name == size));
        let schema = parameter.get_mut("schema").and_then(Value::as_object_mut);
        if let Some(schema) = schema.filter(|_| is_size) {
            schema.insert("maximum".to_owned(), json!(MAX_BLOB_BYTES));
        }
    }
}

/// The names of the schemas that a part of the document refers to.
fn named(value: &Value) -> Vec<String> {
    match value {
        Value::Object(object) => {
            let own = object.get("$ref").and_then(Value::as_str);
            let own = own.and_then(|name| name.strip_prefix(SCHEMAS)).map(str::to_owned);
            own.into_iter().chain(object.values().flat_map(named)).collect()
        }
        Value::Array(values) => values.iter().flat_map(named).collect(),
        _ => Vec::new(),
    }
}

fn is_list(schema: Option<&Value>) -> bool {
    schema.is_some_and(|schema| has_type(schema, "array"))
}

/// Is it of this type, or that or nothing?
fn has_type(schema: &Value, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == wanted,
        Some(Value::Array(names)) => names.iter().any(|name| name == wanted),
        _ => false,
    }
}

/// Bounds the fields of a type, its variants' fields included. `listed`: the types that are lists, with their bounds.
fn bound_fields(
    owner: &str,
    schema: &mut Value,
    lists: &BTreeSet<String>,
    listed: &mut Vec<(String, Bound)>,
) {
    for word in ["oneOf", "anyOf", "allOf"] {
        let parts = schema.get_mut(word).and_then(Value::as_array_mut);
        parts.into_iter().flatten().for_each(|part| bound_fields(owner, part, lists, listed));
    }
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (field, value) in fields.into_iter().flatten() {
        let bound = Bound::of(owner, field);
        let refers = named(value).into_iter().filter(|name| lists.contains(name));
        listed.extend(refers.map(|name| (name, bound)));
        bound_value(value, bound, 0);
        // A variant's own fields are written in place.
        bound_fields(owner, value, lists, listed);
    }
}

fn bound_value(schema: &mut Value, bound: Bound, depth: usize) {
    for word in ["oneOf", "anyOf"] {
        let parts = schema.get_mut(word).and_then(Value::as_array_mut);
        parts.into_iter().flatten().for_each(|part| bound_value(part, bound, depth));
    }
    let (is_list, is_text) = (has_type(schema, "array"), has_type(schema, "string"));
    let is_number = ["integer", "number"].iter().any(|name| has_type(schema, name));
    let Some(object) = schema.as_object_mut() else { return };
    if is_list && !object.contains_key("prefixItems") {
        object.insert("maxItems".to_owned(), json!(bound.entries(depth)));
        if let Some(items) = object.get_mut("items") {
            bound_value(items, bound, depth.saturating_add(1));
        }
        return;
    }
    if is_text && !["enum", "const", "pattern"].iter().any(|word| object.contains_key(*word)) {
        let most = match bound.leaf {
            Leaf::Text(most) | Leaf::Line(most) | Leaf::Name(most) => most,
            Leaf::Typed | Leaf::Whole(_) | Leaf::Between(..) | Leaf::Real(_) => MAX_NAME_CHARS,
        };
        object.insert("maxLength".to_owned(), json!(most));
        if let Leaf::Line(_) = bound.leaf {
            object.insert("pattern".to_owned(), json!(format!("^[^{NOT_IN_PLAIN_LINES}]*$")));
        }
        if let Leaf::Name(_) = bound.leaf {
            object.insert("pattern".to_owned(), json!(name_pattern()));
        }
    }
    if is_number || object.contains_key("$ref") {
        bound_number(object, bound.leaf);
    }
}

fn bound_number(schema: &mut Map<String, Value>, leaf: Leaf) {
    match leaf {
        Leaf::Whole(most) => drop(schema.insert("maximum".to_owned(), json!(most))),
        Leaf::Between(least, most) => {
            schema.insert("minimum".to_owned(), json!(least));
            schema.insert("maximum".to_owned(), json!(most));
        }
        Leaf::Real(most) => {
            schema.insert("minimum".to_owned(), json!(0.0));
            schema.insert("maximum".to_owned(), json!(most));
        }
        Leaf::Typed | Leaf::Text(_) | Leaf::Line(_) | Leaf::Name(_) => {}
    }
}
