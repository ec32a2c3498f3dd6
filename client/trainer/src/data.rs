//! Shards as tensors: read once, kept in memory for the hops that come back to them. Single precision is scaled once;
//! bytes stay bytes, and are scaled whenever a batch takes them.

use crate::{
    batch::{Batch, X, Y},
    columns::Column,
    error::{TrainError, unit},
    files::{Files, read},
    graph::{Graphs, Program},
    kind::tensor,
    scaler::Scaler,
};
use sojourn_codec::{Dtype, TensorSpec, TensorView, decode};
use sojourn_model::shard::RowsShape;
use sojourn_protocol::{
    column::{Column as Described, check_columns},
    digest::Digest,
    manifest::{Scaling, Shard},
    spec::Loss,
    unit::TrialContext,
};
use std::rc::Rc;
use tch::{Device, Kind, Tensor};

/// Bytes of tensors that are kept; the shard in use may be larger.
const CAPACITY: usize = 1 << 30;

/// A shard, checked against what trials may ask of it.
#[derive(Debug)]
pub(crate) struct Dataset {
    columns: Vec<Column>,
    /// The names that a batch has for the columns: two for a column of sequences.
    names: Rc<[String]>,
    rows: i64,
    device: Device,
    labels: Labels,
    /// Bytes that it takes in memory, about.
    bytes: usize,
}

#[derive(Debug)]
enum Labels {
    /// `[rows]`: class indices from 0 to `last`, at most.
    Classes { y: Tensor, last: i64 },
    /// `[rows]`, in single precision.
    Numbers(Tensor),
    /// The data has columns by name.
    None,
}

/// Shards in memory, the most recently used last, and the graphs that are trained on them.
#[derive(Debug)]
pub(crate) struct Shards {
    device: Device,
    graphs: Graphs,
    kept: Vec<(Key, Rc<Dataset>)>,
}

