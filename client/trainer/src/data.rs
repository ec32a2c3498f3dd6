//! Shards as tensors: read once, kept in memory for the hops that come back to them. Single precision is scaled once;
//! bytes stay bytes, and are scaled whenever a batch takes them.

use crate::{
    error::TrainError,
    graph::{Graphs, Program},
    kind::kind,
};
use sojourn_codec::{Dtype, TensorView, decode};
use sojourn_protocol::{
    digest::Digest,
    manifest::{Scaling, Shard},
    spec::Loss,
    unit::TrialContext,
};
use std::{collections::BTreeMap, fs, io, path::PathBuf, rc::Rc};
use tch::{Device, Kind, Tensor};

/// Bytes of tensors that are kept; the shard in use may be larger.
const CAPACITY: usize = 1 << 30;

/// A shard, checked against what trials may ask of it.
#[derive(Debug)]
pub(crate) struct Dataset {
    /// `[rows, features]`: single precision and scaled, or bytes and unscaled.
    x: Tensor,
    /// The scaling of bytes; none where `x` is scaled.
    unscaled: Option<Scaler>,
    /// `[rows]`: class indices, or numbers in single precision.
    y: Tensor,
    /// The type of `y`.
    labels: Labels,
    bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Labels {
    /// Class indices from 0 to this one, at most.
    Classes {
        last: i64,
    },
    Numbers,
}

/// The files of a unit, by blob.
pub(crate) type Files = BTreeMap<Digest, PathBuf>;

/// Shards in memory, the most recently used last, and the graphs that are trained on them.
#[derive(Debug)]
pub(crate) struct Shards {
    device: Device,
    graphs: Graphs,
    kept: Vec<(Key, Rc<Dataset>)>,
}

/// A shard under one scaling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    shard: Digest,
    scaling: ScalingKey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScalingKey {
    None,
    Constant(u64),
    Standard(Digest),
}

impl Shards {
    /// None yet; they will be kept on this device.
    pub(crate) const fn on(device: Device) -> Self {
        Self { device, graphs: Graphs::new(), kept: Vec::new() }
    }

    /// The graph of a trial, from memory or from its file; none for a built-in model.
    pub(crate) fn program(
        &mut self,
        context: &TrialContext,
        files: &Files,
    ) -> Result<Option<Rc<Program>>, TrainError> {
        let Some(exported) = context.config.model.exported() else { return Ok(None) };
        let read = || read(files, exported.file.sha256);
        self.graphs.get(context, exported, read, self.device).map(Some)
    }

    /// Where they are kept.
    pub(crate) const fn device(&self) -> Device {
        self.device
    }

    /// A shard as the trial trains on it, from memory or from its file.
    pub(crate) fn get(
        &mut self,
        shard: &Shard,
        context: &TrialContext,
        files: &Files,
    ) -> Result<Rc<Dataset>, TrainError> {
        let scaling = match context.scaling {
            Scaling::None => ScalingKey::None,
            Scaling::Constant(factor) => ScalingKey::Constant(factor.to_bits()),
            Scaling::Standard(blob) => ScalingKey::Standard(blob.sha256),
        };
        let key = Key { shard: shard.blob.sha256, scaling };
        let found = self.kept.iter().position(|(kept, _)| *kept == key);
        let dataset = match found {
            Some(index) => self.kept.remove(index).1,
            None => {
                Rc::new(Dataset::load(shard.blob.sha256, &context.scaling, files, self.device)?)
            }
        };
        dataset.check(shard, context)?;
        self.kept.push((key, Rc::clone(&dataset)));
        let mut bytes: usize = self.kept.iter().map(|(_, dataset)| dataset.bytes).sum();
        while bytes > CAPACITY && self.kept.len() > 1 {
            bytes -= self.kept.remove(0).1.bytes;
        }
        Ok(dataset)
    }
}

impl Dataset {
    fn load(
        shard: Digest,
        scaling: &Scaling,
        files: &Files,
        device: Device,
    ) -> Result<Self, TrainError> {
        Self::of(&read(files, shard)?, scaling, files, device)
    }

