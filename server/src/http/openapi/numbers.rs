//! Bounds whole numbers by their format, where the table of bounds says nothing narrower: readers of the document needn't know formats.

use serde_json::{Value, json};

/// Formats of whole numbers, with the least and the greatest of each.
const FORMATS: [(&str, i64, u64); 7] = [
    ("uint8", 0, 255),
    ("uint16", 0, 65_535),
    ("uint32", 0, 4_294_967_295),
    ("uint64", 0, u64::MAX),
    ("int16", -32_768, 32_767),
    ("int32", -2_147_483_648, 2_147_483_647),
    ("int64", i64::MIN, i64::MAX.unsigned_abs()),
];

/// Bounds each whole number of the document.
pub(super) fn bound(value: &mut Value) {
    match value {
        Value::Object(object) => {
            // `utoipa` writes `u-int32`; the registry of formats has `uint32`.
            let format = object.get("format").and_then(Value::as_str);
            if let Some(format) = format.and_then(|format| format.strip_prefix("u-")) {
                object.insert("format".to_owned(), json!(format!("u{format}")));
            }
            let format = object.get("format").and_then(Value::as_str);
            let known = FORMATS.iter().find(|(name, ..)| Some(*name) == format);
            if let Some((_, least, most)) = known {
                object.entry("minimum").or_insert_with(|| json!(least));
                object.entry("maximum").or_insert_with(|| json!(most));
            }
            object.values_mut().for_each(bound);
        }
        Value::Array(values) => values.iter_mut().for_each(bound),
        _ => {}
    }
}
