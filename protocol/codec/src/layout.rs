//! Where each tensor of a canonical file lies, and the header that says so.

use crate::{
    error::CodecError,
    tensor::{Tensor, TensorSpec},
};
use sojourn_protocol::quantity::to_u64;
use std::{collections::BTreeMap, fmt::Write as _, ops::Range};

/// The largest header that is written or read: room for tens of thousands of tensors.
pub const MAX_HEADER_BYTES: u64 = 16 << 20;

const PREFIX: u64 = 8;
pub(crate) const METADATA: &str = "__metadata__";

/// The layout of a file's tensors, in name order. It is known before the data.
///
/// A stream writes [`Layout::header`], then the tensors' bytes in the order of [`Layout::tensors`]; [`Layout::range`] gives
/// the offsets for writing in another order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    tensors: Vec<(TensorSpec, Range<u64>)>,
    header: Vec<u8>,
    file_bytes: u64,
}

impl Layout {
    /// The layout of a file with these tensors, given in any order.
    ///
    /// # Errors
    /// Names that can't be used or are there twice, sizes over 64 bits, a header over
    /// [`MAX_HEADER_BYTES`].
    pub fn new(specs: Vec<TensorSpec>) -> Result<Self, CodecError> {
        Self::described(specs, None)
    }

    /// The layout of a file that also says something of itself, which no canonical file does.
    fn described(
        mut specs: Vec<TensorSpec>,
        description: Option<Texts<'_>>,
    ) -> Result<Self, CodecError> {
        specs.sort_by(|a, b| a.name.cmp(&b.name));
        for pair in specs.windows(2) {
            if let [a, b] = pair
                && a.name == b.name
            {
                return Err(CodecError::Duplicate(a.name.clone()));
            }
        }
        let mut placed = Vec::with_capacity(specs.len());
        let mut at = 0u64;
        for spec in specs {
            if spec.name == METADATA {
                return Err(CodecError::Name(spec.name));
            }
            let end = at
                .checked_add(spec.bytes()?)
                .ok_or_else(|| CodecError::TooLarge(spec.name.clone()))?;
            placed.push((spec, at..end));
            at = end;
        }
        let header = write_header(&placed, description)?;
        let start = to_u64(header.len());
        let too_large = || CodecError::TooLarge("the whole file".into());
        let file_bytes = start.checked_add(at).ok_or_else(too_large)?;
        for (_, range) in &mut placed {
            *range = range.start + start..range.end + start;
        }
        Ok(Self { tensors: placed, header, file_bytes })
    }

    /// The file's first bytes: length prefix, JSON, padding.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// The tensors in file order, each with its bytes' place from the start of the file.
    #[must_use]
    pub fn tensors(&self) -> &[(TensorSpec, Range<u64>)] {
        &self.tensors
    }

    /// The place of one tensor's bytes, counted from the start of the file.
    #[must_use]
    pub fn range(&self, name: &str) -> Option<Range<u64>> {
        let index = self.tensors.binary_search_by(|(spec, _)| spec.name.as_str().cmp(name)).ok()?;
        self.tensors.get(index).map(|(_, range)| range.clone())
    }

    /// Size of the whole file.
    #[must_use]
    pub const fn file_bytes(&self) -> u64 {
        self.file_bytes
    }
}

/// The canonical file of these tensors, given in any order.
///
/// # Errors
/// As [`Layout::new`]; and data that doesn't fit its shape.
pub fn encode(tensors: &[Tensor]) -> Result<Vec<u8>, CodecError> {
    write_file(tensors, None)
}

/// The same file with texts of its own in its header, each under a key, in the format's place for that: `__metadata__`. Readers of
/// the format read it; [`crate::decode`] refuses it, because it is for people's hands and no blob. Keys are written in the order of the map,
/// so that equal texts give equal files.
///
/// # Errors
/// As [`encode`].
pub fn encode_described(
    tensors: &[Tensor],
    texts: &BTreeMap<&str, String>,
) -> Result<Vec<u8>, CodecError> {
    write_file(tensors, Some(texts))
}

/// The texts of `__metadata__`.
type Texts<'a> = &'a BTreeMap<&'a str, String>;

fn write_file(tensors: &[Tensor], description: Option<Texts<'_>>) -> Result<Vec<u8>, CodecError> {
    for tensor in tensors {
        let expected = tensor.spec().bytes()?;
        let actual = to_u64(tensor.data.len());
        if expected != actual {
            let tensor = tensor.name.clone();
            return Err(CodecError::DataLength { tensor, expected, actual });
        }
    }
    let specs = tensors.iter().map(Tensor::spec).collect();
    let layout = Layout::described(specs, description)?;
    let mut ordered: Vec<&Tensor> = tensors.iter().collect();
    ordered.sort_by(|a, b| a.name.cmp(&b.name));
    let mut file = layout.header;
    let data: usize = ordered.iter().map(|tensor| tensor.data.len()).sum();
    file.reserve_exact(data);
    for tensor in ordered {
        file.extend_from_slice(&tensor.data);
    }
    Ok(file)
}

