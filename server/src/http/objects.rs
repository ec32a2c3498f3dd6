//! Reads structs from objects alone. Serde's derived code takes a list for a struct too, its entries as fields in their order:
//! `[false]` for `{"now": false}`. No document describes that, and a new field would change what such a list means.

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};
use std::fmt;

/// A source of values, in which each struct is an object.
pub(super) struct Objects<D>(pub(super) D);

/// Takes values for the visitor of a type, which is a struct or isn't.
struct Taker<V> {
    visitor: V,
    is_struct: bool,
}

/// A reader of a value within another.
struct Within<S>(S);

/// Access to what is within a value.
struct Access<A>(A);

fn other<V>(visitor: V) -> Taker<V> {
    Taker { visitor, is_struct: false }
}

macro_rules! forward {
    ($($name:ident($($argument:ident: $kind:ty),*);)+) => {
        $(fn $name<V: Visitor<'de>>(self, $($argument: $kind,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$name($($argument,)* other(visitor))
        })+
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Objects<D> {
    type Error = D::Error;

    forward! {
        deserialize_any(); deserialize_bool(); deserialize_i8(); deserialize_i16(); deserialize_i32();
        deserialize_i64(); deserialize_i128(); deserialize_u8(); deserialize_u16(); deserialize_u32();
        deserialize_u64(); deserialize_u128(); deserialize_f32(); deserialize_f64();
        deserialize_char(); deserialize_str(); deserialize_string(); deserialize_bytes();
        deserialize_byte_buf(); deserialize_option(); deserialize_unit(); deserialize_seq();
        deserialize_map(); deserialize_identifier(); deserialize_ignored_any();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_tuple(entries: usize);
        deserialize_tuple_struct(name: &'static str, entries: usize);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, Taker { visitor, is_struct: true })
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! take {
    ($($name:ident: $kind:ty;)+) => {
        $(fn $name<E: Error>(self, value: $kind) -> Result<V::Value, E> {
            self.visitor.$name(value)
        })+
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Taker<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    take! {
        visit_bool: bool; visit_i64: i64; visit_i128: i128; visit_u64: u64; visit_u128: u128;
        visit_f64: f64; visit_char: char; visit_str: &str; visit_borrowed_str: &'de str;
        visit_string: String; visit_bytes: &[u8]; visit_byte_buf: Vec<u8>;
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(Objects(value))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_newtype_struct(Objects(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        if self.is_struct {
            return Err(A::Error::invalid_type(Unexpected::Seq, &self.visitor));
        }
        self.visitor.visit_seq(Access(entries))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(Access(entries))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, form: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_enum(Access(form))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Within<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Objects(value))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Access<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Within(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Access<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Within(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Access<A> {
    type Error = A::Error;
    type Variant = Access<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let (name, fields) = self.0.variant_seed(seed)?;
        Ok((name, Access(fields)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Access<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Within(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        entries: usize,
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(entries, other(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Taker { visitor, is_struct: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeOwned;
    use sojourn_protocol::{
        api::{PauseRequest, RollbackRequest, SubmitRequest},
        inventory::Inventory,
    };

    fn read<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
        T::deserialize(Objects(&mut serde_json::Deserializer::from_str(text)))
    }

    #[test]
    fn a_list_is_no_struct_wherever_it_is() {
        assert!(read::<PauseRequest>(r#"{"now": false}"#).is_ok());
        let lists = ["[false]", "[]"].map(read::<PauseRequest>);
        assert!(lists.iter().all(Result::is_err));
        let of_trial = |text: &str| read::<RollbackRequest>(&format!(r#"{{"trial": {text}}}"#));
        assert!(of_trial(r#"{"trial": 3, "epochs": 2}"#).is_ok());
        let error = of_trial("[3, 2]").unwrap_err().to_string();
        assert!(error.starts_with("invalid type: sequence, expected struct"), "{error}");
        let links = r#"{"cached": [], "client": "x", "devices": [], "links": []}"#;
        assert!(serde_json::from_str::<Inventory>(links).is_ok(), "serde takes it");
        assert!(read::<Inventory>(links).is_err());
    }

    #[test]
    fn a_value_of_every_form_is_read_as_serde_reads_it() {
        let examples = include_str!("openapi/examples.json");
        let examples: serde_json::Value = serde_json::from_str(examples).unwrap();
        let text = examples["SubmitRequest"].to_string();
        let whole: SubmitRequest = serde_json::from_str(&text).unwrap();
        assert_eq!(read::<SubmitRequest>(&text).unwrap(), whole);
    }
}
