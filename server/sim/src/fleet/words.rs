//! Complaints about a file's text, in the words of scenario files.

use sojourn_forms::suggestion;
use std::collections::BTreeSet;

/// The messages of `serde` and the reader of TOML, in the words of scenario files: with the nearest known word for an
/// unknown one, and without Rust's types.
pub(super) fn hint(message: &str) -> String {
    let message = message.trim();
    if !message.starts_with("unknown ") {
        return in_plain_words(message);
    }
    let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let Some((word, known)) = words.split_first() else { return message.to_owned() };
    let kind = if message.starts_with("unknown variant") { "value" } else { "key" };
    unknown(kind, word, known.iter().copied())
}

/// An unknown word, with the nearest known one, or all where none is near.
pub(super) fn unknown<'a>(kind: &str, word: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known = Vec::from_iter(known.collect::<BTreeSet<&str>>());
    let hint = suggestion(word, known.iter().copied(), || None, &known);
    format!("`{word}` is no known {kind}; {hint}")
}

fn in_plain_words(message: &str) -> String {
    if message.ends_with("expected `,`") {
        return "a `,` is missing between two values, or between two keys of `{ ... }`".into();
    }
    if message.starts_with("string values must be quoted") {
        return "texts stand in quotes, and values of a list have a `,` between them".into();
    }
    if let Some((number, _)) = message.split_once(" as i128") {
        return format!("{number} is too large for a whole number");
    }
    match message.split_once("expected ") {
        Some((found, "u32")) => format!("{found}a whole number from 0 to 4,294,967,295 is wanted"),
        Some((found, "u64")) => format!("{found}a whole number from 0 is wanted"),
        Some((found, "f64")) => format!("{found}a number is wanted"),
        Some((found, what)) if what.starts_with("struct ") => {
            format!("{found}a table of keys is wanted, like `{{ key = value }}`")
        }
        _ => message.to_owned(),
    }
}
