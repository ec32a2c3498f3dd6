//! A trial's model in memory: parameters and optimiser state in flat tensors, and buffers.
//!
//! Every parameter is a leaf that shares its numbers with a slice of `weights`, and its gradient is
//! copied into the same slice of `gradient`; so an optimiser does its few operations once, not once
//! per parameter. Where the trial computes in `bf16`, the leaves of fully connected layers and convolutions
//! are slices of a rounded copy of `weights` instead.

use crate::{
    buffers::{Buffers, to_bytes},
    error::TrainError,
    flat_layout::FlatLayout,
    graph::{Program, Tensors},
    moves::{Flat, Moves},
};
use sojourn_codec::decode;
use sojourn_files::{Access, AtomicFile, Durability};
use sojourn_model::{
    CheckpointLayout, Computation, LINEAGE, LayerKind, Lineage, OptimizerSlot, TrialModel,
    optimizer_slots,
};
use sojourn_protocol::{
    digest::{BlobRef, Hasher},
    spec::Precision,
    unit::TrialContext,
};
use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    rc::Rc,
};
use tch::{Device, Kind, Tensor};

/// Parameters, buffers, gradient and optimiser state of one trial.
#[derive(Debug)]
pub(crate) struct Model {
    layout: CheckpointLayout,
    slots: &'static [OptimizerSlot],
    places: FlatLayout,
    /// All parameters.
    pub(crate) weights: Tensor,
    /// All gradients, in the places of their parameters.
    pub(crate) gradient: Tensor,
    /// The optimiser's state, one tensor per slot, in the places of the parameters.
    pub(crate) state: Vec<Tensor>,
    /// All parameters rounded, where the trial computes in rounded numbers.
    rounded: Option<Tensor>,
    /// The parameters one by one as the model computes with them, each layer's weight before its bias.
    pub(crate) leaves: Vec<Tensor>,
    /// The parameters that each stage of a training step moves.
    pub(crate) stages: Vec<Moves>,
    /// The buffers; of a network each batch norm's running mean before its running variance.
    buffers: Buffers,
    precision: Precision,
    /// How it computes, if it is a graph.
    program: Option<Rc<Program>>,
    /// The lineage of the checkpoint.
    pub(crate) lineage: Lineage,
}

impl Model {
    /// The model in a checkpoint's bytes, on the device, ready to be trained. `program` is the graph of a trial that has
    /// one.
    pub(crate) fn load(
        context: &TrialContext,
        checkpoint: &[u8],
        program: Option<Rc<Program>>,
        device: Device,
    ) -> Result<Self, TrainError> {
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

        let places = FlatLayout::of(layout.parameters())?;
        let flat = |prefix: &str| {
            places.flat(device, |name| find(&format!("{prefix}{name}")).map(|view| view.data))
        };
        let weights = flat("")?;
        let slots = optimizer_slots(&context.config.training.optimizer);
        let state = slots.iter().map(|slot| flat(slot.prefix)).collect::<Result<Vec<_>, _>>()?;
        let gradient = weights.f_zeros_like()?;
        let gradients = places.slices(&gradient)?;
        let precision = context.config.training.precision;
        let rounded = match precision {
            Precision::Bf16 if program.is_none() => Some(weights.f_to_kind(Kind::BFloat16)?),
            // A graph rounds where it needs that.
            Precision::F32 | Precision::Bf16 => None,
        };
        let leaves =
            leaves(layout.trial_model().computation(), &places, &weights, rounded.as_ref())?;
        let flat = Flat { places: &places, weights: &weights, gradient: &gradient, state: &state };
        let stages = match &program {
            None => vec![(0..leaves.len()).collect()],
            Some(program) => program.moves().map(<[usize]>::to_vec).collect::<Vec<Vec<usize>>>(),
        };
        let stages = stages.iter().map(|moved| Moves::of(moved, flat, &leaves, &gradients));
        let stages = stages.collect::<Result<_, _>>()?;
        let bytes = |name: &str| find(name).map(|view| view.data);
        let buffers = Buffers::load(layout.buffers(), device, bytes)?;
        Ok(Self {
            layout,
            slots,
            places,
            weights,
            gradient,
            state,
            rounded,
            leaves,
            stages,
            buffers,
            precision,
            program,
            lineage,
        })
    }

    /// The model whose parameters these are.
    pub(crate) const fn trial_model(&self) -> &TrialModel {
        self.layout.trial_model()
    }

    /// The graph that it computes by; none of a built-in network.
    pub(crate) fn program(&self) -> Option<&Program> {
        self.program.as_deref()
    }

    /// The buffers one by one, in the model's order.
    pub(crate) fn buffers(&self) -> &[Tensor] {
        self.buffers.each()
    }

