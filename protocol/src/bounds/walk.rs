//! Goes through a value as it would be written, and compares each field with the table.
//!
//! Nothing is written. Serde's derived code says the names of types and fields, so that no type needs code of its own here.

use super::{
    OutOfBounds,
    table::{Bound, Leaf},
};
use crate::text::{MAX_NAME_CHARS, is_plain_line, is_plain_name};
use serde::ser::{
    self, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use std::fmt::{Display, Write as _};

/// Characters of an untrusted text that a message repeats.
const QUOTED_CHARS: usize = 40;

/// Checks a value.
pub(super) fn check<T: Serialize>(value: &T) -> Result<(), OutOfBounds> {
    let mut path = Vec::new();
    value.serialize(Walk { path: &mut path, owner: "", bound: Bound::OTHER, depth: 0 })
}

/// A step on the way to a value.
enum Step {
    Field(&'static str),
    Entry(usize),
}

/// At one value: how it was reached, and its bound.
struct Walk<'a> {
    path: &'a mut Vec<Step>,
    /// The type whose fields or variants come next.
    owner: &'static str,
    bound: Bound,
    /// Lists around it that belong to the same field.
    depth: usize,
}

impl ser::Error for OutOfBounds {
    fn custom<T: Display>(why: T) -> Self {
        Self::Unwritten { at: String::new(), why: why.to_string() }
    }
}

fn at(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        // Writing to a text doesn't fail.
        let _ = match step {
            Step::Field(name) if text.is_empty() => write!(text, "{name}"),
            Step::Field(name) => write!(text, ".{name}"),
            Step::Entry(number) => write!(text, "[{number}]"),
        };
    }
    text
}

impl Walk<'_> {
    /// Checks a number that isn't below zero.
    fn whole(&self, is: u64) -> Result<(), OutOfBounds> {
        match self.bound.leaf {
            Leaf::Whole(most) if is > most => {
                Err(OutOfBounds::Whole { at: at(self.path), is, most })
            }
            _ => self.between(i128::from(is)),
        }
    }

    fn between(&self, is: i128) -> Result<(), OutOfBounds> {
        match self.bound.leaf {
            Leaf::Between(least, most) if !(i128::from(least)..=i128::from(most)).contains(&is) => {
                Err(OutOfBounds::Between { at: at(self.path), is, least, most })
            }
            _ => Ok(()),
        }
    }

    fn real(&self, is: f64) -> Result<(), OutOfBounds> {
        match self.bound.leaf {
            Leaf::Real(most) if !(0.0..=most).contains(&is) => {
                Err(OutOfBounds::Real { at: at(self.path), is, least: 0.0, most })
            }
            _ => Ok(()),
        }
    }

    fn text(&self, text: &str) -> Result<(), OutOfBounds> {
        let most = match self.bound.leaf {
            Leaf::Line(most) if is_plain_line(text, most) => return Ok(()),
            Leaf::Name(most) if is_plain_name(text, most) => return Ok(()),
            Leaf::Name(most) if is_plain_line(text, most) => {
                let begins = text.escape_debug().take(QUOTED_CHARS).collect();
                return Err(OutOfBounds::Name { at: at(self.path), begins });
            }
            Leaf::Line(most) | Leaf::Name(most) => {
                let begins = text.escape_debug().take(QUOTED_CHARS).collect();
                return Err(OutOfBounds::Line { at: at(self.path), begins, most });
            }
            Leaf::Text(most) => most,
            Leaf::Typed | Leaf::Whole(_) | Leaf::Between(..) | Leaf::Real(_) => MAX_NAME_CHARS,
        };
        // No text has more characters than bytes.
        let is = if text.len() <= most { 0 } else { text.chars().count() };
        if is <= most {
            return Ok(());
        }
        Err(OutOfBounds::Characters { at: at(self.path), is, most })
    }

    fn entries(&self, is: Option<usize>) -> Result<(), OutOfBounds> {
        let (is, most) = (is.unwrap_or_default(), self.bound.entries(self.depth));
        if is <= most {
            return Ok(());
        }
        Err(OutOfBounds::Entries { at: at(self.path), is, most })
    }

    /// Checks what lies a step further.
    fn child<T: Serialize + ?Sized>(
        &mut self,
        step: Step,
        bound: Bound,
        depth: usize,
        value: &T,
    ) -> Result<(), OutOfBounds> {
        self.path.push(step);
        let checked = value.serialize(Walk { path: self.path, owner: "", bound, depth });
        self.path.pop();
        checked
    }

    fn field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), OutOfBounds> {
        let bound = Bound::of(self.owner, name);
        self.child(Step::Field(name), bound, 0, value)
    }
}

