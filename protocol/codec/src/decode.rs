//! Reading a canonical file back, refusing everything else. Never panics, whatever the bytes.

use crate::{
    Dtype,
    error::CodecError,
    layout::{Layout, MAX_HEADER_BYTES, METADATA},
    tensor::{Tensor, TensorSpec},
};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use sojourn_protocol::quantity::to_u64;
use std::fmt;

/// A tensor in a decoded file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorView<'a> {
    /// The tensor's name.
    pub name: String,
    /// Type of its elements.
    pub dtype: Dtype,
    /// The tensor's shape; empty for a scalar.
    pub shape: Vec<u64>,
    /// The tensor's elements in row-major order, little-endian, not aligned.
    pub data: &'a [u8],
}

impl TensorView<'_> {
    /// The elements of a tensor of single-precision numbers.
    ///
    /// # Errors
    /// [`CodecError::WrongDtype`] where it holds something else.
    pub fn f32s(&self) -> Result<impl ExactSizeIterator<Item = f32> + '_, CodecError> {
        self.expect_dtype(Dtype::F32)?;
        let (chunks, _) = self.data.as_chunks::<4>();
        Ok(chunks.iter().map(|bytes| f32::from_le_bytes(*bytes)))
    }

    /// The elements of a tensor of 64-bit integers.
    ///
    /// # Errors
    /// [`CodecError::WrongDtype`] where it holds something else.
    pub fn i64s(&self) -> Result<impl ExactSizeIterator<Item = i64> + '_, CodecError> {
        self.expect_dtype(Dtype::I64)?;
        let (chunks, _) = self.data.as_chunks::<8>();
        Ok(chunks.iter().map(|bytes| i64::from_le_bytes(*bytes)))
    }

    /// The elements of a tensor of bytes.
    ///
    /// # Errors
    /// [`CodecError::WrongDtype`] where it holds something else.
    pub fn u8s(&self) -> Result<&[u8], CodecError> {
        self.expect_dtype(Dtype::U8)?;
        Ok(self.data)
    }

    /// The tensor without its data.
    #[must_use]
    pub fn spec(&self) -> TensorSpec {
        TensorSpec { name: self.name.clone(), dtype: self.dtype, shape: self.shape.clone() }
    }

    /// The tensor with a copy of its data.
    #[must_use]
    pub fn to_tensor(&self) -> Tensor {
        let TensorSpec { name, dtype, shape } = self.spec();
        Tensor { name, dtype, shape, data: self.data.to_vec() }
    }

    fn expect_dtype(&self, expected: Dtype) -> Result<(), CodecError> {
        if self.dtype == expected {
            return Ok(());
        }
        let tensor = self.name.clone();
        Err(CodecError::WrongDtype { tensor, expected, actual: self.dtype })
    }
}

/// The tensors of a canonical file, in name order.
///
/// # Errors
/// Anything that [`crate::encode`] wouldn't have written.
pub fn decode(file: &[u8]) -> Result<Vec<TensorView<'_>>, CodecError> {
    let layout = decode_header(file)?;
    let actual = length(file);
    if layout.file_bytes() != actual {
        return Err(CodecError::Length { expected: layout.file_bytes(), actual });
    }
    let mut views = Vec::with_capacity(layout.tensors().len());
    for (spec, range) in layout.tensors() {
        let place = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        let data = place
            .and_then(|(start, end)| file.get(start..end))
            .ok_or(CodecError::Length { expected: layout.file_bytes(), actual })?;
        let TensorSpec { name, dtype, shape } = spec.clone();
        views.push(TensorView { name, dtype, shape, data });
    }
    Ok(views)
}

/// The layout that a canonical file's first bytes say; what comes after the header isn't looked at.
///
/// # Errors
/// A header that [`crate::encode`] wouldn't have written, or only a part of one.
pub fn decode_header(start: &[u8]) -> Result<Layout, CodecError> {
    let truncated = CodecError::Truncated { bytes: length(start) };
    let (prefix, rest) = start.split_first_chunk::<8>().ok_or_else(|| truncated.clone())?;
    let bytes = u64::from_le_bytes(*prefix);
    if bytes > MAX_HEADER_BYTES {
        return Err(CodecError::HeaderTooLarge { bytes, limit: MAX_HEADER_BYTES });
    }
    let json = usize::try_from(bytes).ok().and_then(|end| rest.get(..end)).ok_or(truncated)?;
    let entries: Entries = serde_json::from_slice(json).map_err(|error| {
        CodecError::Header(format!("its header is no table of tensors: {error}"))
    })?;
    let layout = Layout::new(check(entries.0)?)?;
    // Spaces, escapes, key order: whatever differs from what is written here is another encoding.
    if layout.header().get(8..) != Some(json) {
        return Err(CodecError::HeaderBytes);
    }
    Ok(layout)
}

