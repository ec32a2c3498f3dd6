//! Files of vectors: indented JSON, in which a list of plain values stands on one line.

use serde_json::Value;
use sojourn_protocol::{
    manifest::{Scaling, Targets},
    spec::{Architecture, Loss, Optimizer, TrainingConfig, TrialConfig},
    unit::TrialContext,
};

/// Compares `content` with the file of this name, or writes the file where that is asked for.
#[expect(clippy::disallowed_methods, reason = "a file is written where that is asked for")]
pub(crate) fn compare(name: &str, content: &Value) {
    let text = layout(content, 0) + "\n";
    let path = format!("{}/../vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    if is_recording() {
        std::fs::write(&path, &text).unwrap();
    }
    let recorded = std::fs::read_to_string(&path).unwrap();
    let line = text.lines().zip(recorded.lines()).find(|(ours, theirs)| ours != theirs);
    assert!(text == recorded, "{name} has another content: {line:?}");
}

/// The file of this name as it is.
pub(crate) fn recorded(name: &str) -> Value {
    let path = format!("{}/../vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Are the files to be written?
#[expect(clippy::disallowed_methods, reason = "recording is asked for by a variable")]
pub(crate) fn is_recording() -> bool {
    std::env::var_os("SOJOURN_GOLDEN").is_some_and(|value| value == "record")
}

/// The longest line that several values share.
const LINE: usize = 120;

fn layout(value: &Value, depth: usize) -> String {
    let is_nested = |value: &Value| value.is_object() || value.is_array();
    let is_plain_list = value.as_array().is_some_and(|values| !values.iter().any(is_nested));
    let line = on_one_line(value);
    if is_plain_list || 2 * depth + line.len() <= LINE {
        return line;
    }
    let (outer, inner) = ("  ".repeat(depth), "  ".repeat(depth + 1));
    match value {
        Value::Object(entries) => {
            let entry = |(key, value): (&String, &Value)| {
                format!("{inner}{}: {}", Value::from(key.as_str()), layout(value, depth + 1))
            };
            format!("{{\n{}\n{outer}}}", entries.iter().map(entry).collect::<Vec<_>>().join(",\n"))
        }
        Value::Array(values) => {
            let value = |value: &Value| inner.clone() + &layout(value, depth + 1);
            format!("[\n{}\n{outer}]", values.iter().map(value).collect::<Vec<_>>().join(",\n"))
        }
        plain => plain.to_string(),
    }
}

fn on_one_line(value: &Value) -> String {
    match value {
        Value::Object(entries) => {
            let entry = |(key, value): (&String, &Value)| {
                format!("{}: {}", Value::from(key.as_str()), on_one_line(value))
            };
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        Value::Array(values) => {
            format!("[{}]", values.iter().map(on_one_line).collect::<Vec<_>>().join(", "))
        }
        plain => plain.to_string(),
    }
}

/// Bytes as lowercase hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of single-precision numbers as hex, little-endian.
pub(crate) fn hex_of(numbers: &[f32]) -> String {
    hex(&numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>())
}

/// A trial of this model, over rows of this shape with two classes.
pub(crate) fn context(model: Architecture, shape: &[u32], optimizer: Optimizer) -> TrialContext {
    let training = TrainingConfig::new(1, 8, Loss::CrossEntropy, optimizer);
    TrialContext {
        config: TrialConfig { model, training },
        columns: Vec::new(),
        shape: shape.to_vec(),
        outputs: 2,
        scaling: Scaling::None,
        targets: Targets::Plain,
        total_steps: 10,
        pinned_threads: None,
    }
}
