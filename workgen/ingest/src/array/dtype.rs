//! Element types, and numbers and labels out of their bytes.

use crate::{error::Problem, number::shown, table::Element};
use half::{bf16, f16};
use sojourn_protocol::quantity::to_usize;
use std::io::Write;

/// The type of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dtype {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    Bf16,
    F32,
    F64,
    /// This many bytes of text, filled up with zeros.
    Text(u32),
    /// This many characters, four bytes each, filled up with zeros.
    Utf32(u32),
}

impl Dtype {
    /// Bytes of an element.
    pub(super) fn bytes(self) -> u64 {
        match self {
            Dtype::Bool | Dtype::U8 | Dtype::I8 => 1,
            Dtype::U16 | Dtype::I16 | Dtype::F16 | Dtype::Bf16 => 2,
            Dtype::U32 | Dtype::I32 | Dtype::F32 => 4,
            Dtype::U64 | Dtype::I64 | Dtype::F64 => 8,
            Dtype::Text(bytes) => u64::from(bytes),
            Dtype::Utf32(characters) => 4 * u64::from(characters),
        }
    }

    /// How shards keep features of this type.
    pub(super) const fn element(self) -> Element {
        match self {
            Dtype::Bool | Dtype::U8 => Element::Byte,
            _ => Element::Single,
        }
    }
}

/// How elements are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Encoding {
    pub(super) dtype: Dtype,
    pub(super) is_big_endian: bool,
}

impl Encoding {
    /// Decodes `bytes` to single precision and appends the numbers to `into`.
    ///
    /// # Errors
    /// The first number that single precision can't hold, with its index.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "features are single precision, whatever they were before"
    )]
    pub(super) fn numbers(self, bytes: &[u8], into: &mut Vec<f32>) -> Result<(), (usize, Problem)> {
        let before = into.len();
        let big = self.is_big_endian;
        match self.dtype {
            Dtype::Bool => into.extend(bytes.iter().map(|byte| f32::from(u8::from(*byte != 0)))),
            Dtype::U8 => into.extend(bytes.iter().map(|byte| f32::from(*byte))),
            Dtype::I8 => into.extend(bytes.iter().map(|byte| f32::from(byte.cast_signed()))),
            Dtype::U16 => each(bytes, big, into, |b| f32::from(u16::from_le_bytes(b))),
            Dtype::I16 => each(bytes, big, into, |b| f32::from(i16::from_le_bytes(b))),
            Dtype::U32 => each(bytes, big, into, |b| u32::from_le_bytes(b) as f32),
            Dtype::I32 => each(bytes, big, into, |b| i32::from_le_bytes(b) as f32),
            Dtype::U64 => each(bytes, big, into, |b| u64::from_le_bytes(b) as f32),
            Dtype::I64 => each(bytes, big, into, |b| i64::from_le_bytes(b) as f32),
            Dtype::F16 => each(bytes, big, into, |b| f16::from_le_bytes(b).to_f32()),
            Dtype::Bf16 => each(bytes, big, into, |b| bf16::from_le_bytes(b).to_f32()),
            Dtype::F32 => each(bytes, big, into, f32::from_le_bytes),
            Dtype::F64 => each(bytes, big, into, |b| f64::from_le_bytes(b) as f32),
            Dtype::Text(_) | Dtype::Utf32(_) => return Err((0, Problem::TextFeatures)),
        }
        let added = into.get(before..).unwrap_or_default();
        match added.iter().position(|number| !number.is_finite()) {
            None => Ok(()),
            Some(index) => Err((index, self.not_finite(bytes, index))),
        }
    }

    /// The problem of the element at `index`, which is no finite number in single precision.
    fn not_finite(self, bytes: &[u8], index: usize) -> Problem {
        let size = to_usize(self.dtype.bytes());
        let mut text = Vec::new();
        let element = bytes.chunks_exact(size).nth(index).unwrap_or_default();
        match self.label(element, &mut text) {
            Err(problem) => problem,
            Ok(()) => Problem::TooLarge(shown(&text)),
        }
    }

    /// One element as text, as a CSV file would have it: whole numbers without a point.
    ///
    /// # Errors
    /// A number that isn't finite; text that isn't any.
    pub(super) fn label(self, bytes: &[u8], into: &mut Vec<u8>) -> Result<(), Problem> {
        into.clear();
        let big = self.is_big_endian;
        match self.dtype {
            Dtype::Bool => whole(into, u8::from(one::<1>(bytes, big) != [0])),
            Dtype::U8 => whole(into, u8::from_le_bytes(one(bytes, big))),
            Dtype::I8 => whole(into, i8::from_le_bytes(one(bytes, big))),
            Dtype::U16 => whole(into, u16::from_le_bytes(one(bytes, big))),
            Dtype::I16 => whole(into, i16::from_le_bytes(one(bytes, big))),
            Dtype::U32 => whole(into, u32::from_le_bytes(one(bytes, big))),
            Dtype::I32 => whole(into, i32::from_le_bytes(one(bytes, big))),
            Dtype::U64 => whole(into, u64::from_le_bytes(one(bytes, big))),
            Dtype::I64 => whole(into, i64::from_le_bytes(one(bytes, big))),
            Dtype::F16 => return real(into, f16::from_le_bytes(one(bytes, big)).to_f32()),
            Dtype::Bf16 => return real(into, bf16::from_le_bytes(one(bytes, big)).to_f32()),
            Dtype::F32 => return real(into, f32::from_le_bytes(one(bytes, big))),
            Dtype::F64 => return real(into, f64::from_le_bytes(one(bytes, big))),
            Dtype::Text(_) => into.extend_from_slice(text(bytes)),
            Dtype::Utf32(_) => {
                let (characters, _) = bytes.as_chunks::<4>();
                for character in characters {
                    let code = u32::from_le_bytes(one(character, big));
                    let character = char::from_u32(code).ok_or(Problem::NotUtf8)?;
                    let mut utf8 = [0; 4];
                    into.extend_from_slice(character.encode_utf8(&mut utf8).as_bytes());
                }
                into.truncate(text(into).len());
            }
        }
        Ok(())
    }
}