/// The entries of a list, a tuple or a map.
struct Entries<'a> {
    walk: Walk<'a>,
    next: usize,
    /// Lists around the entries that belong to the same field; a tuple doesn't count as a list.
    depth: usize,
}

impl<'a> Entries<'a> {
    fn of(walk: Walk<'a>, in_list: usize) -> Self {
        let depth = walk.depth.saturating_add(in_list);
        Self { walk, next: 0, depth }
    }

    fn entry<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), OutOfBounds> {
        let step = Step::Entry(self.next);
        self.next = self.next.saturating_add(1);
        self.walk.child(step, self.walk.bound, self.depth, value)
    }
}

macro_rules! whole_numbers {
    ($($method:ident: $type:ty),*) => {$(
        fn $method(self, value: $type) -> Result<(), OutOfBounds> {
            self.whole(u64::from(value))
        }
    )*};
}

/// Checks of signed numbers: those below zero are bounded by their types, but where the table names the least.
macro_rules! signed_numbers {
    ($($method:ident: $type:ty),*) => {$(
        fn $method(self, value: $type) -> Result<(), OutOfBounds> {
            let below_zero = || self.between(i128::from(value));
            u64::try_from(value).map_or_else(|_| below_zero(), |value| self.whole(value))
        }
    )*};
}

impl<'a> Serializer for Walk<'a> {
    type Ok = ();
    type Error = OutOfBounds;
    type SerializeSeq = Entries<'a>;
    type SerializeTuple = Entries<'a>;
    type SerializeTupleStruct = Entries<'a>;
    type SerializeTupleVariant = Entries<'a>;
    type SerializeMap = Entries<'a>;
    type SerializeStruct = Walk<'a>;
    type SerializeStructVariant = Walk<'a>;

    whole_numbers!(serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64);
    signed_numbers!(serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64);

    fn serialize_bool(self, _: bool) -> Result<(), OutOfBounds> {
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), OutOfBounds> {
        self.real(f64::from(value))
    }

    fn serialize_f64(self, value: f64) -> Result<(), OutOfBounds> {
        self.real(value)
    }

    fn serialize_char(self, _: char) -> Result<(), OutOfBounds> {
        Ok(())
    }

    fn serialize_str(self, value: &str) -> Result<(), OutOfBounds> {
        self.text(value)
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), OutOfBounds> {
        self.entries(Some(value.len()))
    }

    fn serialize_none(self) -> Result<(), OutOfBounds> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), OutOfBounds> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), OutOfBounds> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), OutOfBounds> {
        Ok(())
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
    ) -> Result<(), OutOfBounds> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), OutOfBounds> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), OutOfBounds> {
        self.owner = name;
        self.field(variant, value)
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Entries<'a>, OutOfBounds> {
        self.entries(len)?;
        Ok(Entries::of(self, 1))
    }

    fn serialize_tuple(self, _: usize) -> Result<Entries<'a>, OutOfBounds> {
        Ok(Entries::of(self, 0))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Entries<'a>, OutOfBounds> {
        Ok(Entries::of(self, 0))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Entries<'a>, OutOfBounds> {
        Ok(Entries::of(self, 0))
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Entries<'a>, OutOfBounds> {
        self.entries(len)?;
        Ok(Entries::of(self, 1))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Walk<'a>, OutOfBounds> {
        Ok(Walk { owner: name, ..self })
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Walk<'a>, OutOfBounds> {
        Ok(Walk { owner: name, ..self })
    }
}

macro_rules! entries_of {
    ($($kind:ident $method:ident),*) => {$(
        impl $kind for Entries<'_> {
            type Ok = ();
            type Error = OutOfBounds;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), OutOfBounds> {
                self.entry(value)
            }

            fn end(self) -> Result<(), OutOfBounds> {
                Ok(())
            }
        }
    )*};
}

entries_of!(
    SerializeSeq serialize_element, SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field, SerializeTupleVariant serialize_field
);

impl SerializeMap for Entries<'_> {
    type Ok = ();
    type Error = OutOfBounds;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), OutOfBounds> {
        let step = Step::Entry(self.next);
        self.walk.child(step, Bound::OTHER, 0, key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), OutOfBounds> {
        self.entry(value)
    }

    fn end(self) -> Result<(), OutOfBounds> {
        Ok(())
    }
}

macro_rules! fields_of {
    ($($kind:ident),*) => {$(
        impl $kind for Walk<'_> {
            type Ok = ();
            type Error = OutOfBounds;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), OutOfBounds> {
                self.field(name, value)
            }

            fn end(self) -> Result<(), OutOfBounds> {
                Ok(())
            }
        }
    )*};
}

fields_of!(SerializeStruct, SerializeStructVariant);
