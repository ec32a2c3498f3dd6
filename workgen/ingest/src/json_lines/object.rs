//! One line as an object: its keys, and its values as the text that a CSV file would have.

use crate::fields::Need;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::{fmt, io::Write as _};

/// Words of Python's `json.dumps` that aren't those of JSON.
const NO_NUMBERS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// The value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A number, a word, a truth value; empty where it is null.
    Text(&'a [u8]),
    /// Several values in one, and what that is.
    Nested(&'static str),
}

/// Takes the members of an object in their order.
pub(super) trait Members {
    /// Takes the next key, and says the need of its value, which comes next unless nobody needs it.
    fn key(&mut self, key: &str) -> Need;
    /// Takes the value of the last key.
    fn value(&mut self, value: Value<'_>);
}

/// A line that is no object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Broken {
    /// The reason, for a message.
    pub(super) reason: String,
    /// Does the line end within the object?
    pub(super) is_cut: bool,
}

/// Reads a line; `text` is memory that is used again.
///
/// # Errors
/// The reason for which it is none. Some members may have been taken.
pub(super) fn read(
    line: &[u8],
    text: &mut Vec<u8>,
    members: &mut impl Members,
) -> Result<(), Broken> {
    let mut reader = serde_json::Deserializer::from_slice(line);
    let read = reader.deserialize_any(Object { text, members }).and_then(|()| reader.end());
    read.map_err(|error| Broken { reason: reason(&error, line), is_cut: error.is_eof() })
}

fn reason(error: &serde_json::Error, line: &[u8]) -> String {
    let why = error.to_string();
    // The reader knows one line alone.
    let why = why.split(" at line ").next().unwrap_or_default();
    let rest = error.column().checked_sub(1).and_then(|at| line.get(at..)).unwrap_or_default();
    if let Some(word) = NO_NUMBERS.iter().find(|word| rest.starts_with(word.as_bytes())) {
        return format!("`{word}` is no JSON, which has `null` for what is missing");
    }
    match error.column() {
        0 => why.to_owned(),
        column => format!("{why}, at character {column}"),
    }
}

/// Reads the whole line.
struct Object<'a, M> {
    text: &'a mut Vec<u8>,
    members: &'a mut M,
}

impl<'de, M: Members> Visitor<'de> for Object<'_, M> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object, `{\"column\": value, ...}`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(need) = map.next_key_seed(Key(self.members))? {
            match need {
                // Any number may be there, also one that is too large to be read.
                Need::Nothing => {
                    map.next_value::<IgnoredAny>()?;
                }
                Need::Value | Need::Label => {
                    map.next_value_seed(Member { text: self.text, members: self.members })?;
                }
            }
        }
        Ok(())
    }
}

/// Reads a key, without a copy of it where it has no escapes.
struct Key<'a, M>(&'a mut M);

impl<'de, M: Members> DeserializeSeed<'de> for Key<'_, M> {
    type Value = Need;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Need, D::Error> {
        from.deserialize_str(self)
    }
}

impl<M: Members> Visitor<'_> for Key<'_, M> {
    type Value = Need;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a name")
    }

    fn visit_str<E>(self, key: &str) -> Result<Need, E> {
        Ok(self.0.key(key))
    }
}

/// Reads the value of a key.
struct Member<'a, M> {
    text: &'a mut Vec<u8>,
    members: &'a mut M,
}

impl<M: Members> Member<'_, M> {
    fn number(self, number: impl fmt::Display) {
        self.text.clear();
        // Writing to memory doesn't fail.
        let _ = write!(self.text, "{number}");
        self.members.value(Value::Text(self.text));
    }
}

impl<'de, M: Members> DeserializeSeed<'de> for Member<'_, M> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de, M: Members> Visitor<'de> for Member<'_, M> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_bool<E>(self, truth: bool) -> Result<(), E> {
        self.members.value(Value::Text(if truth { b"true" } else { b"false" }));
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.number(number);
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.number(number);
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.number(number);
        Ok(())
    }

    fn visit_str<E>(self, word: &str) -> Result<(), E> {
        self.members.value(Value::Text(word.as_bytes()));
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.members.value(Value::Text(b""));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        while values.next_element::<IgnoredAny>()?.is_some() {}
        self.members.value(Value::Nested("lists"));
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        while values.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        self.members.value(Value::Nested("objects"));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Listed(Vec<String>);

    impl Members for Listed {
        fn key(&mut self, key: &str) -> Need {
            self.0.push(format!("{key}:"));
            if key.starts_with("no") { Need::Nothing } else { Need::Value }
        }

        fn value(&mut self, value: Value<'_>) {
            let text = match value {
                Value::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
                Value::Nested(what) => format!("<{what}>"),
            };
            *self.0.last_mut().unwrap() += &text;
        }
    }

    fn members(line: &str) -> Result<Vec<String>, String> {
        let mut listed = Listed::default();
        let read = read(line.as_bytes(), &mut Vec::new(), &mut listed);
        read.map(|()| listed.0).map_err(|broken| broken.reason)
    }

    #[test]
    fn values_are_the_text_that_a_csv_file_would_have() {
        let line = r#" {"a": 1, "b": -2.50, "c\"": "x, \"y\"\n", "d": null, "e": true, "f": 1e2, "g": 18446744073709551615} "#;
        let expected =
            ["a:1", "b:-2.5", "c\":x, \"y\"\n", "d:", "e:true", "f:100", "g:18446744073709551615"];
        assert_eq!(members(line).unwrap(), expected);
        let nested = r#"{"a": [1, [2]], "b": {"c": {}}, "d": 0.1}"#;
        assert_eq!(members(nested).unwrap(), ["a:<lists>", "b:<objects>", "d:0.1"]);
        assert_eq!(members("{}").unwrap(), [""; 0]);
        let unneeded = r#"{"no": 1e999, "none": [1e999], "nothing": {"a": -1e999}, "a": 1}"#;
        assert_eq!(members(unneeded).unwrap(), ["no:", "none:", "nothing:", "a:1"]);
    }

    #[test]
    fn a_line_that_is_no_object_is_told() {
        for (line, why) in [
            ("[1, 2]", "invalid type: sequence, expected an object, `{\"column\": value, ...}`"),
            ("3", "invalid type: integer `3`, expected an object"),
            ("{\"a\": NaN}", "`NaN` is no JSON, which has `null` for what is missing"),
            ("{\"a\": nil}", "expected ident, at character 8"),
            ("{\"a\": 1", "EOF while parsing an object, at character 7"),
            ("{\"a\": 1} {", "trailing characters, at character 10"),
            ("{\"a\": 1e999}", "number out of range"),
            ("{a: 1}", "key must be a string, at character 2"),
        ] {
            let told = members(line).unwrap_err();
            assert!(told.starts_with(why), "{line}: {told}");
        }
    }
}