/// Calls `convert` with each element's bytes, little end first.
fn each<const N: usize>(
    bytes: &[u8],
    is_big_endian: bool,
    into: &mut Vec<f32>,
    convert: impl Fn([u8; N]) -> f32,
) {
    let (elements, _) = bytes.as_chunks::<N>();
    if is_big_endian {
        into.extend(elements.iter().map(|element| {
            let mut element = *element;
            element.reverse();
            convert(element)
        }));
    } else {
        into.extend(elements.iter().map(|element| convert(*element)));
    }
}

/// The bytes of one element, little end first.
fn one<const N: usize>(bytes: &[u8], is_big_endian: bool) -> [u8; N] {
    let mut element = bytes.first_chunk::<N>().copied().unwrap_or([0; N]);
    if is_big_endian {
        element.reverse();
    }
    element
}

/// Text without the zeros that fill it up.
fn text(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.get(..end).unwrap_or_default()
}

fn whole(into: &mut Vec<u8>, number: impl std::fmt::Display) {
    // Writing to memory doesn't fail.
    let _ = write!(into, "{number}");
}

/// The shortest text that reads back as `number`; Rust writes whole ones without a point.
fn real<F: std::fmt::Display + Copy + Into<f64>>(
    into: &mut Vec<u8>,
    number: F,
) -> Result<(), Problem> {
    if !number.into().is_finite() {
        return Err(Problem::NotFinite(number.to_string()));
    }
    // A zero has no sign in any label.
    if number.into() == 0.0 {
        into.push(b'0');
    } else {
        whole(into, number);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(dtype: Dtype, is_big_endian: bool, bytes: &[u8]) -> (Vec<f32>, Vec<String>) {
        let encoding = Encoding { dtype, is_big_endian };
        let mut numbers = Vec::new();
        encoding.numbers(bytes, &mut numbers).unwrap();
        let size = usize::try_from(dtype.bytes()).unwrap();
        let labels = bytes.chunks_exact(size).map(|bytes| {
            let mut text = Vec::new();
            encoding.label(bytes, &mut text).unwrap();
            String::from_utf8(text).unwrap()
        });
        (numbers, labels.collect())
    }

    #[test]
    fn every_type_gives_its_numbers_and_labels_from_either_end() {
        let check = |dtype, little: Vec<u8>, numbers: &[f32], labels: &[&str]| {
            let size = usize::try_from(Dtype::bytes(dtype)).unwrap();
            let big: Vec<u8> =
                little.chunks(size).flat_map(|bytes| bytes.iter().rev().copied()).collect();
            for (is_big, bytes) in [(false, little), (true, big)] {
                let (found, texts) = read(dtype, is_big, &bytes);
                assert_eq!((found.as_slice(), &texts[..]), (numbers, &labels.map_strings()[..]));
            }
        };
        check(Dtype::Bool, vec![0, 1, 2], &[0.0, 1.0, 1.0], &["0", "1", "1"]);
        check(Dtype::U8, vec![0, 255], &[0.0, 255.0], &["0", "255"]);
        check(Dtype::I8, vec![0, 255], &[0.0, -1.0], &["0", "-1"]);
        check(Dtype::U16, vec![1, 2], &[513.0], &["513"]);
        check(Dtype::I16, (-2i16).to_le_bytes().into(), &[-2.0], &["-2"]);
        check(Dtype::U32, 70_000u32.to_le_bytes().into(), &[70_000.0], &["70000"]);
        check(Dtype::I32, (-70_000i32).to_le_bytes().into(), &[-70_000.0], &["-70000"]);
        check(
            Dtype::U64,
            u64::MAX.to_le_bytes().into(),
            &[1.8446744e19],
            &["18446744073709551615"],
        );
        check(Dtype::I64, (-5i64).to_le_bytes().into(), &[-5.0], &["-5"]);
        check(Dtype::F16, f16::from_f32(1.5).to_le_bytes().into(), &[1.5], &["1.5"]);
        check(Dtype::Bf16, bf16::from_f32(-3.0).to_le_bytes().into(), &[-3.0], &["-3"]);
        check(Dtype::F32, 0.1f32.to_le_bytes().into(), &[0.1], &["0.1"]);
        check(Dtype::F64, 7f64.to_le_bytes().into(), &[7.0], &["7"]);
        check(Dtype::F64, (-0f64).to_le_bytes().into(), &[0.0], &["0"]);
    }

    trait Strings {
        fn map_strings(&self) -> Vec<String>;
    }
    impl Strings for &[&str] {
        fn map_strings(&self) -> Vec<String> {
            self.iter().map(|text| (*text).to_owned()).collect()
        }
    }

    #[test]
    fn numbers_that_are_not_finite_in_single_precision_are_reported_with_their_place() {
        let encoding = Encoding { dtype: Dtype::F64, is_big_endian: false };
        let said = |numbers: &[f64]| {
            let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
            encoding.numbers(&bytes, &mut Vec::new()).unwrap_err()
        };
        assert_eq!(said(&[1.0, f64::NAN]), (1, Problem::NotFinite("NaN".into())));
        assert_eq!(said(&[f64::NEG_INFINITY]), (0, Problem::NotFinite("-inf".into())));
        let large = format!("{}", 1e39);
        assert_eq!(said(&[1e39]), (0, Problem::TooLarge(large)));
    }

    #[test]
    fn words_are_read_without_what_fills_them_up() {
        let label = |dtype, is_big_endian, bytes: &[u8]| {
            let mut text = Vec::new();
            Encoding { dtype, is_big_endian }.label(bytes, &mut text).map(|()| text)
        };
        assert_eq!(label(Dtype::Text(4), false, b"cat\0"), Ok(b"cat".to_vec()));
        let utf32 = |text: &str| -> Vec<u8> {
            text.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect()
        };
        assert_eq!(label(Dtype::Utf32(4), true, &utf32("né\0\0")), Ok("né".as_bytes().to_vec()));
        assert_eq!(label(Dtype::Utf32(1), true, &[0, 0, 0xd8, 0]), Err(Problem::NotUtf8));
    }
}
