//! The headers of all arrays of a file.

use super::{Array, ArrayKind, Dtype, hdf5::Datasets, idx, npy, npz::Archive, tensors::Tensors};
use crate::{
    error::IngestError,
    source::{Finder, SourceFile},
};
use serde::Serialize;

/// An array, as its header describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArrayProfile {
    /// The name; that which messages use where the format has none.
    pub name: String,
    /// The dimensions, the first of which is the rows.
    pub shape: Vec<u64>,
    /// The kind of its elements.
    pub elements: Elements,
}

/// The kind of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Elements {
    /// Bytes and truth values, as pixels are.
    Bytes,
    /// Other whole numbers.
    Whole,
    /// Numbers with fractions.
    Floats,
    /// Texts, such as names of classes.
    Words,
}

impl Elements {
    const fn of(dtype: Dtype) -> Self {
        match dtype {
            Dtype::Bool | Dtype::U8 => Elements::Bytes,
            Dtype::I8
            | Dtype::U16
            | Dtype::I16
            | Dtype::U32
            | Dtype::I32
            | Dtype::U64
            | Dtype::I64 => Elements::Whole,
            Dtype::F16 | Dtype::Bf16 | Dtype::F32 | Dtype::F64 => Elements::Floats,
            Dtype::Text(_) | Dtype::Utf32(_) => Elements::Words,
        }
    }
}

/// The arrays of a file, in its order.
pub(crate) fn headers(
    finder: &mut Finder<'_>,
    kind: ArrayKind,
    file: SourceFile,
) -> Result<Vec<ArrayProfile>, IngestError> {
    const KEY: &str = "features";
    let arrays = match kind {
        ArrayKind::Npz => {
            let archive = Archive::open(finder, file)?;
            archive.names().iter().map(|name| archive.array(KEY, name)).collect::<Result<_, _>>()?
        }
        ArrayKind::Hdf5 => {
            let datasets = Datasets::open(finder, file)?;
            let described = datasets.names().iter().map(|name| datasets.described(KEY, name));
            // Arrays of other types are nobody's features.
            described.filter_map(Result::ok).map(|(array, _)| array).collect()
        }
        ArrayKind::Safetensors => {
            let tensors = Tensors::open(file)?;
            tensors.names().iter().map(|name| tensors.array(KEY, name)).collect::<Result<_, _>>()?
        }
        ArrayKind::Npy => vec![npy::open(file, "rows")?],
        ArrayKind::Idx => vec![idx::open(file, "images")?],
    };
    Ok(arrays.into_iter().map(described).collect())
}

fn described(array: Array) -> ArrayProfile {
    let elements = Elements::of(array.encoding.dtype);
    ArrayProfile { name: array.name, shape: array.shape, elements }
}
