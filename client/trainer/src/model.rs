//! A trial's model in memory: parameters and optimiser state, each in one flat tensor.
//!
//! Every parameter is a leaf that shares its numbers with a slice of `weights`, and its gradient is
//! copied into the same slice of `gradient`; so an optimiser does its few operations once, not once
//! per parameter. Slices start at multiples of 64 bytes, as separate tensors would: the arithmetic
//! of some kernels depends on alignment. What lies between them is 0 and stays 0.

use crate::error::TrainError;
use sojourn_codec::decode;
use sojourn_model::{CheckpointLayout, LINEAGE, Lineage, Network, optimizer_slots};
use sojourn_protocol::{
    digest::{BlobRef, Hasher},
    unit::TrialContext,
};
use std::{
    fs,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};
use tch::{Kind, Tensor};

/// Numbers between the starts of slices are a multiple of this: 64 bytes.
const ALIGN: usize = 16;

/// Parameters, gradient and optimiser state of one trial.
#[derive(Debug)]
pub(crate) struct Model {
    layout: CheckpointLayout,
    slots: &'static [&'static str],
    places: Vec<Place>,
    /// All parameters.
    pub(crate) weights: Tensor,
    /// All gradients, in the places of their parameters.
    pub(crate) gradient: Tensor,
    /// The optimiser's state, one tensor per slot, in the places of the parameters.
    pub(crate) state: Vec<Tensor>,
    /// The parameters one by one, each layer's weight before its bias.
    pub(crate) leaves: Vec<Tensor>,
    gradients: Vec<Tensor>,
    /// What the checkpoint said of itself.
    pub(crate) lineage: Lineage,
}

/// Where a parameter lies in the flat tensors, in numbers.
#[derive(Debug, Clone)]
struct Place {
    name: String,
    shape: Vec<i64>,
    start: usize,
    len: usize,
}

impl Model {
    /// The model in a checkpoint's bytes, ready to be trained.
    pub(crate) fn load(context: &TrialContext, checkpoint: &[u8]) -> Result<Self, TrainError> {
        let layout = CheckpointLayout::of(context)?;
        let blob = |source| TrainError::Blob { what: "checkpoint", source };
        let views = decode(checkpoint).map_err(blob)?;
        if !views.iter().map(|view| view.spec()).eq(layout.tensors().iter().cloned()) {
            let text = "the checkpoint's tensors aren't those of the trial's model";
            return Err(TrainError::Unit(text.into()));
        }
        let find = |name: &str| {
            let index = views.binary_search_by(|view| view.name.as_str().cmp(name)).ok();
            index
                .and_then(|index| views.get(index))
                .ok_or_else(|| TrainError::Unit(format!("the checkpoint lacks `{name}`")))
        };
        let numbers: Vec<i64> = find(LINEAGE)?.i64s().map_err(blob)?.collect();
        let lineage = Lineage::from_numbers(&numbers)?;

        let mut places = Vec::with_capacity(layout.parameters().len());
        let mut end = 0usize;
        for spec in layout.parameters() {
            let len = usize::try_from(spec.elements().map_err(blob)?)?;
            let shape =
                spec.shape.iter().map(|side| i64::try_from(*side)).collect::<Result<_, _>>()?;
            places.push(Place { name: spec.name.clone(), shape, start: end, len });
            end = (end + len).next_multiple_of(ALIGN);
        }
        let flat = |prefix: &str| -> Result<Tensor, TrainError> {
            let mut bytes = vec![0u8; end * 4];
            for place in &places {
                let view = find(&format!("{prefix}{}", place.name))?;
                if let Some(target) = bytes.get_mut(place.bytes()) {
                    target.copy_from_slice(view.data);
                }
            }
            Ok(Tensor::f_from_data_size(&bytes, &[i64::try_from(end)?], Kind::Float)?)
        };
        let weights = flat("")?;
        let slots = optimizer_slots(&context.config.training.optimizer);
        let state = slots.iter().map(|slot| flat(slot)).collect::<Result<Vec<_>, _>>()?;
        let gradient = weights.f_zeros_like()?;
        let mut leaves = Vec::with_capacity(places.len());
        let mut gradients = Vec::with_capacity(places.len());
        for place in &places {
            leaves.push(place.slice(&weights)?.f_detach()?.f_set_requires_grad(true)?);
            gradients.push(place.slice(&gradient)?);
        }
        Ok(Self { layout, slots, places, weights, gradient, state, leaves, gradients, lineage })
    }

    /// The layers whose parameters these are.
    pub(crate) const fn network(&self) -> &Network {
        self.layout.network()
    }

