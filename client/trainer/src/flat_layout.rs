//! The layout of several tensors in one flat tensor.
//!
//! Slices start at multiples of 64 bytes, as separate tensors would: the arithmetic of some kernels
//! depends on alignment. The padding between them is 0 and stays 0.

use crate::error::TrainError;
use sojourn_model::TensorSpec;
use std::{collections::BTreeMap, ops::Range};
use tch::{Device, Kind, Tensor};

/// Numbers between the starts of slices are a multiple of this: 64 bytes.
const ALIGN: usize = 16;

/// The slices of single-precision tensors in a flat one.
#[derive(Debug)]
pub(crate) struct FlatLayout {
    slices: Vec<Slice>,
    by_name: BTreeMap<String, usize>,
    /// Numbers in the flat tensor.
    len: usize,
}

/// The slice of one tensor; `start` and `len` count numbers.
#[derive(Debug)]
struct Slice {
    name: String,
    shape: Vec<i64>,
    start: usize,
    len: usize,
}

impl FlatLayout {
    /// Lays out these tensors, in their order.
    pub(crate) fn of(specs: &[TensorSpec]) -> Result<Self, TrainError> {
        let mut slices = Vec::with_capacity(specs.len());
        let mut end = 0usize;
        for spec in specs {
            let elements = spec.elements();
            let elements =
                elements.map_err(|source| TrainError::Blob { what: "checkpoint", source })?;
            let len = usize::try_from(elements)?;
            let shape =
                spec.shape.iter().map(|side| i64::try_from(*side)).collect::<Result<_, _>>()?;
            slices.push(Slice { name: spec.name.clone(), shape, start: end, len });
            end = (end + len).next_multiple_of(ALIGN);
        }
        let by_name = slices.iter().map(|slice| slice.name.clone()).zip(0..).collect();
        Ok(Self { slices, by_name, len: end })
    }

    /// The flat tensor on the device; `bytes` gives the contents of each tensor by its name.
    pub(crate) fn flat<'a>(
        &self,
        device: Device,
        bytes: impl Fn(&str) -> Result<&'a [u8], TrainError>,
    ) -> Result<Tensor, TrainError> {
        let mut all = vec![0u8; self.len * 4];
        for slice in &self.slices {
            if let Some(target) = all.get_mut(slice.bytes()) {
                target.copy_from_slice(bytes(&slice.name)?);
            }
        }
        let flat = Tensor::f_from_data_size(&all, &[i64::try_from(self.len)?], Kind::Float)?;
        Ok(flat.f_to_device(device)?)
    }

    /// For each number of the flat tensor whether it is of a tensor whose shape fits; the padding is of none.
    pub(crate) fn mask(
        &self,
        device: Device,
        fits: impl Fn(&[i64]) -> bool,
    ) -> Result<Tensor, TrainError> {
        let mut mask = vec![0u8; self.len];
        for slice in self.slices.iter().filter(|slice| fits(&slice.shape)) {
            if let Some(numbers) = mask.get_mut(slice.start..slice.start + slice.len) {
                numbers.fill(1);
            }
        }
        let mask = Tensor::f_from_data_size(&mask, &[i64::try_from(self.len)?], Kind::Bool)?;
        Ok(mask.f_to_device(device)?)
    }

    /// The tensors one by one, each sharing its numbers with its slice of `flat`.
    pub(crate) fn slices(&self, flat: &Tensor) -> Result<Vec<Tensor>, TrainError> {
        self.slices.iter().map(|slice| slice.view(flat)).collect()
    }

    /// The ranges of numbers in the flat tensor that the tensors with these indices, rising, lie in.
    pub(crate) fn runs(&self, indices: &[usize]) -> impl Iterator<Item = Range<usize>> {
        let end = |index: usize| self.slices.get(index + 1).map_or(self.len, |next| next.start);
        let mut runs: Vec<Range<usize>> = Vec::new();
        for index in indices {
            let Some(slice) = self.slices.get(*index) else { continue };
            match runs.last_mut() {
                Some(last) if last.end == slice.start => last.end = end(*index),
                _ => runs.push(slice.start..end(*index)),
            }
        }
        runs.into_iter()
    }

    /// The byte range of a tensor in the flat one.
    pub(crate) fn bytes(&self, name: &str) -> Option<Range<usize>> {
        let slice = self.slices.get(*self.by_name.get(name)?)?;
        Some(slice.bytes())
    }
}

impl Slice {
    fn bytes(&self) -> Range<usize> {
        self.start * 4..(self.start + self.len) * 4
    }

    fn view(&self, flat: &Tensor) -> Result<Tensor, TrainError> {
        let (start, len) = (i64::try_from(self.start)?, i64::try_from(self.len)?);
        Ok(flat.f_narrow(0, start, len)?.f_view(self.shape.as_slice())?)
    }
}
