//! A shard's columns as tensors, and what a batch gets of them.

use crate::{
    error::{TrainError, unit},
    kind::tensor,
    scaler::Scaler,
};
use sojourn_codec::{Dtype, TensorView};
use sojourn_protocol::column::Column as Described;
use tch::{Device, Kind, Tensor};

/// The most numbers of sequences that are padded at once.
const MAX_PADDED: i64 = 1 << 30;

/// One column of a shard, on a device.
#[derive(Debug)]
pub(crate) enum Column {
    /// `[rows, ...]`, as a batch gets it.
    Plain(Tensor),
    /// Bytes `[rows, features]` that a batch gets scaled, in single precision.
    Bytes(Tensor, Scaler),
    /// Rows of different lengths.
    Sequences(Sequences),
}

/// Rows of different lengths, one behind another.
#[derive(Debug)]
pub(crate) struct Sequences {
    /// `[elements of all rows, ...]`
    elements: Tensor,
    /// `[rows]`: where each row begins.
    starts: Tensor,
    /// `[rows]`: how many elements it has.
    lengths: Tensor,
    longest: i64,
}

impl Column {
    /// The column as it is described, out of a shard's tensors; takes from `views` those that it is. Also returns its rows.
    pub(crate) fn take(
        described: &Described,
        views: &mut Vec<TensorView<'_>>,
        device: Device,
    ) -> Result<(Self, i64), TrainError> {
        let name = &described.name;
        let view = take(views, name)?;
        let sides: Vec<u64> = described.shape.iter().map(|side| u64::from(*side)).collect();
        if view.dtype != described.dtype || view.shape.get(1..) != Some(&sides) {
            let (dtype, shape) = (described.dtype.name(), &described.shape);
            return Err(unit(format!(
                "a shard's `{name}` must be {dtype}, and a row of it of shape {shape:?}"
            )));
        }
        let elements = tensor(&view)?;
        let count = elements.size().first().copied().unwrap_or_default();
        let Some(longest) = described.longest else {
            return Ok((Column::Plain(elements.f_to_device(device)?), count));
        };
        let ends_name = format!("{name}.ends");
        let view = take(views, &ends_name)?;
        if view.dtype != Dtype::I64 || view.shape.len() != 1 {
            return Err(unit(format!("a shard's `{ends_name}` must be I64 of shape [rows]")));
        }
        let ends = view.i64s().map_err(|source| TrainError::Blob { what: "shard", source })?;
        let ends: Vec<i64> = ends.collect();
        let mut before = 0;
        let (mut starts, mut lengths) = (Vec::new(), Vec::new());
        for end in &ends {
            let length =
                end.checked_sub(before).filter(|length| (0..=i64::from(longest)).contains(length));
            let length = length.ok_or_else(|| {
                unit(format!("a row of the shard's `{name}` ends before it begins, or is too long"))
            })?;
            starts.push(before);
            lengths.push(length);
            before = *end;
        }
        if before != count {
            return Err(unit(format!("the rows of the shard's `{name}` aren't all that it holds")));
        }
        let index = |numbers: &[i64]| {
            Ok::<_, TrainError>(Tensor::f_from_slice(numbers)?.f_to_device(device)?)
        };
        let (starts, lengths) = (index(&starts)?, index(&lengths)?);
        let elements = elements.f_to_device(device)?;
        let rows = i64::try_from(ends.len())?;
        let longest = i64::from(longest);
        Ok((Column::Sequences(Sequences { elements, starts, lengths, longest }), rows))
    }

    /// Appends what a batch gets of these rows, in this order.
    pub(crate) fn select(&self, order: &Tensor, into: &mut Vec<Tensor>) -> Result<(), TrainError> {
        match self {
            Column::Plain(column) => into.push(column.f_index_select(0, order)?),
            Column::Bytes(column, scaler) => {
                into.push(scaler.apply(column.f_index_select(0, order)?.f_to_kind(Kind::Float)?)?);
            }
            Column::Sequences(rows) => {
                let (starts, lengths) =
                    (rows.starts.f_index_select(0, order)?, rows.lengths.f_index_select(0, order)?);
                into.push(rows.padded(&starts, &lengths)?);
                into.push(lengths);
            }
        }
        Ok(())
    }

