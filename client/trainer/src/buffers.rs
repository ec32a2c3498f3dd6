//! The buffers of a model: what is kept with its parameters and moved by the model itself.

use crate::{error::TrainError, flat_layout::FlatLayout, kind::kind};
use sojourn_model::{Dtype, TensorSpec};
use tch::{Device, Kind, Tensor};

/// Real numbers in one flat tensor, and whole numbers each in its own.
#[derive(Debug)]
pub(crate) struct Buffers {
    places: FlatLayout,
    /// All that are in single precision.
    real: Tensor,
    /// The others, by name.
    whole: Vec<(String, Tensor)>,
    /// All of them one by one, in the model's order.
    each: Vec<Tensor>,
}

impl Buffers {
    /// The buffers on the device; `bytes` gives the contents of each by its name.
    pub(crate) fn load<'a>(
        specs: &[TensorSpec],
        device: Device,
        bytes: impl Fn(&str) -> Result<&'a [u8], TrainError>,
    ) -> Result<Self, TrainError> {
        let is_real = |spec: &&TensorSpec| spec.dtype == Dtype::F32;
        let places = FlatLayout::of(&specs.iter().filter(is_real).cloned().collect::<Vec<_>>())?;
        let real = places.flat(device, &bytes)?;
        let mut reals = places.slices(&real)?.into_iter();
        let (mut whole, mut each) = (Vec::new(), Vec::with_capacity(specs.len()));
        for spec in specs {
            if spec.dtype == Dtype::F32 {
                // Under a counter of changes of its own: one that a graph moves doesn't make autograd think that
                // the others, which it may need for a gradient, were moved too.
                each.extend(reals.next().map(|slice| slice.f_data()).transpose()?);
                continue;
            }
            let sides = spec.shape.iter().map(|side| i64::try_from(*side));
            let shape = sides.collect::<Result<Vec<_>, _>>()?;
            let tensor = Tensor::f_from_data_size(bytes(&spec.name)?, &shape, kind(spec.dtype)?)?;
            let tensor = tensor.f_to_device(device)?;
            each.push(tensor.shallow_clone());
            whole.push((spec.name.clone(), tensor));
        }
        Ok(Self { places, real, whole, each })
    }

    /// All of them one by one, in the model's order.
    pub(crate) fn each(&self) -> &[Tensor] {
        &self.each
    }

    /// All real numbers.
    pub(crate) const fn real(&self) -> &Tensor {
        &self.real
    }

    /// All of their bytes, for [`BufferBytes::get`].
    pub(crate) fn bytes(&self) -> Result<BufferBytes<'_>, TrainError> {
        let whole = self.whole.iter().map(|(name, tensor)| Ok((name.as_str(), to_bytes(tensor)?)));
        let whole = whole.collect::<Result<_, TrainError>>()?;
        Ok(BufferBytes { places: &self.places, real: to_bytes(&self.real)?, whole })
    }
}

/// The bytes of buffers, as checkpoints have them.
#[derive(Debug)]
pub(crate) struct BufferBytes<'a> {
    places: &'a FlatLayout,
    real: Vec<u8>,
    whole: Vec<(&'a str, Vec<u8>)>,
}

impl BufferBytes<'_> {
    /// The bytes of one buffer.
    pub(crate) fn get(&self, name: &str) -> Option<&[u8]> {
        match self.places.bytes(name) {
            Some(range) => self.real.get(range),
            None => {
                let found = self.whole.iter().find(|(whole, _)| *whole == name);
                found.map(|(_, bytes)| bytes.as_slice())
            }
        }
    }
}

/// A tensor's bytes, from any device.
pub(crate) fn to_bytes(tensor: &Tensor) -> Result<Vec<u8>, TrainError> {
    let size = match tensor.f_kind()? {
        Kind::Int64 => 8,
        _ => 4,
    };
    let numel = tensor.numel();
    let mut bytes = vec![0; numel * size];
    tensor.f_to_device(Device::Cpu)?.f_copy_data_u8(&mut bytes, numel)?;
    Ok(bytes)
}
