//! Says of each value of an enumeration what it means: in the description of its type, and in `x-enum-descriptions`, in the
//! values' order, for programs.

use serde_json::{Value, json};
use std::fmt::Write as _;

/// The descriptions of values by the comments of their types, in the values' order, by type. The build script collects them.
const VALUES: &[(&str, &[&str])] = include!(concat!(env!("OUT_DIR"), "/enum_values.rs"));

/// Describes the values of each type that the document has.
pub(super) fn describe(document: &mut Value) {
    describe_tags(document);
    let schemas = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut);
    let Some(schemas) = schemas else { return };
    for (name, meanings) in VALUES {
        let Some(schema) = schemas.get_mut(*name).and_then(Value::as_object_mut) else { continue };
        let values = schema.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut description =
            schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        for (value, meaning) in values.iter().filter_map(Value::as_str).zip(*meanings) {
            let begin = if description.is_empty() { "" } else { "\n" };
            // Writing to a text doesn't fail.
            let _ = write!(description, "{begin}- `{value}`: {meaning}");
        }
        schema.insert("description".to_owned(), json!(description));
        schema.insert("x-enum-descriptions".to_owned(), json!(meanings));
    }
}

/// Says of a field that has always the same value that it has. Such a field tells the forms of a type from each other.
fn describe_tags(value: &mut Value) {
    let fields = value.get_mut("properties").and_then(Value::as_object_mut);
    for field in fields.into_iter().flat_map(|fields| fields.values_mut()) {
        let only = field.get("enum").and_then(Value::as_array).filter(|values| values.len() == 1);
        let only = only.and_then(|values| values.first()?.as_str()).map(str::to_owned);
        if let (Some(only), Some(field)) = (only, field.as_object_mut()) {
            field.entry("description").or_insert_with(|| json!(format!("Always `{only}`.")));
        }
    }
    match value {
        Value::Object(object) => object.values_mut().for_each(describe_tags),
        Value::Array(values) => values.iter_mut().for_each(describe_tags),
        _ => {}
    }
}