/// Offsets in `placed` count from the end of the header, as the format has it.
fn write_header(
    placed: &[(TensorSpec, Range<u64>)],
    description: Option<Texts<'_>>,
) -> Result<Vec<u8>, CodecError> {
    let refuse = |error: &dyn std::fmt::Display| CodecError::Header(error.to_string());
    let mut json = String::from("{");
    if let Some(texts) = description {
        let texts = serde_json::to_string(texts).map_err(|error| refuse(&error))?;
        write!(json, r#""{METADATA}":{texts}"#).map_err(|error| refuse(&error))?;
    }
    for (spec, range) in placed {
        let comma = if json.len() == 1 { "" } else { "," };
        let name = serde_json::to_string(&spec.name).map_err(|error| refuse(&error))?;
        let shape = serde_json::to_string(&spec.shape).map_err(|error| refuse(&error))?;
        let (dtype, begin, end) = (spec.dtype, range.start, range.end);
        write!(
            json,
            r#"{comma}{name}:{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]}}"#
        )
        .map_err(|error| refuse(&error))?;
    }
    json.push('}');
    while !json.len().is_multiple_of(8) {
        json.push(' ');
    }
    let bytes = to_u64(json.len());
    if bytes > MAX_HEADER_BYTES {
        return Err(CodecError::HeaderTooLarge { bytes, limit: MAX_HEADER_BYTES });
    }
    let mut header = bytes.to_le_bytes().to_vec();
    debug_assert_eq!(u64::try_from(header.len()), Ok(PREFIX), "the length prefix is a u64");
    header.extend_from_slice(json.as_bytes());
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype;

    #[test]
    fn the_same_tensors_give_the_same_bytes_in_any_order() {
        let a = Tensor::f32("b", [2u64], &[1.0, -2.0]);
        let b = Tensor::i64("a", [1u64], &[7]);
        let one = encode(&[a.clone(), b.clone()]).unwrap();
        assert_eq!(one, encode(&[b, a]).unwrap());
        let json = br#"{"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}"#;
        assert_eq!(&one[8..8 + json.len()], json);
        assert_eq!(u64::from_le_bytes(one[..8].try_into().unwrap()) % 8, 0);
        assert_eq!(&one[one.len() - 16..one.len() - 8], &7i64.to_le_bytes());
    }

    #[test]
    fn ranges_and_size_say_where_the_bytes_are() {
        let tensors =
            [Tensor::f32("x", [3u64, 1], &[1.0, 2.0, 3.0]), Tensor::i64("y", [1u64], &[9])];
        let file = encode(&tensors).unwrap();
        let layout = Layout::new(tensors.iter().map(Tensor::spec).collect()).unwrap();
        assert_eq!(layout.file_bytes(), file.len() as u64);
        assert!(file.starts_with(layout.header()));
        let size = layout.file_bytes();
        assert_eq!(layout.range("y"), Some(size - 8..size));
        assert_eq!(layout.range("x"), Some(size - 20..size - 8));
        assert_eq!(&file[file.len() - 8..], &9i64.to_le_bytes());
        assert_eq!(layout.range("z"), None);
    }

    #[test]
    fn a_described_file_is_for_other_readers_alone() {
        let tensors = [Tensor::f32("x", [1u64], &[1.0])];
        let texts = [("about", "a \"text\"\n".to_owned()), ("more", String::new())].into();
        let file = encode_described(&tensors, &texts).unwrap();
        let (_, metadata) = safetensors::SafeTensors::read_metadata(&file).unwrap();
        let metadata = metadata.metadata().clone().unwrap();
        let known = |(key, text): (&&str, &String)| ((*key).to_owned(), text.clone());
        assert_eq!(metadata, texts.iter().map(known).collect());
        let theirs = safetensors::SafeTensors::deserialize(&file).unwrap();
        assert_eq!(theirs.tensor("x").unwrap().data(), 1f32.to_le_bytes());
        assert_eq!(crate::decode(&file), Err(CodecError::Metadata));
        assert_eq!(u64::from_le_bytes(file[..8].try_into().unwrap()) % 8, 0);
        let empty = encode_described(&[], &[("about", String::new())].into()).unwrap();
        assert!(safetensors::SafeTensors::deserialize(&empty).unwrap().is_empty());
    }

    #[test]
    fn invalid_tensors_are_refused() {
        let layout = |specs: &[TensorSpec]| Layout::new(specs.to_vec());
        let twice = [TensorSpec::new("a", Dtype::F32, [1]), TensorSpec::new("a", Dtype::I64, [1])];
        assert_eq!(layout(&twice), Err(CodecError::Duplicate("a".into())));
        let huge = [TensorSpec::new("a", Dtype::F32, [u64::MAX, 2])];
        assert_eq!(layout(&huge), Err(CodecError::TooLarge("a".into())));
        let sum = TensorSpec::new("a", Dtype::F32, [u64::MAX / 8]);
        let other = TensorSpec { name: "b".into(), ..sum.clone() };
        assert!(matches!(
            layout(&[sum.clone(), other.clone(), TensorSpec { name: "c".into(), ..sum }]),
            Err(CodecError::TooLarge(_))
        ));
        let metadata = [TensorSpec::new(METADATA, Dtype::F32, [1])];
        assert_eq!(layout(&metadata), Err(CodecError::Name(METADATA.into())));
        let mut short = Tensor::f32("a", [2u64], &[1.0, 2.0]);
        short.data.pop();
        assert!(matches!(
            encode(&[short]),
            Err(CodecError::DataLength { expected: 8, actual: 7, .. })
        ));
        let long = [TensorSpec::new("n".repeat(17 << 20), Dtype::F32, [1])];
        assert!(matches!(layout(&long), Err(CodecError::HeaderTooLarge { .. })));
    }
}
