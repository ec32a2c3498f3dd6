//! The message `tf.train.Example`: features by name, each a list of texts, of floats or of whole numbers.
//!
//! Source: `tensorflow/core/example/feature.proto` and `example.proto`.
//!
//! ```text
//! Example { features = 1: Features { feature = 1: { key = 1, value = 2: Feature } ... } }
//! Feature { bytes_list = 1 | float_list = 2 | int64_list = 3: { value = 1 ... } }
//! ```

use super::wire::{Broken, Fields, Value, array, varint};
use std::str;

/// Longest name of a feature, in bytes.
const MAX_NAME: usize = 1024;

/// Why a record is no example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoExample(pub(super) &'static str);

impl From<Broken> for NoExample {
    fn from(_: Broken) -> Self {
        NoExample("its bytes are no message of protocol buffers, or are cut off")
    }
}

/// An element of a list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Element<'a> {
    Bytes(&'a [u8]),
    Float(f32),
    Whole(i64),
}

/// The list that a feature is.
#[derive(Debug, Clone, Copy)]
pub(super) struct List<'a> {
    kind: u64,
    values: Fields<'a>,
}

const BYTES: u64 = 1;
const FLOATS: u64 = 2;
const WHOLE: u64 = 3;

/// Reads a record to its end.
pub(super) fn check(record: &[u8]) -> Result<(), NoExample> {
    each_feature(record, |_, list| list.each(|_, _| {}).map(drop))
}

/// Calls `take` with each feature of a record.
pub(super) fn each_feature<'a>(
    record: &'a [u8],
    mut take: impl FnMut(&'a str, List<'a>) -> Result<(), NoExample>,
) -> Result<(), NoExample> {
    for field in Fields(record) {
        let (1, Value::Bytes(features)) = field? else { continue };
        for field in Fields(features) {
            let (1, Value::Bytes(entry)) = field? else { continue };
            let (name, list) = named(entry)?;
            take(name, list)?;
        }
    }
    Ok(())
}

/// A feature and its name.
fn named(entry: &[u8]) -> Result<(&str, List<'_>), NoExample> {
    let (mut name, mut feature) = (&[][..], &[][..]);
    for field in Fields(entry) {
        match field? {
            (1, Value::Bytes(bytes)) => name = bytes,
            (2, Value::Bytes(bytes)) => feature = bytes,
            _ => {}
        }
    }
    if name.len() > MAX_NAME {
        return Err(NoExample("the name of a feature has over 1024 bytes"));
    }
    let name = str::from_utf8(name).map_err(|_| NoExample("the name of a feature isn't UTF-8"))?;
    if name.is_empty() {
        return Err(NoExample("a feature has no name"));
    }
    let mut list = None;
    for field in Fields(feature) {
        let (kind @ (BYTES | FLOATS | WHOLE), Value::Bytes(values)) = field? else { continue };
        if list.replace(List { kind, values: Fields(values) }).is_some() {
            return Err(NoExample("a feature has two lists"));
        }
    }
    Ok((name, list.unwrap_or(List { kind: BYTES, values: Fields(&[]) })))
}

impl<'a> List<'a> {
    /// Calls `take` with each element, and returns how many there are.
    pub(super) fn each(self, mut take: impl FnMut(usize, Element<'a>)) -> Result<usize, NoExample> {
        let mut count = 0;
        let mut next = |element| {
            take(count, element);
            count += 1;
        };
        for field in self.values {
            let (1, value) = field? else { continue };
            match (self.kind, value) {
                (BYTES, Value::Bytes(bytes)) => next(Element::Bytes(bytes)),
                (FLOATS, Value::Four(bytes)) => next(Element::Float(f32::from_le_bytes(bytes))),
                (FLOATS, Value::Bytes(mut packed)) => {
                    while !packed.is_empty() {
                        next(Element::Float(f32::from_le_bytes(array(&mut packed)?)));
                    }
                }
                (WHOLE, Value::Varint(number)) => next(Element::Whole(number.cast_signed())),
                (WHOLE, Value::Bytes(mut packed)) => {
                    while !packed.is_empty() {
                        next(Element::Whole(varint(&mut packed)?.cast_signed()));
                    }
                }
                _ => return Err(NoExample("a list has elements of another type")),
            }
        }
        Ok(count)
    }
}
