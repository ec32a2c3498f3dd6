//! The fields of a described body: where each lies, and bodies that have it at its bound and past it.

use crate::document::Described;
use serde_json::{Value, json};
use sojourn_protocol::quantity::to_usize;
use std::rc::Rc;

/// Puts a value in a place of a body, and gives the whole.
type Put = Rc<dyn Fn(Value) -> Value>;

/// Stands for a number that JSON values can't hold, until the body is written.
const RAW: &str = "@raw@";

/// A text, list or number of a body.
pub(crate) struct Field {
    /// Names of fields from the outside; `[]` is an entry of a list.
    pub(crate) path: String,
    pub(crate) schema: Value,
    /// An entry, of a list.
    entry: Value,
    put: Put,
}

/// All fields of a body, also those that the example lacks, in whatever variant.
pub(crate) fn fields(described: &Described, schema: &Value, example: &Value) -> Vec<Field> {
    let mut found = Vec::new();
    let trail = Trail::default();
    walk(
        (described, &trail),
        schema,
        Some(example),
        "",
        &(Rc::new(|value| value) as Put),
        &mut found,
    );
    found
}

/// The kind of a schema: that of the value, where it may be nothing.
fn kind(schema: &Value) -> &str {
    let names = schema.get("type");
    let listed = names.and_then(Value::as_array).into_iter().flatten();
    let mut named = names.into_iter().chain(listed).filter_map(Value::as_str);
    named.find(|name| *name != "null").unwrap_or_default()
}

/// The schema that a reference means, with what is said beside the reference.
fn resolved(described: &Described, schema: &Value) -> Value {
    let mut whole = described.resolve(schema).clone();
    if schema.get("$ref").is_some() {
        for (word, value) in schema.as_object().unwrap() {
            if word != "$ref" {
                whole[word] = value.clone();
            }
        }
    }
    whole
}

/// Alternatives of a schema.
fn variants(schema: &Value) -> Vec<Value> {
    let parts = |word: &str| schema.get(word).and_then(Value::as_array).cloned();
    let parts = parts("oneOf").or_else(|| parts("anyOf")).unwrap_or_default();
    parts.into_iter().filter(|part| !kind(part).is_empty() || part.get("type").is_none()).collect()
}

/// The least value of a schema.
fn least(described: &Described, schema: &Value) -> Value {
    let schema = resolved(described, schema);
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(values) = schema.get("enum") {
        return values[0].clone();
    }
    if let Some(first) = variants(&schema).first() {
        return least(described, first);
    }
    let mut object = json!({});
    for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        for (name, value) in least(described, part).as_object().unwrap() {
            object[name] = value.clone();
        }
    }
    match kind(&schema) {
        "array" => json!([]),
        "string" if schema.get("pattern").is_some() => json!("0".repeat(64)),
        "string" => json!("x"),
        "integer" | "number" => json!(1),
        "boolean" => json!(false),
        _ => {
            for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
                let name = name.as_str().unwrap();
                if let Some(field) = schema["properties"].get(name) {
                    object[name] = least(described, field);
                }
            }
            object
        }
    }
}

/// Is this a value of the variant?
fn is_of(described: &Described, variant: &Value, value: &Value) -> bool {
    let variant = resolved(described, variant);
    if let Some(parts) = variant.get("allOf").and_then(Value::as_array) {
        return parts.iter().all(|part| is_of(described, part, value));
    }
    if let Some(values) = variant.get("enum").and_then(Value::as_array) {
        return values.contains(value);
    }
    let of_kind = match kind(&variant) {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" | "number" => value.is_number(),
        _ => !value.is_null(),
    };
    let required = variant.get("required").and_then(Value::as_array).into_iter().flatten();
    let has = |name: &Value| {
        let field = variant["properties"].get(name.as_str().unwrap());
        let inner = value.get(name.as_str().unwrap());
        // The tag of a variant has one value.
        let tags = field.and_then(|field| field.get("enum")).and_then(Value::as_array);
        inner.is_some_and(|inner| tags.is_none_or(|tags| tags.contains(inner)))
    };
    of_kind && required.clone().all(has)
}

/// The types that a field lies in, from the outermost. A type that holds itself is gone into once.
#[derive(Clone, Default)]
struct Trail(Vec<String>);

impl Trail {
    /// The trail within a schema; none where it was gone into before.
    fn within(&self, schema: &Value) -> Option<Self> {
        let mut within = self.clone();
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            if self.0.iter().any(|of| of == name) {
                return None;
            }
            within.0.push(name.to_owned());
        }
        Some(within)
    }
}

