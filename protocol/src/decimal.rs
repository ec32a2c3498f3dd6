//! Whole numbers of 64 bits in JSON: as numbers in what is stored and in what older programs read, as decimal text in what
//! programs of others read.
//!
//! JavaScript, and many readers of JSON in Java, keep 53 bits of a number. A seed with more becomes another seed there, and
//! nothing says so. So the answers of `/v1` to users have such numbers as text. Both forms are read everywhere.
//!
//! A field is marked with `#[serde(with = "crate::decimal")]`, or with one of the modules below. It is written as a number
//! unless [`as_text`] is around its serialisation: a journal, a digest and a trainer's lines keep their bytes.
//!
//! ```
//! use sojourn_protocol::{decimal, unit::Base};
//!
//! let base = Base::Initial { seed: u64::MAX };
//! let number = serde_json::to_string(&base).unwrap();
//! assert_eq!(number, r#"{"initial":{"seed":18446744073709551615}}"#);
//! let text = decimal::as_text(|| serde_json::to_string(&base)).unwrap();
//! assert_eq!(text, r#"{"initial":{"seed":"18446744073709551615"}}"#);
//! assert_eq!(serde_json::from_str::<Base>(&text).unwrap(), serde_json::from_str(&number).unwrap());
//! ```

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Unexpected, Visitor},
};
use std::{cell::Cell, fmt};

thread_local! {
    /// Whether this thread writes such numbers as text just now.
    static AS_TEXT: Cell<bool> = const { Cell::new(false) };
}

/// Has the marked numbers written as text while this runs, on this thread.
pub fn as_text<T>(write: impl FnOnce() -> T) -> T {
    /// Puts the former state back, also where `write` panics.
    struct Former(bool);
    impl Drop for Former {
        fn drop(&mut self) {
            AS_TEXT.set(self.0);
        }
    }
    let _former = Former(AS_TEXT.replace(true));
    write()
}

/// A number as it is written and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal(u64);

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if AS_TEXT.get() {
            serializer.collect_str(&self.0)
        } else {
            serializer.serialize_u64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Digits).map(Self)
    }
}

/// The number that a text of decimal digits alone stands for.
fn parse(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

struct Digits;

impl Visitor<'_> for Digits {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0 to 18446744073709551615, also as decimal text")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
        u64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// Writes a number.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    Decimal(*number).serialize(serializer)
}

/// Reads a number in either form.
///
/// # Errors
/// Where it is something else.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Decimal::deserialize(deserializer).map(|Decimal(number)| number)
}

/// A number that may be missing.
pub mod optional {
    use super::Decimal;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    /// Writes it.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(
        number: &Option<u64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        number.map(Decimal).serialize(serializer)
    }

    /// Reads it in either form.
    ///
    /// # Errors
    /// Where it is something else.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<u64>, D::Error> {
        let number = Option::<Decimal>::deserialize(deserializer)?;
        Ok(number.map(|Decimal(number)| number))
    }
}

/// A list of numbers.
pub mod list {
    use super::Decimal;
    use serde::{Deserialize as _, Deserializer, Serializer};

    /// Writes it.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(numbers: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(numbers.iter().copied().map(Decimal))
    }

    /// Reads it, each number in either form.
    ///
    /// # Errors
    /// Where it is something else.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
        let numbers = Vec::<Decimal>::deserialize(deserializer)?;
        Ok(numbers.into_iter().map(|Decimal(number)| number).collect())
    }
}

/// Values that a search chose, by name: the one of the name `seed` is such a number.
pub mod choices {
    use super::{Decimal, parse};
    use crate::spec::Choices;
    use serde::{Deserialize as _, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    /// The dimension of a search whose values are seeds.
    const SEED: &str = "seed";

    /// A value as it is written.
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Written<'a> {
        Seed(Decimal),
        Other(&'a Value),
    }

    /// Writes them.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(choices: &Choices, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(choices.iter().map(|(name, value)| {
            let seed = value.as_u64().filter(|_| name == SEED);
            (name, seed.map_or(Written::Other(value), |seed| Written::Seed(Decimal(seed))))
        }))
    }

    /// Reads them, a seed in either form.
    ///
    /// # Errors
    /// Where they are something else.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Choices, D::Error> {
        let mut choices = Choices::deserialize(deserializer)?;
        if let Some(value) = choices.get_mut(SEED)
            && let Some(seed) = value.as_str().and_then(parse)
        {
            *value = seed.into();
        }
        Ok(choices)
    }
}

