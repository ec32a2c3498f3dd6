//! Types of elements: a file's word for them, and libtorch's; and tensors of a file as libtorch's.

use crate::error::TrainError;
use sojourn_codec::TensorView;
use sojourn_protocol::dtype::Dtype;
use tch::{Kind, Tensor};

/// libtorch's type for one of a file.
pub(crate) fn kind(dtype: Dtype) -> Result<Kind, TrainError> {
    Ok(match dtype {
        Dtype::Bool => Kind::Bool,
        Dtype::U8 => Kind::Uint8,
        Dtype::I8 => Kind::Int8,
        Dtype::I16 => Kind::Int16,
        Dtype::F16 => Kind::Half,
        Dtype::Bf16 => Kind::BFloat16,
        Dtype::I32 => Kind::Int,
        Dtype::F32 => Kind::Float,
        Dtype::I64 => Kind::Int64,
        Dtype::F64 => Kind::Double,
        Dtype::U32 | Dtype::U64 => {
            return Err(TrainError::Unit(format!("{dtype} can't be computed with")));
        }
    })
}

/// A copy of a decoded tensor.
pub(crate) fn tensor(view: &TensorView<'_>) -> Result<Tensor, TrainError> {
    let shape =
        view.shape.iter().map(|side| i64::try_from(*side)).collect::<Result<Vec<_>, _>>()?;
    Ok(Tensor::f_from_data_size(view.data, &shape, kind(view.dtype)?)?)
}
