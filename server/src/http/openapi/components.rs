//! Brings schemas into a form of which generators of clients make classes: an object within another schema becomes a type with a
//! name of its own, and values of an enumeration refer to its type.
//!
//! ```text
//!   SearchMethod: one of { random: { trials } }, ..   -->   SearchMethod: one of SearchMethodRandom, ..
//!                                                           SearchMethodRandom: { random: SearchMethodRandomFields }
//!                                                           SearchMethodRandomFields: { trials }
//! ```

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const REFERENCE: &str = "#/components/schemas/";
/// Fields whose type is the parameter of theirs, with their texts, which `utoipa` 5 leaves out: the type, the field, the text.
const OF_PARAMETERS: [(&str, &str, &str); 1] =
    [("Conditional", "otherwise", "The value of all other trials.")];
/// Words for schemas that are one of several.
const ONE_OF: [&str; 2] = ["oneOf", "anyOf"];

/// Rewrites all schemas.
pub(super) fn apply(document: &mut Value) {
    let schemas = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut);
    let Some(schemas) = schemas else { return };
    let enums = enums(schemas);
    for (name, schema) in schemas.iter_mut() {
        unwind(name, schema);
        refer(schema, &enums, true);
    }
    let mut parts = Parts { known: std::mem::take(schemas), named: Map::new() };
    let names: Vec<String> = parts.known.keys().cloned().collect();
    for name in names {
        if let Some(mut schema) = parts.known.get_mut(&name).map(Value::take) {
            parts.name_within(&mut schema, &name);
            parts.known.insert(name, schema);
        }
    }
    *schemas = parts.known;
    schemas.append(&mut parts.named);
}

/// Completes what generic types lack. Within types of types `utoipa` 5 names `Dimension<Vec<u32>>` as `Dimension_Vec` there, and `Dimension_Vec_u32` elsewhere.
pub(super) fn complete_names(document: &mut Value) {
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
    let names: Vec<String> = schemas.into_iter().flat_map(Map::keys).cloned().collect();
    complete_references(document, &names);
    make_finite(document);
    let schemas = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut);
    for (name, schema) in schemas.into_iter().flatten() {
        for (owner, field, text) in OF_PARAMETERS {
            let is_it = name.split('_').next() == Some(owner);
            let field = schema.get_mut("properties").and_then(|fields| fields.get_mut(field));
            if let Some(field) = field.and_then(Value::as_object_mut).filter(|_| is_it) {
                field.insert("description".to_owned(), text.into());
            }
        }
    }
}

/// The dimension within a conditional one has no condition of its own: its type is a form of `Dimension` without that.
fn make_finite(document: &mut Value) {
    let schemas = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut);
    let Some(schemas) = schemas else { return };
    let mut plain = Map::new();
    for (name, schema) in schemas.iter_mut().filter(|(name, _)| name.starts_with("Conditional_")) {
        let whole = schema.pointer_mut("/properties/dimension/$ref");
        if let Some(Value::String(whole)) = whole {
            let of = whole.trim_start_matches(REFERENCE).to_owned();
            let inner = format!("{of}_within_{name}");
            *whole = format!("{REFERENCE}{inner}");
            plain.insert(inner, Value::String(of));
        }
    }
    for (inner, of) in plain {
        let mut schema = of.as_str().and_then(|of| schemas.get(of)).cloned().unwrap_or_default();
        if let Some(forms) = schema.get_mut("oneOf").and_then(Value::as_array_mut) {
            forms.retain(|form| form.pointer("/properties/conditional").is_none());
        }
        schemas.insert(inner, schema);
    }
}

fn complete_references(value: &mut Value, names: &[String]) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|of| complete_references(of, names)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|of| complete_references(of, names));
            let cut = fields.get("$ref").and_then(Value::as_str);
            let cut = cut.and_then(|of| of.strip_prefix(REFERENCE));
            let Some(cut) = cut.filter(|cut| !names.iter().any(|name| name == cut)) else { return };
            let is_whole =
                |name: &&String| name.strip_prefix(cut).is_some_and(|rest| rest.starts_with('_'));
            if let Some(whole) = names.iter().find(is_whole) {
                fields.insert("$ref".to_owned(), format!("{REFERENCE}{whole}").into());
            }
        }
        _ => {}
    }
}