#[cfg(feature = "openapi")]
mod schema {
    use std::borrow::Cow;
    use utoipa::{
        PartialSchema, ToSchema,
        openapi::{ObjectBuilder, OneOfBuilder, RefOr, Schema, SchemaFormat, Type},
    };

    /// The schema of the marked numbers.
    #[derive(Debug)]
    pub struct Seed;

    impl PartialSchema for Seed {
        fn schema() -> RefOr<Schema> {
            let text = ObjectBuilder::new()
                .schema_type(Type::String)
                .pattern(Some("^[0-9]{1,20}$"))
                .description(Some("Its decimal digits."));
            let number = ObjectBuilder::new()
                .schema_type(Type::Integer)
                .format(Some(SchemaFormat::Custom("uint64".to_owned())))
                .minimum(Some(0))
                .description(Some("The number itself."));
            let both = OneOfBuilder::new().item(text).item(number).description(Some(
                "A whole number from 0 to 18446744073709551615. Answers to users have its decimal digits as text, since many \
                 readers of JSON keep 53 bits of a number. Leases and assimilation units have the number, unless the \
                 caller's `sojourn-features` names `decimal-seeds`. Requests may have either.",
            ));
            both.into()
        }
    }

    impl ToSchema for Seed {
        fn name() -> Cow<'static, str> {
            "Seed".into()
        }
    }
}

#[cfg(feature = "openapi")]
pub use schema::Seed;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct All {
        #[serde(with = "super")]
        one: u64,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "optional")]
        perhaps: Option<u64>,
        #[serde(with = "list")]
        many: Vec<u64>,
        #[serde(with = "choices")]
        chosen: crate::spec::Choices,
    }

    fn all() -> All {
        let chosen = [("lr".to_owned(), json!(0.5)), ("seed".to_owned(), json!(u64::MAX))];
        All { one: u64::MAX, perhaps: Some(1), many: vec![0, 1 << 60], chosen: chosen.into() }
    }

    #[test]
    fn numbers_are_numbers_and_within_as_text_they_are_text() {
        let number = serde_json::to_value(all()).unwrap();
        let many = [0_u64, 1 << 60];
        let chosen = json!({ "lr": 0.5, "seed": u64::MAX });
        assert_eq!(
            number,
            json!({ "one": u64::MAX, "perhaps": 1, "many": many, "chosen": chosen })
        );
        let text = as_text(|| serde_json::to_value(all())).unwrap();
        let (most, many) = (u64::MAX.to_string(), ["0".to_owned(), (1_u64 << 60).to_string()]);
        let chosen = json!({ "lr": 0.5, "seed": most });
        assert_eq!(text, json!({ "one": most, "perhaps": "1", "many": many, "chosen": chosen }));
        for written in [number, text] {
            assert_eq!(serde_json::from_value::<All>(written).unwrap(), all());
        }
        assert_eq!(serde_json::to_value(Decimal(7)).unwrap(), json!(7), "the scope has ended");
    }

    #[test]
    fn a_missing_number_stays_missing() {
        let all: All =
            serde_json::from_value(json!({ "one": 1, "many": [], "chosen": {} })).unwrap();
        assert_eq!(all.perhaps, None);
        let written = as_text(|| serde_json::to_value(&all)).unwrap();
        assert_eq!(written, json!({ "one": "1", "many": [], "chosen": {} }));
    }

    #[test]
    fn anything_but_a_whole_number_of_64_bits_is_refused() {
        for wrong in [
            json!(-1),
            json!(1.5),
            json!(""),
            json!("+1"),
            json!("1e3"),
            json!("18446744073709551616"),
        ] {
            assert!(serde_json::from_value::<Decimal>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