    /// Appends what a batch gets of `count` rows from `start` on.
    pub(crate) fn range(
        &self,
        start: i64,
        count: i64,
        into: &mut Vec<Tensor>,
    ) -> Result<(), TrainError> {
        match self {
            Column::Plain(column) => into.push(column.f_narrow(0, start, count)?),
            Column::Bytes(column, scaler) => {
                into.push(scaler.apply(column.f_narrow(0, start, count)?.f_to_kind(Kind::Float)?)?);
            }
            Column::Sequences(rows) => {
                let (starts, lengths) = (
                    rows.starts.f_narrow(0, start, count)?,
                    rows.lengths.f_narrow(0, start, count)?,
                );
                into.push(rows.padded(&starts, &lengths)?);
                into.push(lengths);
            }
        }
        Ok(())
    }

    /// Bytes of a row in a batch.
    pub(crate) fn row_bytes(&self) -> usize {
        let of_row = |tensor: &Tensor, bytes: usize| {
            let rows = tensor.size().first().copied().unwrap_or_default();
            let rows = usize::try_from(rows).unwrap_or_default().max(1);
            tensor.numel() / rows * bytes
        };
        match self {
            Column::Plain(column) => of_row(column, column.kind().elt_size_in_bytes()),
            Column::Bytes(column, _) => of_row(column, size_of::<f32>()),
            Column::Sequences(rows) => {
                let element = of_row(&rows.elements, rows.elements.kind().elt_size_in_bytes());
                usize::try_from(rows.longest).unwrap_or(usize::MAX).saturating_mul(element.max(1))
            }
        }
    }
}

impl Sequences {
    /// `[rows, longest, ...]`: the rows that begin there and are that long, and zeros behind.
    fn padded(&self, starts: &Tensor, lengths: &Tensor) -> Result<Tensor, TrainError> {
        let rows = starts.size1()?;
        let elements = self.elements.size();
        let (count, of_element) = match elements.split_first() {
            Some((count, rest)) => (*count, rest),
            None => (0, &[][..]),
        };
        let shape: Vec<i64> = [rows, self.longest].iter().chain(of_element).copied().collect();
        let elements = shape.iter().try_fold(1i64, |all, side| all.checked_mul(*side));
        if elements.is_none_or(|elements| elements > MAX_PADDED) {
            let text = format!("{rows} rows of {} elements are too many at once", self.longest);
            return Err(unit(format!(
                "{text}: `data.length` cuts longer ones, or take smaller batches"
            )));
        }
        let options = (self.elements.kind(), self.elements.device());
        if count == 0 {
            return Ok(Tensor::f_zeros(&shape, options)?);
        }
        let places = Tensor::f_arange(self.longest, (Kind::Int64, self.elements.device()))?;
        let is_behind = places.f_unsqueeze(0)?.f_ge_tensor(&lengths.f_unsqueeze(1)?)?;
        let index =
            starts.f_unsqueeze(1)?.f_add(&places.f_unsqueeze(0)?)?.f_clamp_max(count - 1)?;
        let padded =
            self.elements.f_index_select(0, &index.f_reshape([-1])?)?.f_view(shape.as_slice())?;
        let mask: Vec<i64> =
            [rows, self.longest].into_iter().chain(of_element.iter().map(|_| 1)).collect();
        Ok(padded.f_masked_fill(&is_behind.f_view(mask.as_slice())?, 0)?)
    }
}

fn take<'a>(views: &mut Vec<TensorView<'a>>, name: &str) -> Result<TensorView<'a>, TrainError> {
    match views.iter().position(|view| view.name == name) {
        Some(at) => Ok(views.remove(at)),
        None => Err(unit(format!("the shard has no `{name}`"))),
    }
}
