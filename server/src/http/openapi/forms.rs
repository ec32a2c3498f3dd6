//! Closes the forms of types that are one of several: a form that is told by its only field has no other field, and the fields of a
//! strict type's forms are all that it takes.

use serde_json::{Map, Value, json};

/// Types whose forms refuse fields that they don't know. The build script collects them.
const STRICT: &[&str] = include!(concat!(env!("OUT_DIR"), "/strict_enums.rs"));
/// Lists of exactly two entries: the type and the field.
const PAIRS: [(&str, &str); 4] = [
    ("Normal", "truncate"),
    ("RangeDecision", "overlap"),
    ("Start", "normal"),
    ("Start", "uniform"),
];

/// Closes the forms of all types.
pub(super) fn close(document: &mut Value) {
    if let Some(types) = document.pointer("/components/schemas").and_then(Value::as_object).cloned()
    {
        flatten(document, &types);
    }
    let schemas = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut);
    for (name, schema) in schemas.into_iter().flatten() {
        // `Dimension_u32` is one form of `Dimension`.
        let is_strict = STRICT.contains(&name.split('_').next().unwrap_or(name));
        for (_, field) in PAIRS.iter().filter(|(owner, _)| owner == name) {
            pair(schema, field);
        }
        let forms = schema.get_mut("oneOf").and_then(Value::as_array_mut);
        for form in forms.into_iter().flatten() {
            for (_, field) in PAIRS.iter().filter(|(owner, _)| owner == name) {
                pair(form, field);
            }
            close_form(form, is_strict);
        }
    }
}

/// Has a list of this name two entries.
fn pair(schema: &mut Value, field: &str) {
    let list = schema.get_mut("properties").and_then(|fields| fields.get_mut(field));
    if let Some(list) = list.and_then(Value::as_object_mut) {
        list.insert("minItems".to_owned(), json!(2));
        list.insert("maxItems".to_owned(), json!(2));
    }
}

fn close_form(form: &mut Value, is_strict: bool) {
    let Some(fields) = form.get_mut("properties").and_then(Value::as_object_mut) else { return };
    let is_only = fields.len() == 1;
    let is_tag = |field: &Value| {
        let values = field.get("enum").and_then(Value::as_array);
        values.is_some_and(|values| values.len() == 1)
    };
    let is_tagged = fields.values().any(is_tag);
    if let Some(fields) = fields.values_mut().next().filter(|_| is_only && !is_tagged && is_strict)
    {
        forbid_others(fields);
    }
    if (is_only && !is_tagged) || (is_tagged && is_strict) {
        forbid_others(form);
    }
}

fn forbid_others(schema: &mut Value) {
    let schema = schema.as_object_mut().filter(|schema| schema.contains_key("properties"));
    if let Some(schema) = schema {
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
}

/// Writes a form that is a type with a tag as one object, as it is serialised. The type alone may refuse the tag.
fn flatten(value: &mut Value, types: &Map<String, Value>) {
    match value {
        Value::Object(object) => object.values_mut().for_each(|value| flatten(value, types)),
        Value::Array(values) => values.iter_mut().for_each(|value| flatten(value, types)),
        _ => return,
    }
    let parts = value.get("allOf").and_then(Value::as_array);
    let Some(mut whole) = parts.and_then(|parts| merged(parts, types)) else { return };
    if let Some(description) = value.get("description") {
        whole.insert("description".to_owned(), description.clone());
    }
    *value = whole.into();
}

/// The object that has the fields of all parts; `None` where one isn't an object with named fields.
fn merged(parts: &[Value], types: &Map<String, Value>) -> Option<Map<String, Value>> {
    let (mut fields, mut required, mut is_closed) = (Map::new(), Vec::new(), false);
    for part in parts {
        let name = part.get("$ref").and_then(Value::as_str).and_then(|to| to.rsplit('/').next());
        let part = name.map_or(Some(part), |name| types.get(name))?;
        fields.extend(part.get("properties")?.as_object()?.clone());
        let own = part.get("required").and_then(Value::as_array);
        required.extend(own.into_iter().flatten().cloned());
        is_closed |= part.get("additionalProperties") == Some(&Value::Bool(false));
    }
    let mut whole = Map::new();
    whole.insert("type".to_owned(), json!("object"));
    whole.insert("properties".to_owned(), fields.into());
    whole.insert("required".to_owned(), required.into());
    if is_closed {
        whole.insert("additionalProperties".to_owned(), json!(false));
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tagged_type_is_one_object_which_takes_no_other_field() {
        let net = json!({
            "properties": { "hidden": { "type": "integer" } }, "required": ["hidden"],
            "additionalProperties": false,
        });
        let tag = json!({ "properties": { "arch": { "enum": ["net"] } }, "required": ["arch"] });
        let form = json!({ "allOf": [{ "$ref": "#/components/schemas/Net" }, tag] });
        let schemas = json!({ "Net": net, "Architecture": { "oneOf": [form] } });
        let mut document = json!({ "components": { "schemas": schemas } });
        close(&mut document);
        let flat = json!({
            "type": "object", "required": ["hidden", "arch"], "additionalProperties": false,
            "properties": { "hidden": { "type": "integer" }, "arch": { "enum": ["net"] } },
        });
        assert_eq!(document["components"]["schemas"]["Architecture"]["oneOf"][0], flat);
    }
}