/// A shard under one scaling, or with columns by name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    shard: Digest,
    scaling: ScalingKey,
    columns: Vec<Described>,
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
        let key = Key { shard: shard.blob.sha256, scaling, columns: context.columns.clone() };
        let found = self.kept.iter().position(|(kept, _)| *kept == key);
        let dataset = match found {
            Some(index) => self.kept.remove(index).1,
            None => Rc::new(Dataset::load(shard.blob.sha256, context, files, self.device)?),
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
        context: &TrialContext,
        files: &Files,
        device: Device,
    ) -> Result<Self, TrainError> {
        let bytes = read(files, shard)?;
        match context.columns.as_slice() {
            [] => Self::of_rows(&bytes, &context.scaling, files, device),
            columns => Self::of_columns(&bytes, columns, device),
        }
    }

    /// Rows of numbers with a label, in a shard's bytes; on the device.
    pub(crate) fn of_rows(
        bytes: &[u8],
        scaling: &Scaling,
        files: &Files,
        device: Device,
    ) -> Result<Self, TrainError> {
        let views = decode(bytes).map_err(|source| TrainError::Blob { what: "shard", source })?;
        let specs: Vec<TensorSpec> = views.iter().map(TensorView::spec).collect();
        let rows = RowsShape::of(&specs).map_err(unit)?.rows;
        let [x, y] = views.as_slice() else {
            return Err(unit("a shard must hold exactly `x` and `y`"));
        };
        let (x, is_bytes) = (tensor(x)?, x.dtype == Dtype::U8);
        let scaler = Scaler::of(scaling, &x, files)?;
        let x = match is_bytes {
            true => Column::Bytes(x.f_to_device(device)?, scaler.to_device(device)?),
            false => Column::Plain(scaler.apply(x)?.f_to_device(device)?),
        };
        let y = tensor(y)?;
        let last = match y.f_kind()? {
            Kind::Int64 if y.f_min()?.f_int64_value(&[])? < 0 => {
                return Err(unit("a shard has a class index below 0"));
            }
            Kind::Int64 => Some(y.f_max()?.f_int64_value(&[])?),
            _ => None,
        };
        let y = y.f_to_device(device)?;
        let labels = match last {
            Some(last) => Labels::Classes { y: y.shallow_clone(), last },
            None => Labels::Numbers(y.shallow_clone()),
        };
        let names = Rc::from([X.to_owned(), Y.to_owned()]);
        let (columns, rows) = (vec![x, Column::Plain(y)], i64::try_from(rows)?);
        Ok(Self { columns, names, rows, device, labels, bytes: bytes.len() })
    }

    /// Rows of scaled numbers without labels, `[rows, features]`.
    pub(crate) fn of_x(x: Tensor) -> Result<Self, TrainError> {
        let (rows, _) = x.size2()?;
        let (device, bytes) = (x.device(), 0);
        let names = Rc::from([X.to_owned()]);
        let columns = vec![Column::Plain(x)];
        Ok(Self { columns, names, rows, device, labels: Labels::None, bytes })
    }

    /// Columns by name, in a shard's bytes; on the device.
    pub(crate) fn of_columns(
        bytes: &[u8],
        described: &[Described],
        device: Device,
    ) -> Result<Self, TrainError> {
        check_columns(described).map_err(unit)?;
        let mut views =
            decode(bytes).map_err(|source| TrainError::Blob { what: "shard", source })?;
        let (mut columns, mut names) = (Vec::new(), Vec::new());
        let mut all_rows = None;
        for column in described {
            let (taken, rows) = Column::take(column, &mut views, device)?;
            if *all_rows.get_or_insert(rows) != rows {
                return Err(unit(format!("the shard has other rows of `{}`", column.name)));
            }
            columns.push(taken);
            names.push(column.name.clone());
            names.extend(column.length_name());
        }
        if let Some(view) = views.first() {
            return Err(unit(format!("the shard has `{}`, which is no column", view.name)));
        }
        let rows = all_rows.filter(|rows| *rows > 0).ok_or_else(|| unit("a shard has no rows"))?;
        let (names, labels) = (names.into(), Labels::None);
        Ok(Self { columns, names, rows, device, labels, bytes: bytes.len() })
    }

    /// How many rows there are.
    pub(crate) const fn rows(&self) -> i64 {
        self.rows
    }

    /// Where it is.
    pub(crate) const fn device(&self) -> Device {
        self.device
    }

    /// Bytes of a row in a batch.
    pub(crate) fn row_bytes(&self) -> usize {
        self.columns.iter().map(Column::row_bytes).fold(0, usize::saturating_add)
    }

    /// The labels, `[rows]`, where rows have such: class indices, or numbers in single precision.
    pub(crate) const fn labels(&self) -> Option<&Tensor> {
        match &self.labels {
            Labels::Classes { y, .. } | Labels::Numbers(y) => Some(y),
            Labels::None => None,
        }
    }

    /// The rows of these numbers, `[rows]`, in this order.
    pub(crate) fn select(&self, order: &Tensor) -> Result<Batch, TrainError> {
        let mut taken = Vec::with_capacity(self.names.len());
        self.columns.iter().try_for_each(|column| column.select(order, &mut taken))?;
        Ok(Batch::new(Rc::clone(&self.names), taken, order.size1()?))
    }

    /// `count` rows from `start` on.
    pub(crate) fn range(&self, start: i64, count: i64) -> Result<Batch, TrainError> {
        let mut taken = Vec::with_capacity(self.names.len());
        self.columns.iter().try_for_each(|column| column.range(start, count, &mut taken))?;
        Ok(Batch::new(Rc::clone(&self.names), taken, count))
    }

    fn check(&self, shard: &Shard, context: &TrialContext) -> Result<(), TrainError> {
        let rows = self.rows;
        if u64::try_from(rows)? != u64::from(shard.rows) {
            return Err(unit(format!("the shard has {rows} rows, the unit says {}", shard.rows)));
        }
        let features: u64 = context.shape.iter().map(|side| u64::from(*side)).product();
        if let Some(Column::Plain(x) | Column::Bytes(x, _)) = self.columns.first()
            && context.columns.is_empty()
            && u64::try_from(x.size2()?.1)? != features
        {
            let (_, columns) = x.size2()?;
            return Err(unit(format!(
                "the shard has {columns} features, the unit says {features}"
            )));
        }
        match (&self.labels, context.config.training.loss) {
            (Labels::Numbers(_), Loss::Mse) if context.outputs == 1 => Ok(()),
            (Labels::Numbers(_), Loss::Mse) => Err(unit("`mse` takes a model with one output")),
            (Labels::Classes { last, .. }, Loss::CrossEntropy)
                if *last < i64::from(context.outputs) =>
            {
                Ok(())
            }
            (Labels::Classes { last, .. }, Loss::CrossEntropy) => {
                let outputs = context.outputs;
                Err(unit(format!("the shard has class {last}, the model has {outputs} outputs")))
            }
            (Labels::Classes { .. }, Loss::Mse) => Err(unit("`mse` takes numeric labels")),
            (Labels::Numbers(_), Loss::CrossEntropy) => Err(unit("`cross-entropy` takes classes")),
            (Labels::None, Loss::Own) => Ok(()),
            (Labels::None, _) | (_, Loss::Own) => {
                Err(unit("columns by name go with a loss of the model's own"))
            }
        }
    }
}