    /// For each number of `weights` whether it is of a parameter with at least two dimensions.
    pub(crate) fn matrices(&self) -> Result<Tensor, TrainError> {
        self.places.mask(self.weights.device(), |shape| shape.len() >= 2)
    }

    /// The model's tensors, as a graph takes them.
    pub(crate) fn tensors(&self) -> Tensors<'_> {
        let (parameters, buffers) = (&self.leaves, self.buffers.each());
        Tensors { parameters, buffers, precision: self.precision }
    }

    /// Computes the gradient of `loss` for what a stage moves, replacing the one before; 0 for all else.
    pub(crate) fn backward(&mut self, stage: usize, loss: &Tensor) -> Result<(), TrainError> {
        let lacks = || TrainError::Unit(format!("the model has no stage {stage}"));
        let moves = self.stages.get_mut(stage).ok_or_else(lacks)?;
        let gradients = Tensor::f_run_backward(&[loss], &moves.leaves, false, false)?;
        if moves.is_partial {
            let _ = self.gradient.f_zero_()?;
        }
        for (place, gradient) in moves.gradients.iter_mut().zip(&gradients) {
            if gradient.defined() {
                place.f_copy_(gradient)?;
            } else {
                let _ = place.f_zero_()?;
            }
        }
        Ok(())
    }

    /// To be called when the weights have moved: rounds them anew, where the model computes with that.
    pub(crate) fn round(&mut self) -> Result<(), TrainError> {
        if let Some(rounded) = &mut self.rounded {
            rounded.f_copy_(&self.weights)?;
        }
        Ok(())
    }

    /// Refuses parameters, buffers or state that have left the finite.
    pub(crate) fn check_finite(&self) -> Result<(), TrainError> {
        let flats = [("weight", &self.weights), ("running statistic", self.buffers.real())];
        let slots = self.slots.iter().map(|slot| slot.prefix);
        let flats = flats.into_iter().chain(slots.zip(&self.state));
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
        let failed = |source| TrainError::File { verb: "write", path: output.to_owned(), source };
        let file = AtomicFile::create(output, Access::Mask).map_err(failed)?;
        let mut file = BufWriter::new(file);
        let blob = self.write(lineage, &mut file, &failed)?;
        let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
        // Not synced: the daemon checks the file's digest wherever it reads it again.
        file.commit(Durability::Unsynced).map_err(failed)?;
        Ok(blob)
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
        let weights = to_bytes(&self.weights)?;
        let buffers = self.buffers.bytes()?;
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
            let slot = self.slots.iter().zip(0usize..).find_map(|(slot, index)| {
                spec.name.strip_prefix(slot.prefix).map(|parameter| (index, parameter))
            });
            let slice = if let Some((index, parameter)) = slot {
                if state.as_ref().is_none_or(|(held, _)| *held != index) {
                    let flat = self.state.get(index).ok_or_else(|| missing(&spec.name))?;
                    state = Some((index, to_bytes(flat)?));
                }
                let held = state.as_ref().map(|(_, bytes)| bytes);
                self.places.bytes(parameter).and_then(|range| held?.get(range))
            } else if let Some(range) = self.places.bytes(&spec.name) {
                weights.get(range)
            } else {
                buffers.get(&spec.name)
            };
            put(slice.ok_or_else(|| missing(&spec.name))?)?;
        }
        Ok(BlobRef { sha256: hasher.finish(), bytes: self.layout.file_bytes() })
    }
}

/// The tensors that gradients are for.
fn leaves(
    computation: &Computation,
    places: &FlatLayout,
    weights: &Tensor,
    rounded: Option<&Tensor>,
) -> Result<Vec<Tensor>, TrainError> {
    let exact = places.slices(weights)?;
    let Computation::Network(network) = computation else {
        return exact.into_iter().map(leaf).collect();
    };
    let rounded = places.slices(rounded.unwrap_or(weights))?;
    // Batch norm's parameters are exact in any precision.
    let of_norm = network.layers().flat_map(|layer| {
        let norm = matches!(layer.kind, LayerKind::BatchNorm { .. });
        std::iter::repeat_n(norm, if layer.bias { 2 } else { 1 })
    });
    let pairs = exact.into_iter().zip(rounded).zip(of_norm);
    let leaves = pairs.map(|((exact, rounded), norm)| leaf(if norm { exact } else { rounded }));
    leaves.collect()
}

/// The same numbers, as a tensor that a gradient is for.
fn leaf(slice: Tensor) -> Result<Tensor, TrainError> {
    Ok(slice.f_detach()?.f_set_requires_grad(true)?)
}

fn missing(name: &str) -> TrainError {
    TrainError::Unit(format!("the model has no place for `{name}`"))
}