fn length(bytes: &[u8]) -> u64 {
    to_u64(bytes.len())
}

/// Specs from header entries, with the error that says most where they aren't canonical.
fn check(entries: Vec<(String, Entry)>) -> Result<Vec<TensorSpec>, CodecError> {
    let mut specs: Vec<TensorSpec> = Vec::with_capacity(entries.len());
    let mut at = 0u64;
    for (name, entry) in entries {
        let Entry::Tensor(entry) = entry else {
            return Err(CodecError::Metadata);
        };
        let Some(dtype) = Dtype::parse(&entry.dtype) else {
            let dtype = entry.dtype.chars().take(20).collect();
            return Err(CodecError::UnknownDtype { tensor: name, dtype });
        };
        if let Some(before) = specs.last() {
            if before.name == name {
                return Err(CodecError::Duplicate(name));
            }
            if before.name > name {
                return Err(CodecError::OutOfOrder(name));
            }
        }
        let spec = TensorSpec { name, dtype, shape: entry.shape };
        let expected_end =
            at.checked_add(spec.bytes()?).ok_or_else(|| CodecError::TooLarge(spec.name.clone()))?;
        let (begin, end) = entry.data_offsets;
        if (begin, end) != (at, expected_end) {
            let (tensor, expected_begin) = (spec.name, at);
            return Err(CodecError::Offsets { tensor, begin, end, expected_begin, expected_end });
        }
        at = expected_end;
        specs.push(spec);
    }
    Ok(specs)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TensorEntry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

enum Entry {
    Tensor(TensorEntry),
    Metadata,
}

/// A header's entries in their order, duplicates kept: a map would hide both.
struct Entries(Vec<(String, Entry)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Entries;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tensors by name")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    let entry = if name == METADATA {
                        map.next_value::<serde::de::IgnoredAny>()?;
                        Entry::Metadata
                    } else {
                        Entry::Tensor(map.next_value()?)
                    };
                    entries.push((name, entry));
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode;
    use proptest::prelude::*;

    fn sample() -> Vec<Tensor> {
        vec![
            Tensor::f32("layers.0.bias", [2u64], &[0.5, -1.5]),
            Tensor::f32("layers.0.weight", [2u64, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            Tensor::i64("lineage", [2u64], &[i64::MIN, 3]),
            Tensor::u8("pixels", [3u64], &[0, 7, 255]),
        ]
    }

    fn with_header(json: &str, data: &[u8]) -> Vec<u8> {
        let mut file = (json.len() as u64).to_le_bytes().to_vec();
        file.extend_from_slice(json.as_bytes());
        file.extend_from_slice(data);
        file
    }

    #[test]
    fn encoded_tensors_decode_to_the_same() {
        let file = encode(&sample()).unwrap();
        let views = decode(&file).unwrap();
        assert_eq!(
            views.iter().map(TensorView::spec).collect::<Vec<_>>(),
            sample().iter().map(Tensor::spec).collect::<Vec<_>>()
        );
        assert_eq!(views[1].f32s().unwrap().collect::<Vec<_>>(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(views[2].i64s().unwrap().collect::<Vec<_>>(), [i64::MIN, 3]);
        assert_eq!(views[3].u8s(), Ok(&[0, 7, 255][..]));
        assert!(matches!(views[2].u8s(), Err(CodecError::WrongDtype { .. })));
        assert!(matches!(views[2].f32s().map(|_| ()), Err(CodecError::WrongDtype { .. })));
        assert_eq!(decode(&encode(&[]).unwrap()).unwrap(), []);
    }

    #[test]
    fn other_readers_of_the_format_read_it() {
        let file = encode(&sample()).unwrap();
        let theirs = safetensors::SafeTensors::deserialize(&file).unwrap();
        assert_eq!(theirs.len(), 4);
        for tensor in sample() {
            let view = theirs.tensor(&tensor.name).unwrap();
            assert_eq!(view.data(), tensor.data);
            assert_eq!(view.shape().iter().map(|s| *s as u64).collect::<Vec<_>>(), tensor.shape);
        }
    }

    #[test]
    fn truncated_and_overlong_files_are_refused() {
        let file = encode(&sample()).unwrap();
        for end in 0..file.len() {
            assert!(decode(&file[..end]).is_err(), "{end} bytes");
        }
        let mut long = file;
        long.push(0);
        assert!(matches!(decode(&long), Err(CodecError::Length { .. })));
    }

    #[test]
    fn valid_but_not_canonical_is_refused_with_the_reason() {
        let a = r#""a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#;
        let b = r#""b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}"#;
        let refused = |json: &str| decode(&with_header(json, &[0; 8])).unwrap_err();
        let json = format!(r#"{{"__metadata__":{{"by":"me"}},{a},{b}}}"#);
        assert_eq!(refused(&json), CodecError::Metadata);
        assert_eq!(refused(&format!("{{{b},{a}}}")), offsets("b", (4, 8), (0, 4)));
        let swapped = format!("{{{},{}}}", b.replace("4,8", "0,4"), a.replace("0,4", "4,8"));
        assert_eq!(refused(&swapped), CodecError::OutOfOrder("a".into()));
        let overlapping = format!("{{{a},{}}}", b.replace("4,8", "0,4"));
        assert_eq!(refused(&overlapping), offsets("b", (0, 4), (4, 8)));
        let gap = format!("{{{a},{}}}", b.replace("4,8", "5,9"));
        assert_eq!(refused(&gap), offsets("b", (5, 9), (4, 8)));
        let twice = format!("{{{a},{}}}", a.replace("0,4", "4,8"));
        assert_eq!(refused(&twice), CodecError::Duplicate("a".into()));
        let half = format!("{{{},{b}}}", a.replace("F32", "F8_E4M3"));
        assert!(matches!(refused(&half), CodecError::UnknownDtype { .. }));
        assert_eq!(refused(&format!("{{{a}, {b}}}")), CodecError::HeaderBytes);
        let escaped = format!("{{{a},{b}}}").replace(r#""b""#, r#""\u0062""#);
        assert_eq!(refused(&escaped), CodecError::HeaderBytes);
        assert!(matches!(refused("[1]"), CodecError::Header(_)));
        assert!(matches!(refused("{\"a\":1}"), CodecError::Header(_)));
        assert!(matches!(refused("garbage"), CodecError::Header(_)));
        let unknown = format!("{{{},{b}}}", a.replace("\"shape\"", "\"more\":1,\"shape\""));
        assert!(matches!(refused(&unknown), CodecError::Header(_)));
        let vast = format!("{{{},{b}}}", a.replace("[1]", "[18446744073709551615,4]"));
        assert_eq!(refused(&vast), CodecError::TooLarge("a".into()));
        let mut bomb = u64::MAX.to_le_bytes().to_vec();
        bomb.extend_from_slice(b"{}");
        assert!(matches!(decode(&bomb), Err(CodecError::HeaderTooLarge { .. })));
        let zip = decode(b"PK\x03\x04 this is another format altogether").unwrap_err();
        assert!(zip.to_string().starts_with("not a safetensors file"), "{zip}");
    }

    fn offsets(tensor: &str, is: (u64, u64), expected: (u64, u64)) -> CodecError {
        CodecError::Offsets {
            tensor: tensor.into(),
            begin: is.0,
            end: is.1,
            expected_begin: expected.0,
            expected_end: expected.1,
        }
    }

    fn tensors() -> impl Strategy<Value = Vec<Tensor>> {
        let one = ("[a-z\"\\\\é.]{0,6}", any::<bool>(), prop::collection::vec(0u64..4, 0..3));
        prop::collection::btree_map(one.0, (one.1, one.2), 0..5).prop_map(|map| {
            let make = |(name, (float, shape)): (String, (bool, Vec<u64>))| {
                let count = usize::try_from(shape.iter().product::<u64>()).unwrap();
                if float {
                    Tensor::f32(name, shape, &vec![0.25; count])
                } else {
                    Tensor::i64(name, shape, &vec![-3; count])
                }
            };
            map.into_iter().map(make).collect()
        })
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }

        #[test]
        fn any_tensors_round_trip(tensors in tensors()) {
            let file = encode(&tensors).unwrap();
            let views = decode(&file).unwrap();
            let again: Vec<Tensor> = views.iter().map(TensorView::to_tensor).collect();
            prop_assert_eq!(encode(&again).unwrap(), file.clone());
            let mut sorted = tensors;
            sorted.sort_by(|a, b| a.name.cmp(&b.name));
            prop_assert_eq!(again, sorted);
        }

        /// One changed byte either is refused or is another canonical file: never two files for one model.
        #[test]
        fn mutations_are_refused_or_canonical(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut file = encode(&sample()).unwrap();
            let at = at.index(file.len());
            file[at] = byte;
            if let Ok(views) = decode(&file) {
                let again: Vec<Tensor> = views.iter().map(TensorView::to_tensor).collect();
                prop_assert_eq!(encode(&again).unwrap(), file);
            }
        }
    }
}