    /// Computes the gradient of `loss`, replacing the one before.
    pub(crate) fn backward(&mut self, loss: &Tensor) -> Result<(), TrainError> {
        let gradients = Tensor::f_run_backward(&[loss], &self.leaves, false, false)?;
        for (place, gradient) in self.gradients.iter_mut().zip(&gradients) {
            place.f_copy_(gradient)?;
        }
        Ok(())
    }

    /// Refuses parameters or state that have left the finite.
    pub(crate) fn check_finite(&self) -> Result<(), TrainError> {
        let flats =
            std::iter::once((&"weight", &self.weights)).chain(self.slots.iter().zip(&self.state));
        for (what, flat) in flats {
            if flat.f_isfinite()?.f_all()?.f_int64_value(&[])? == 0 {
                let what = what.trim_end_matches('.');
                return Err(TrainError::NonFinite(format!(
                    "a `{what}` is not finite after training"
                )));
            }
        }
        Ok(())
    }

    /// Writes the canonical checkpoint and gives its reference. The file appears whole, by a rename.
    pub(crate) fn save(&self, lineage: &Lineage, output: &Path) -> Result<BlobRef, TrainError> {
        let mut partial = output.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let failed = |source| TrainError::File { verb: "write", path: output.to_owned(), source };
        let write = || {
            let mut file = BufWriter::new(fs::File::create(&partial).map_err(failed)?);
            let blob = self.write(lineage, &mut file, &failed)?;
            file.flush().map_err(failed)?;
            fs::rename(&partial, output).map_err(failed)?;
            Ok(blob)
        };
        write().inspect_err(|_| {
            fs::remove_file(&partial).ok();
        })
    }

    /// The reference of the canonical checkpoint, which goes nowhere.
    pub(crate) fn digest(&self, lineage: &Lineage) -> Result<BlobRef, TrainError> {
        let failed = |source| TrainError::File { verb: "write", path: PathBuf::new(), source };
        self.write(lineage, &mut io::sink(), &failed)
    }

    fn write(
        &self,
        lineage: &Lineage,
        sink: &mut dyn Write,
        failed: &dyn Fn(io::Error) -> TrainError,
    ) -> Result<BlobRef, TrainError> {
        let numbers: Vec<u8> =
            lineage.to_numbers().iter().flat_map(|number| number.to_le_bytes()).collect();
        let weights = self.flat_bytes(&self.weights)?;
        let mut hasher = Hasher::default();
        let mut put = |bytes: &[u8]| {
            hasher.update(bytes);
            sink.write_all(bytes).map_err(failed)
        };
        put(self.layout.layout().header())?;
        // In name order a slot's tensors follow each other, so one flat copy at a time is enough.
        let mut state: Option<(usize, Vec<u8>)> = None;
        for spec in self.layout.tensors() {
            if spec.name == LINEAGE {
                put(&numbers)?;
                continue;
            }
            let slot = self.slots.iter().position(|slot| spec.name.starts_with(slot));
            let (parameter, bytes) = match slot {
                None => (spec.name.as_str(), &weights),
                Some(index) => {
                    if state.as_ref().is_none_or(|(held, _)| *held != index) {
                        let flat = self.state.get(index).ok_or_else(|| missing(&spec.name))?;
                        state = Some((index, self.flat_bytes(flat)?));
                    }
                    let prefix = self.slots.get(index).copied().unwrap_or_default();
                    let name = spec.name.strip_prefix(prefix).unwrap_or_default();
                    let held = state.as_ref().ok_or_else(|| missing(&spec.name))?;
                    (name, &held.1)
                }
            };
            let place = self.places.iter().find(|place| place.name == parameter);
            let slice = place.and_then(|place| bytes.get(place.bytes()));
            put(slice.ok_or_else(|| missing(&spec.name))?)?;
        }
        Ok(BlobRef { sha256: hasher.finish(), bytes: self.layout.file_bytes() })
    }

    fn flat_bytes(&self, flat: &Tensor) -> Result<Vec<u8>, TrainError> {
        let numel = flat.numel();
        let mut bytes = vec![0; numel * 4];
        flat.f_copy_data_u8(&mut bytes, numel)?;
        Ok(bytes)
    }
}

impl Place {
    fn bytes(&self) -> std::ops::Range<usize> {
        self.start * 4..(self.start + self.len) * 4
    }

    fn slice(&self, flat: &Tensor) -> Result<Tensor, TrainError> {
        let (start, len) = (i64::try_from(self.start)?, i64::try_from(self.len)?);
        Ok(flat.f_narrow(0, start, len)?.f_view(self.shape.as_slice())?)
    }
}

fn missing(name: &str) -> TrainError {
    TrainError::Unit(format!("the model has no place for `{name}`"))
}