    /// The dataset in a shard's bytes, on the device.
    pub(crate) fn of(
        bytes: &[u8],
        scaling: &Scaling,
        files: &Files,
        device: Device,
    ) -> Result<Self, TrainError> {
        let views = decode(bytes).map_err(|source| TrainError::Blob { what: "shard", source })?;
        let [x, y] = views.as_slice() else {
            return Err(unit("a shard must hold exactly `x` and `y`"));
        };
        let rows = match x.shape.as_slice() {
            [rows, _]
                if x.name == "x" && matches!(x.dtype, Dtype::F32 | Dtype::U8) && *rows > 0 =>
            {
                *rows
            }
            _ => return Err(unit("a shard's `x` must be F32 or U8 of shape [rows, features]")),
        };
        if y.name != "y" || y.shape != [rows] || !matches!(y.dtype, Dtype::F32 | Dtype::I64) {
            return Err(unit("a shard's `y` must be I64 or F32 of shape [rows]"));
        }
        let (x, is_bytes) = (tensor(x)?, x.dtype == Dtype::U8);
        let scaler = Scaler::of(scaling, &x, files)?;
        let (x, unscaled) = match is_bytes {
            true => (x, Some(scaler.to_device(device)?)),
            false => (scaler.apply(x)?, None),
        };
        let y = tensor(y)?;
        let labels = match y.f_kind()? {
            Kind::Int64 => {
                if y.f_min()?.f_int64_value(&[])? < 0 {
                    return Err(unit("a shard has a class index below 0"));
                }
                Labels::Classes { last: y.f_max()?.f_int64_value(&[])? }
            }
            _ => Labels::Numbers,
        };
        let (x, y) = (x.f_to_device(device)?, y.f_to_device(device)?);
        Ok(Self { x, unscaled, y, labels, bytes: bytes.len() })
    }

    /// Rows, and features of each.
    pub(crate) fn size(&self) -> Result<(i64, i64), TrainError> {
        Ok(self.x.size2()?)
    }

    /// Where it is.
    pub(crate) fn device(&self) -> Device {
        self.x.device()
    }

    /// The labels, `[rows]`: class indices, or numbers in single precision.
    pub(crate) const fn y(&self) -> &Tensor {
        &self.y
    }

    /// The rows of these numbers, in this order: `[rows, features]` as a model takes them.
    pub(crate) fn select(&self, order: &Tensor) -> Result<Tensor, TrainError> {
        self.scaled(self.x.f_index_select(0, order)?)
    }

    /// `count` rows from `start` on, as [`Dataset::select`] gives them, and their labels.
    pub(crate) fn range(&self, start: i64, count: i64) -> Result<(Tensor, Tensor), TrainError> {
        let x = self.x.f_narrow(0, start, count)?;
        Ok((self.scaled(x)?, self.y.f_narrow(0, start, count)?))
    }

    /// The same numbers as if they had been kept in single precision: all arithmetic is number by number.
    fn scaled(&self, x: Tensor) -> Result<Tensor, TrainError> {
        match &self.unscaled {
            Some(scaler) => scaler.apply(x.f_to_kind(Kind::Float)?),
            None => Ok(x),
        }
    }

    fn check(&self, shard: &Shard, context: &TrialContext) -> Result<(), TrainError> {
        let features: u64 = context.shape.iter().map(|side| u64::from(*side)).product();
        let (rows, columns) = self.x.size2()?;
        if u64::try_from(rows)? != u64::from(shard.rows) {
            return Err(unit(format!("the shard has {rows} rows, the unit says {}", shard.rows)));
        }
        if u64::try_from(columns)? != features {
            return Err(unit(format!(
                "the shard has {columns} features, the unit says {features}"
            )));
        }
        match (self.labels, context.config.training.loss) {
            (Labels::Numbers, Loss::Mse) if context.outputs == 1 => Ok(()),
            (Labels::Numbers, Loss::Mse) => Err(unit("`mse` takes a model with one output")),
            (Labels::Classes { last }, Loss::CrossEntropy) if last < i64::from(context.outputs) => {
                Ok(())
            }
            (Labels::Classes { last }, Loss::CrossEntropy) => {
                let outputs = context.outputs;
                Err(unit(format!("the shard has class {last}, the model has {outputs} outputs")))
            }
            (Labels::Classes { .. }, Loss::Mse) => Err(unit("`mse` takes numeric labels")),
            (Labels::Numbers, Loss::CrossEntropy) => Err(unit("`cross-entropy` takes classes")),
        }
    }
}

/// The bytes of a blob's file, if they are the blob's: a file in a cache may have been altered since it
/// was checked, and nothing may be trained on that.
pub(crate) fn read(files: &Files, blob: Digest) -> Result<Vec<u8>, TrainError> {
    let path = files.get(&blob).ok_or(TrainError::NoFile(blob))?;
    let bytes = fs::read(path).map_err(|source| match source.kind() {
        // Somebody has deleted it, as a whole cache may be: the unit isn't to blame.
        io::ErrorKind::NotFound => TrainError::Damaged(blob),
        _ => TrainError::File { verb: "read", path: path.clone(), source },
    })?;
    if Digest::of(&bytes) == blob { Ok(bytes) } else { Err(TrainError::Damaged(blob)) }
}

fn unit(message: impl Into<String>) -> TrainError {
    TrainError::Unit(message.into())
}

/// A copy of a decoded tensor.
pub(crate) fn tensor(view: &TensorView<'_>) -> Result<Tensor, TrainError> {
    let shape =
        view.shape.iter().map(|side| i64::try_from(*side)).collect::<Result<Vec<_>, _>>()?;
    Ok(Tensor::f_from_data_size(view.data, &shape, kind(view.dtype)?)?)
}

/// What makes numbers of a data set's those that a model takes.
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
    fn to_device(&self, device: Device) -> Result<Self, TrainError> {
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
