//! Types the events of a job's history: a schema for each kind, told apart by `kind`.
//!
//! The journal has an event as `{"kind": {...}}`. An answer has the kind and the fields beside position and time.

use super::components::pascal;
use serde_json::{Map, Value, json};

const REFERENCE: &str = "#/components/schemas/";

/// Makes `EventView` one of the kinds of events.
pub(super) fn apply(document: &mut Value) {
    let schemas = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut);
    let Some(schemas) = schemas else { return };
    let kinds = schemas.remove("Event");
    let Some(view) = schemas.remove("EventView") else { return };
    let kinds = kinds.as_ref().and_then(|kinds| kinds.get("oneOf")).and_then(Value::as_array);
    let mut references = Vec::new();
    let mut mapping = Map::new();
    for one in kinds.into_iter().flatten() {
        let Some((kind, name, schema)) = typed(one, &view) else { continue };
        let reference = format!("{REFERENCE}{name}");
        references.push(json!({ "$ref": reference }));
        mapping.insert(kind, reference.into());
        schemas.insert(name, schema);
    }
    let description = view.get("description").cloned().unwrap_or_default();
    let of_kinds = json!({
        "description": description,
        "oneOf": references,
        "discriminator": { "propertyName": "kind", "mapping": mapping },
    });
    schemas.insert("EventView".to_owned(), of_kinds);
}

/// The kind of one variant of the journal's schema, with the name and the schema of a line that has it.
fn typed(variant: &Value, view: &Value) -> Option<(String, String, Value)> {
    let (kind, fields) = variant.get("properties")?.as_object()?.iter().next()?;
    let mut line = view.clone();
    let meaning = variant.get("description").cloned().unwrap_or_default();
    let properties = line.get_mut("properties")?.as_object_mut()?;
    let description = properties.get("kind")?.get("description").cloned().unwrap_or_default();
    let constant = json!({ "type": "string", "const": kind, "description": description });
    properties.insert("kind".to_owned(), constant);
    let mut fields = fields.clone();
    let description = properties.get("event")?.get("description").cloned().unwrap_or_default();
    if let Some(fields) = fields.as_object_mut() {
        fields.entry("description").or_insert(description);
    }
    properties.insert("event".to_owned(), fields);
    line.as_object_mut()?.insert("description".to_owned(), meaning);
    Some((kind.clone(), format!("{}Event", pascal(kind)), line))
}
