//! safetensors: tensors by name behind a header of JSON; Sojourn's own shards are such files.
//!
//! ```text
//! | header's bytes, u64 | header | tensor after tensor ... |
//! ```

use super::{Array, Body, Dtype, Encoding, no_array};
use crate::{
    error::{IngestError, Place, Problem},
    source::SourceFile,
};
use safetensors::tensor::Metadata;
use sojourn_protocol::quantity::to_u64;
use std::io::Read;

/// The longest header that is read: the limit of the `safetensors` library.
const MAX_HEADER: u64 = 100_000_000;

/// Does a file begin as one of this kind?
pub(super) fn begins(start: &[u8]) -> bool {
    start.get(8) == Some(&b'{') && length(start).is_some_and(|length| length <= MAX_HEADER)
}

fn length(start: &[u8]) -> Option<u64> {
    start.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes))
}

/// A file's tensors.
pub(super) struct Tensors {
    file: SourceFile,
    header: Metadata,
    /// The first byte behind the header.
    start: u64,
}

impl Tensors {
    /// Reads the header.
    pub(super) fn open(file: SourceFile) -> Result<Self, IngestError> {
        let bad = |reason: String| file.refuse(Problem::Damaged { how: "safetensors", reason });
        let mut stream = file.read()?;
        let mut start = Vec::new();
        stream.by_ref().take(8).read_to_end(&mut start).map_err(|error| file.failed(error))?;
        let length = length(&start).filter(|length| *length <= MAX_HEADER);
        let length = length.ok_or_else(|| bad("no header".to_owned()))?;
        let mut header = Vec::new();
        stream.take(length).read_to_end(&mut header).map_err(|error| file.failed(error))?;
        let header: Metadata =
            serde_json::from_slice(&header).map_err(|error| bad(error.to_string()))?;
        let start = length + 8;
        let expected = start.saturating_add(to_u64(header.data_len()));
        if !file.is_packed() && file.bytes() != expected {
            let bytes = file.bytes();
            return Err(bad(format!("it has {bytes} bytes, {expected} are wanted")));
        }
        Ok(Self { file, header, start })
    }

    /// The names of its tensors, in order.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.header.tensors().into_keys().collect();
        names.sort();
        names
    }

    /// The tensor `name`, which `key` of the job asks for.
    pub(super) fn array(&self, key: &'static str, name: &str) -> Result<Array, IngestError> {
        let Some(tensor) = self.header.info(name) else {
            return Err(no_array(&self.file, key, name, &self.names()));
        };
        let Some(dtype) = dtype(tensor.dtype) else {
            let place = Place { element: Some(name.to_owned()), ..Place::of(self.file.shown()) };
            return Err(place.refuse(Problem::Dtype(tensor.dtype.to_string())));
        };

        let array = Array {
            file: self.file.clone(),
            name: name.to_owned(),
            encoding: Encoding { dtype, is_big_endian: false },
            shape: tensor.shape.iter().map(|side| to_u64(*side)).collect(),
            body: Body::At {
                start: self.start.saturating_add(to_u64(tensor.data_offsets.0)),
                is_last: tensor.data_offsets.1 == self.header.data_len(),
            },
        };
        array.check_dimensions()?;
        Ok(array)
    }
}

fn dtype(dtype: safetensors::Dtype) -> Option<Dtype> {
    use safetensors::Dtype as Theirs;
    Some(match dtype {
        Theirs::BOOL => Dtype::Bool,
        Theirs::U8 => Dtype::U8,
        Theirs::I8 => Dtype::I8,
        Theirs::U16 => Dtype::U16,
        Theirs::I16 => Dtype::I16,
        Theirs::U32 => Dtype::U32,
        Theirs::I32 => Dtype::I32,
        Theirs::U64 => Dtype::U64,
        Theirs::I64 => Dtype::I64,
        Theirs::F16 => Dtype::F16,
        Theirs::BF16 => Dtype::Bf16,
        Theirs::F32 => Dtype::F32,
        Theirs::F64 => Dtype::F64,
        _ => return None,
    })
}
