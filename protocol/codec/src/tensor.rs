//! Tensors as plain data: name, type, shape, little-endian bytes.

use crate::{Dtype, error::CodecError};

/// A tensor without its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorSpec {
    /// The tensor's name, unique in its file.
    pub name: String,
    /// Type of its elements.
    pub dtype: Dtype,
    /// The tensor's shape; empty for a scalar.
    pub shape: Vec<u64>,
}

impl TensorSpec {
    /// A tensor of this name, type and shape.
    pub fn new(name: impl Into<String>, dtype: Dtype, shape: impl Into<Vec<u64>>) -> Self {
        Self { name: name.into(), dtype, shape: shape.into() }
    }

    /// Elements of the tensor.
    ///
    /// # Errors
    /// [`CodecError::TooLarge`] where they don't fit 64 bits.
    pub fn elements(&self) -> Result<u64, CodecError> {
        let product = |total: u64, side: &u64| total.checked_mul(*side);
        self.shape
            .iter()
            .try_fold(1, product)
            .ok_or_else(|| CodecError::TooLarge(self.name.clone()))
    }

    /// Bytes of the tensor's data.
    ///
    /// # Errors
    /// [`CodecError::TooLarge`] where they don't fit 64 bits.
    pub fn bytes(&self) -> Result<u64, CodecError> {
        self.elements()?
            .checked_mul(self.dtype.bytes())
            .ok_or_else(|| CodecError::TooLarge(self.name.clone()))
    }
}

/// A tensor with its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// The tensor's name, unique in its file.
    pub name: String,
    /// Type of its elements.
    pub dtype: Dtype,
    /// The tensor's shape; empty for a scalar.
    pub shape: Vec<u64>,
    /// The tensor's elements in row-major order, little-endian.
    pub data: Vec<u8>,
}

impl Tensor {
    /// A tensor of single-precision numbers.
    pub fn f32(name: impl Into<String>, shape: impl Into<Vec<u64>>, values: &[f32]) -> Self {
        let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { name: name.into(), dtype: Dtype::F32, shape: shape.into(), data }
    }

    /// A tensor of bytes.
    pub fn u8(name: impl Into<String>, shape: impl Into<Vec<u64>>, values: &[u8]) -> Self {
        Self { name: name.into(), dtype: Dtype::U8, shape: shape.into(), data: values.into() }
    }

    /// A tensor of 64-bit integers.
    pub fn i64(name: impl Into<String>, shape: impl Into<Vec<u64>>, values: &[i64]) -> Self {
        let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { name: name.into(), dtype: Dtype::I64, shape: shape.into(), data }
    }

    /// The tensor without its data.
    #[must_use]
    pub fn spec(&self) -> TensorSpec {
        TensorSpec { name: self.name.clone(), dtype: self.dtype, shape: self.shape.clone() }
    }
}