fn reference(name: &str, description: Option<&Value>) -> Value {
    let mut reference = json!({ "$ref": format!("{REFERENCE}{name}") });
    if let (Some(reference), Some(description)) = (reference.as_object_mut(), description) {
        reference.insert("description".to_owned(), description.clone());
    }
    reference
}

/// The names of all enumerations, by their values as JSON.
fn enums(schemas: &Map<String, Value>) -> BTreeMap<String, String> {
    let several = |schema: &Value| {
        let values = schema.get("enum")?.as_array()?;
        (values.len() > 1).then(|| Value::from(values.clone()).to_string())
    };
    schemas.iter().filter_map(|(name, schema)| Some((several(schema)?, name.clone()))).collect()
}

/// Has enumerations within schemas refer to the type of the same values.
fn refer(schema: &mut Value, enums: &BTreeMap<String, String>, is_type: bool) {
    let name = schema.get("enum").and_then(|values| enums.get(&values.to_string()));
    if let Some(name) = name.filter(|_| !is_type) {
        *schema = reference(name, None);
        return;
    }
    match schema {
        Value::Object(object) => object.values_mut().for_each(|value| refer(value, enums, false)),
        Value::Array(values) => values.iter_mut().for_each(|value| refer(value, enums, false)),
        _ => {}
    }
}

/// A type that is one of several forms, of which one is a list of the type itself: entries of that list may be of the other
/// forms, or lists of those. A whole number is a number too, so more than one form may fit.
fn unwind(name: &str, schema: &mut Value) {
    let own = format!("{REFERENCE}{name}");
    let Some(object) = schema.as_object_mut() else { return };
    let Some(forms) = object.get("oneOf").and_then(Value::as_array).cloned() else { return };
    let is_of_itself = |form: &Value| form.pointer("/items/$ref").is_some_and(|to| *to == *own);
    if !forms.iter().any(is_of_itself) {
        return;
    }
    let (mut lists, mut others): (Vec<Value>, Vec<Value>) =
        forms.into_iter().partition(is_of_itself);
    let mut entries = others.clone();
    let flat = json!({ "type": "array", "description": "A list.", "items": { "anyOf": others } });
    entries.push(flat);
    for list in &mut lists {
        if let Some(list) = list.as_object_mut() {
            list.insert("items".to_owned(), json!({ "anyOf": entries }));
        }
    }
    others.append(&mut lists);
    object.remove("oneOf");
    object.insert("anyOf".to_owned(), others.into());
}

/// The types as they were, and those that got names.
struct Parts {
    known: Map<String, Value>,
    named: Map<String, Value>,
}

impl Parts {
    /// Names the objects within a schema of this name.
    fn name_within(&mut self, schema: &mut Value, name: &str) {
        let Some(object) = schema.as_object_mut() else { return };
        for word in ONE_OF {
            let forms = object.get_mut(word).and_then(Value::as_array_mut);
            for (number, form) in forms.into_iter().flatten().enumerate() {
                let tag = tag(form).map_or_else(|| format!("Form{number}"), |tag| pascal(&tag));
                let is_object = is_object(form);
                self.name(form, &if is_object { format!("{name}{tag}") } else { name.to_owned() });
            }
        }
        for part in object.get_mut("allOf").and_then(Value::as_array_mut).into_iter().flatten() {
            self.name_within(part, name);
        }
        if let Some(fields) = object.get_mut("properties").and_then(Value::as_object_mut) {
            let is_only = fields.len() == 1;
            for (field, value) in fields {
                let end = if is_only { "Fields".to_owned() } else { pascal(field) };
                self.name(value, &format!("{name}{end}"));
            }
        }
        for word in ["items", "additionalProperties"] {
            if let Some(item) = object.get_mut(word) {
                self.name(item, &format!("{name}Item"));
            }
        }
    }

