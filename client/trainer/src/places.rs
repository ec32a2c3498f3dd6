//! Where each of several tensors lies in one flat tensor.
//!
//! Slices start at multiples of 64 bytes, as separate tensors would: the arithmetic of some kernels
//! depends on alignment. What lies between them is 0 and stays 0.

use crate::error::TrainError;
use sojourn_model::TensorSpec;
use std::{collections::BTreeMap, ops::Range};
use tch::{Device, Kind, Tensor};

/// Numbers between the starts of slices are a multiple of this: 64 bytes.
const ALIGN: usize = 16;

/// The places of single-precision tensors in a flat one.
#[derive(Debug)]
pub(crate) struct Places {
    places: Vec<Place>,
    by_name: BTreeMap<String, usize>,
    /// Numbers in the flat tensor.
    len: usize,
}

/// One place, in numbers.
#[derive(Debug)]
struct Place {
    name: String,
    shape: Vec<i64>,
    start: usize,
    len: usize,
}

impl Places {
    /// The places of these tensors, in their order.
    pub(crate) fn of(specs: &[TensorSpec]) -> Result<Self, TrainError> {
        let mut places = Vec::with_capacity(specs.len());
        let mut end = 0usize;
        for spec in specs {
            let elements = spec.elements();
            let elements =
                elements.map_err(|source| TrainError::Blob { what: "checkpoint", source })?;
            let len = usize::try_from(elements)?;
            let shape =
                spec.shape.iter().map(|side| i64::try_from(*side)).collect::<Result<_, _>>()?;
            places.push(Place { name: spec.name.clone(), shape, start: end, len });
            end = (end + len).next_multiple_of(ALIGN);
        }
        let by_name = places.iter().map(|place| place.name.clone()).zip(0..).collect();
        Ok(Self { places, by_name, len: end })
    }

    /// The flat tensor of what `bytes` gives for each name, on the device.
    pub(crate) fn flat<'a>(
        &self,
        device: Device,
        bytes: impl Fn(&str) -> Result<&'a [u8], TrainError>,
    ) -> Result<Tensor, TrainError> {
        let mut all = vec![0u8; self.len * 4];
        for place in &self.places {
            if let Some(target) = all.get_mut(place.bytes()) {
                target.copy_from_slice(bytes(&place.name)?);
            }
        }
        let flat = Tensor::f_from_data_size(&all, &[i64::try_from(self.len)?], Kind::Float)?;
        Ok(flat.f_to_device(device)?)
    }

    /// The tensors one by one, each sharing its numbers with its slice of `flat`.
    pub(crate) fn slices(&self, flat: &Tensor) -> Result<Vec<Tensor>, TrainError> {
        self.places.iter().map(|place| place.slice(flat)).collect()
    }

    /// The place of a tensor's bytes among those of the flat one.
    pub(crate) fn bytes(&self, name: &str) -> Option<Range<usize>> {
        let place = self.places.get(*self.by_name.get(name)?)?;
        Some(place.bytes())
    }
}

impl Place {
    fn bytes(&self) -> Range<usize> {
        self.start * 4..(self.start + self.len) * 4
    }

    fn slice(&self, flat: &Tensor) -> Result<Tensor, TrainError> {
        let (start, len) = (i64::try_from(self.start)?, i64::try_from(self.len)?);
        Ok(flat.f_narrow(0, start, len)?.f_view(self.shape.as_slice())?)
    }
}