fn walk(
    (described, trail): (&Described, &Trail),
    schema: &Value,
    value: Option<&Value>,
    path: &str,
    put: &Put,
    found: &mut Vec<Field>,
) {
    let Some(trail) = &trail.within(schema) else { return };
    let at = (described, trail);
    let schema = resolved(described, schema);
    let variants = variants(&schema);
    for variant in &variants {
        let own = value.filter(|value| is_of(described, variant, value)).cloned();
        let own = own.unwrap_or_else(|| least(described, variant));
        walk(at, variant, Some(&own), path, put, found);
    }
    if !variants.is_empty() {
        return;
    }
    let value = value.filter(|value| !value.is_null()).cloned();
    let value = value.unwrap_or_else(|| least(described, &schema));
    for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        walk(at, part, Some(&value), path, put, found);
    }
    match kind(&schema) {
        "array" => {
            let items = &schema["items"];
            let entry = value.get(0).cloned().unwrap_or_else(|| least(described, items));
            let list = Rc::clone(put);
            let inner = Rc::new(move |entry| list(json!([entry]))) as Put;
            walk(at, items, Some(&entry), &format!("{path}[]"), &inner, found);
            let (path, put) = (path.to_owned(), Rc::clone(put));
            found.push(Field { path, schema, entry, put });
        }
        "string" | "integer" | "number" if schema.get("enum").is_none() => {
            let (path, put) = (path.to_owned(), Rc::clone(put));
            found.push(Field { path, schema, entry: Value::Null, put });
        }
        _ => {
            for (name, field) in
                schema.get("properties").and_then(Value::as_object).into_iter().flatten()
            {
                let (whole, outer, name) = (value.clone(), Rc::clone(put), name.clone());
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                let own = value.get(&name).cloned();
                let inner = Rc::new(move |value| {
                    let mut whole = whole.clone();
                    whole[&name] = value;
                    outer(whole)
                }) as Put;
                walk(at, field, own.as_ref(), &path, &inner, found);
            }
        }
    }
}

impl Field {
    pub(crate) fn kind(&self) -> &str {
        kind(&self.schema)
    }

    /// Is its bound in the table, rather than the width of its type?
    pub(crate) fn has_bound_of_its_own(&self) -> bool {
        ["maxLength", "maxItems", "maximum"].iter().any(|word| self.schema.get(word).is_some())
    }

    fn body(&self, value: Value) -> String {
        (self.put)(value).to_string()
    }

    fn number(&self, word: &str) -> Option<u64> {
        self.schema.get(word).and_then(Value::as_u64)
    }

    /// So many entries, digests of different blobs.
    fn list(&self, entries: u64) -> Value {
        let is_digest = self.schema["items"]
            .get("$ref")
            .is_some_and(|name| name.as_str().unwrap().ends_with("/Digest"));
        let entry =
            |n: u64| if is_digest { json!(format!("{n:064x}")) } else { self.entry.clone() };
        (0..entries).map(entry).collect()
    }

    /// The largest whole number of the type.
    fn widest(&self) -> u64 {
        let signed = self.schema.get("minimum").is_none();
        match (self.schema["format"].as_str(), signed) {
            (Some("int32"), false) => u64::from(u32::MAX),
            (Some("int32"), true) => i32::MAX as u64,
            (_, false) => u64::MAX,
            (_, true) => i64::MAX as u64,
        }
    }

    /// A body with the field at its bound; none for a text of one form.
    pub(crate) fn at_bound(&self) -> Option<String> {
        let value = match self.kind() {
            "string" => json!("x".repeat(to_usize(self.number("maxLength")?))),
            "array" => self.list(self.number("maxItems")?),
            "integer" => json!(self.number("maximum").unwrap_or_else(|| self.widest())),
            _ => self.schema.get("maximum").cloned().unwrap_or(json!(f64::MAX)),
        };
        Some(self.body(value))
    }

    /// Bodies with the field past its bound.
    pub(crate) fn past_bound(&self) -> Vec<String> {
        let raw = |text: &str| self.body(json!(RAW)).replace(&format!("\"{RAW}\""), text);
        match self.kind() {
            "string" => {
                let longest = to_usize(self.number("maxLength").unwrap_or(64));
                vec![self.body(json!("x".repeat(longest + 1)))]
            }
            "array" => vec![self.body(self.list(self.number("maxItems").unwrap() + 1))],
            "integer" => {
                let most = self.number("maximum").unwrap_or_else(|| self.widest());
                vec![raw(&(u128::from(most) + 1).to_string()), raw("1e999")]
            }
            _ => {
                let most = self.schema.get("maximum").and_then(Value::as_f64);
                let past = most.map(|most| self.body(json!(most * 1.001)));
                past.into_iter().chain([raw("1e999")]).collect()
            }
        }
    }
}