    /// Gives a schema this name if it is an object, and names what is within it.
    fn name(&mut self, schema: &mut Value, name: &str) {
        self.name_within(schema, name);
        if !is_object(schema) {
            return;
        }
        let mut free = name.to_owned();
        while self.known.contains_key(&free) || self.named.contains_key(&free) {
            free.push_str("Form");
        }
        let reference = reference(&free, schema.get("description"));
        self.named.insert(free, std::mem::replace(schema, reference));
    }
}

fn is_object(schema: &Value) -> bool {
    schema.get("properties").is_some() || schema.get("allOf").is_some()
}

/// The word by which a form of a type is told from the others: the only value of a field, or the only field.
fn tag(schema: &Value) -> Option<String> {
    let own = schema.get("properties").and_then(Value::as_object);
    let parts = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
    let inherited = parts.filter_map(|part| part.get("properties")?.as_object());
    let fields: Vec<(&String, &Value)> = own.into_iter().chain(inherited).flatten().collect();
    let value = fields.iter().find_map(|(_, field)| {
        let values = field.get("enum").and_then(Value::as_array).filter(|all| all.len() == 1);
        field.get("const").or_else(|| values?.first())?.as_str()
    });
    match (value, fields.as_slice()) {
        (Some(value), _) => Some(value.to_owned()),
        (None, [(name, _)]) => Some((*name).clone()),
        _ => None,
    }
}

/// `lease-granted` and `lease_granted` as `LeaseGranted`.
pub(super) fn pascal(word: &str) -> String {
    let words = word.split(['-', '_', ' ']).map(|word| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
    });
    words.collect::<Vec<String>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(schemas: Value) -> Value {
        let mut document = json!({ "components": { "schemas": schemas } });
        apply(&mut document);
        document["components"]["schemas"].clone()
    }

    #[test]
    fn objects_within_a_type_get_names_by_their_tag() {
        let trials = json!({ "type": "object", "properties": { "trials": { "type": "integer" } } });
        let random = json!({ "type": "object", "description": "By chance.", "properties": { "random": trials } });
        let tagged = json!({ "allOf": [{ "properties": { "arch": { "enum": ["own-net"] } } }] });
        let schemas =
            applied(json!({ "Method": { "oneOf": [random, tagged, { "type": "null" }] } }));
        assert_eq!(
            schemas["Method"]["oneOf"],
            json!([
                { "$ref": "#/components/schemas/MethodRandom", "description": "By chance." },
                { "$ref": "#/components/schemas/MethodOwnNet" },
                { "type": "null" },
            ])
        );
        let fields = json!({ "$ref": "#/components/schemas/MethodRandomFields" });
        assert_eq!(schemas["MethodRandom"]["properties"]["random"], fields);
        assert_eq!(schemas["MethodRandomFields"], trials);
    }

    #[test]
    fn values_refer_to_their_type_and_a_list_of_its_own_type_ends() {
        let pool = json!({ "type": "string", "enum": ["max", "none"] });
        let own = json!({ "type": "array", "items": { "$ref": "#/components/schemas/Setting" } });
        let schemas = applied(json!({
            "Pool": pool, "Net": { "properties": { "pool": pool, "a": { "enum": ["a"] } } },
            "Setting": { "oneOf": [{ "type": "boolean" }, own] },
        }));
        assert_eq!(schemas["Pool"], pool);
        let of_pool = json!({ "$ref": "#/components/schemas/Pool" });
        assert_eq!(schemas["Net"]["properties"]["pool"], of_pool);
        let entries = &schemas["Setting"]["anyOf"][1]["items"]["anyOf"];
        assert_eq!(entries[0]["type"], "boolean");
        assert_eq!(entries[1]["items"]["anyOf"], json!([{ "type": "boolean" }]));
    }
}
