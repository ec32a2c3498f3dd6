//! How features become the numbers that a model takes.

use crate::{
    error::{TrainError, unit},
    files::{Files, read},
    kind::tensor,
};
use sojourn_codec::{Dtype, decode};
use sojourn_protocol::manifest::Scaling;
use tch::{Device, Tensor};

/// The conversion of a data set's numbers to those that a model takes.
#[derive(Debug)]
pub(crate) enum Scaler {
    None,
    Constant(f64),
    Standard {
        mean: Tensor,
        std: Tensor,
        /// Features that don't vary.
        constant: Tensor,
    },
}

impl Scaler {
    /// The scaling of the rows `x`, `[rows, features]`.
    pub(crate) fn of(scaling: &Scaling, x: &Tensor, files: &Files) -> Result<Self, TrainError> {
        let blob = match scaling {
            Scaling::None => return Ok(Scaler::None),
            Scaling::Constant(factor) => return Ok(Scaler::Constant(*factor)),
            Scaling::Standard(blob) => blob,
        };
        let bytes = read(files, blob.sha256)?;
        let views =
            decode(&bytes).map_err(|source| TrainError::Blob { what: "scaling", source })?;
        let (_, features) = x.size2()?;
        let shape = [u64::try_from(features)?];
        let [mean, std] = views.as_slice() else {
            return Err(unit("a scaling must hold exactly `mean` and `std`"));
        };
        for (view, name) in [(mean, "mean"), (std, "std")] {
            if view.name != name || view.dtype != Dtype::F32 || view.shape != shape {
                return Err(unit(format!("a scaling's `{name}` must be F32 of shape {shape:?}")));
            }
        }
        let (mean, std) = (tensor(mean)?, tensor(std)?);
        let constant = std.f_eq(0.0)?;
        Ok(Scaler::Standard { mean, std, constant })
    }

    /// The same on a device.
    pub(crate) fn to_device(&self, device: Device) -> Result<Self, TrainError> {
        Ok(match self {
            Scaler::None => Scaler::None,
            Scaler::Constant(factor) => Scaler::Constant(*factor),
            Scaler::Standard { mean, std, constant } => Scaler::Standard {
                mean: mean.f_to_device(device)?,
                std: std.f_to_device(device)?,
                constant: constant.f_to_device(device)?,
            },
        })
    }

    /// Rows in single precision as a model takes them, in place.
    pub(crate) fn apply(&self, mut x: Tensor) -> Result<Tensor, TrainError> {
        match self {
            Scaler::None => Ok(x),
            Scaler::Constant(factor) => Ok(x.f_mul_scalar_(*factor)?),
            Scaler::Standard { mean, std, constant } => {
                let _ = x.f_sub_(mean)?.f_div_(std)?;
                // A feature that doesn't vary becomes 0.
                Ok(x.f_masked_fill_(constant, 0.0)?)
            }
        }
    }
}
