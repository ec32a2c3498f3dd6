//! Model files: what `export` writes, and `predict` and `init` read.
//!
//! ```text
//! | header: __metadata__ { "sojourn": description, "sojourn.rows": trained rows } | parameters, buffers, scaling.mean, scaling.std, sojourn.graph.* |
//! ```
//!
//! Any reader of safetensors reads them, and the description (JSON) says the rest: architecture, shape
//! of a row, names of features and classes, scaling, and where the model comes from. The same trial
//! gives the same bytes. Files that another program wrote again are read too, whatever their order of
//! tensors; whatever the bytes, a reader here neither panics nor takes more memory than they do.

mod description;
mod error;
mod trained_rows;

pub use description::{Description, FileScaling, Origin};
pub use error::ModelFileError;
pub use trained_rows::{KnownAgain, Overlap, TrainedRows};

use crate::{
    error::ModelError,
    initial_weights::{same_tensors, weights_parameters},
};
use safetensors::{SafeTensors, tensor::Metadata};
use sojourn_codec::{
    Dtype, MAX_HEADER_BYTES, Tensor, TensorSpec, TensorView, decode, encode, encode_described,
};
use sojourn_protocol::{digest::Digest, quantity::SaturatingFrom as _};
use std::collections::BTreeMap;

/// The key of the description in a file's metadata.
pub const KEY: &str = "sojourn";
/// The key of [`TrainedRows`] there. Readers that don't know it leave it.
pub const ROWS_KEY: &str = "sojourn.rows";
/// The version of the description.
pub const FORMAT: u32 = 1;

const MEAN: &str = "mean";
const STD: &str = "std";
/// Prefix of a scaling's tensors in a model file.
const SCALING: &str = "scaling.";
/// Prefix of the tensors of a graph's file in a model file.
const GRAPH: &str = "sojourn.graph.";

/// The header of a file, before the rest is read.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelHeader {
    /// The file's description.
    pub description: Description,
    /// A sample of the rows that it was trained on, where the file has one.
    pub trained_rows: Option<TrainedRows>,
    /// Bytes that the whole file must have.
    pub file_bytes: u64,
}

impl ModelHeader {
    /// How many bytes to read for [`ModelHeader::read`], from a file's first eight.
    ///
    /// # Errors
    /// [`ModelFileError::NotSafetensors`] where they can't be a model file's.
    pub fn bytes(prefix: [u8; 8]) -> Result<u64, ModelFileError> {
        let bytes = u64::from_le_bytes(prefix);
        if bytes > MAX_HEADER_BYTES {
            let text = format!("a header of {bytes} bytes; at most {MAX_HEADER_BYTES} are read");
            return Err(ModelFileError::NotSafetensors(text));
        }
        Ok(8 + bytes)
    }

    /// Reads the description in a file's header.
    ///
    /// # Errors
    /// Whatever makes it no model file.
    pub fn read(start: &[u8]) -> Result<Self, ModelFileError> {
        let broken = |text: &str| ModelFileError::NotSafetensors(text.into());
        let (prefix, rest) =
            start.split_first_chunk::<8>().ok_or_else(|| broken("it is too short"))?;
        let end = Self::bytes(*prefix)?;
        let json = usize::try_from(end - 8).ok().and_then(|bytes| rest.get(..bytes));
        let json = json.ok_or_else(|| broken("it ends within its header"))?;
        let metadata: Metadata = serde_json::from_slice(json)
            .map_err(|error| ModelFileError::NotSafetensors(error.to_string()))?;
        let text = |key| metadata.metadata().as_ref().and_then(|entries| entries.get(key));
        let description = Description::parse(text(KEY).ok_or(ModelFileError::NotOurs)?)?;
        let trained_rows = text(ROWS_KEY).map(|text| TrainedRows::parse(text)).transpose()?;
        let data = u64::try_from(metadata.data_len()).ok();
        let file_bytes = data.and_then(|data| end.checked_add(data));
        let file_bytes = file_bytes.ok_or_else(|| broken("it would be too large"))?;
        Ok(Self { description, trained_rows, file_bytes })
    }
}

/// A model file that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFile<'a> {
    /// The file's description.
    pub description: Description,
    /// A sample of the rows that it was trained on, where the file has one.
    pub trained_rows: Option<TrainedRows>,
    model: Vec<TensorView<'a>>,
    scaling: Option<[TensorView<'a>; 2]>,
    graph: Option<Vec<u8>>,
}

impl<'a> ModelFile<'a> {
    /// Reads a whole file.
    ///
    /// # Errors
    /// Whatever makes it no model file: another format, no description, tensors that aren't those of
    /// its architecture, numbers that aren't finite.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ModelFileError> {
        let ModelHeader { description, trained_rows, .. } = ModelHeader::read(bytes)?;
        let broken =
            |error: &dyn std::fmt::Display| ModelFileError::NotSafetensors(error.to_string());
        let file = SafeTensors::deserialize(bytes).map_err(|error| broken(&error))?;
        let mut views = Vec::with_capacity(file.len());
        for (name, view) in file.tensors() {
            views.push(checked(name, &view)?);
        }
        views.sort_by(|a, b| a.name.cmp(&b.name));
        let (scaling, others): (Vec<_>, Vec<_>) =
            views.into_iter().partition(|view| view.name.starts_with(SCALING));
        let (graph, model): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|view| view.name.starts_with(GRAPH));
        let specs: Vec<TensorSpec> = model.iter().map(TensorView::spec).collect();
        let layout = description.layout()?;
        same_tensors(&specs, &layout.model_tensors())?;
        let specs: Vec<TensorSpec> = scaling.iter().map(TensorView::spec).collect();
        same_tensors(&specs, &scaling_tensors(&description))?;
        check_numbers(&model, &scaling)?;
        let graph = graph_file(&description, graph)?;
        Ok(Self { description, trained_rows, model, scaling: scaling.try_into().ok(), graph })
    }

    /// The file of its graph, where it is a user's own model.
    #[must_use]
    pub fn graph(&self) -> Option<&[u8]> {
        self.graph.as_deref()
    }

    /// The blob of its parameters (and buffers) that a trial can start from.
    ///
    /// # Errors
    /// A value that can't be encoded.
    pub fn parameters(&self) -> Result<Vec<u8>, ModelFileError> {
        Ok(encode(&self.model.iter().map(TensorView::to_tensor).collect::<Vec<_>>())?)
    }

    /// The scaling blob that a trainer takes, where there is one.
    ///
    /// # Errors
    /// A value that can't be encoded.
    pub fn scaling(&self) -> Result<Option<Vec<u8>>, ModelFileError> {
        let Some(views) = &self.scaling else { return Ok(None) };
        let [mean, std] = views.each_ref().map(TensorView::to_tensor);
        let tensors = [Tensor { name: MEAN.into(), ..mean }, Tensor { name: STD.into(), ..std }];
        Ok(Some(encode(&tensors)?))
    }
}

/// The parts of a model file beside its description.
#[derive(Debug, Clone, Copy, Default)]
pub struct Parts<'a> {
    /// The checkpoint.
    pub checkpoint: &'a [u8],
    /// The scaling blob, where the description asks for it.
    pub scaling: Option<&'a [u8]>,
    /// The graph's file, where the description asks for it.
    pub graph: Option<&'a [u8]>,
    /// A sample of the rows that it was trained on.
    pub trained_rows: Option<&'a TrainedRows>,
}

/// The file of a checkpoint's model.
///
/// # Errors
/// As [`ModelFile::read`].
pub fn write_model(
    description: &Description,
    Parts { checkpoint, scaling, graph, trained_rows }: Parts<'_>,
) -> Result<Vec<u8>, ModelFileError> {
    let parameters = weights_parameters(checkpoint)?;
    let mut tensors: Vec<Tensor> = decode(&parameters)?.iter().map(TensorView::to_tensor).collect();
    if let Some(scaling) = scaling {
        let named = |view: &TensorView<'_>| Tensor {
            name: format!("{SCALING}{}", view.name),
            ..view.to_tensor()
        };
        tensors.extend(decode(scaling)?.iter().map(named));
    }
    if let Some(graph) = graph {
        let named = |view: &TensorView<'_>| Tensor {
            name: format!("{GRAPH}{}", view.name),
            ..view.to_tensor()
        };
        tensors.extend(decode(graph)?.iter().map(named));
    }
    let unwritten = |error: serde_json::Error| ModelFileError::Description(error.to_string());
    let mut texts = BTreeMap::from([(KEY, serde_json::to_string(description).map_err(unwritten)?)]);
    if let Some(rows) = trained_rows {
        texts.insert(ROWS_KEY, serde_json::to_string(rows).map_err(unwritten)?);
    }
    let file = encode_described(&tensors, &texts)?;
    // The written file must be readable.
    ModelFile::read(&file)?;
    Ok(file)
}

fn scaling_tensors(description: &Description) -> Vec<TensorSpec> {
    let values = description.values();
    let spec = |name: &str| TensorSpec::new(format!("{SCALING}{name}"), Dtype::F32, [values]);
    match description.scaling {
        FileScaling::Standard => vec![spec(MEAN), spec(STD)],
        FileScaling::None | FileScaling::Constant(_) => Vec::new(),
    }
}

fn checked<'a>(
    name: String,
    view: &safetensors::tensor::TensorView<'a>,
) -> Result<TensorView<'a>, ModelFileError> {
    let word = view.dtype().to_string();
    let Some(dtype) = Dtype::parse(&word) else {
        return Err(ModelFileError::Dtype { tensor: name, dtype: word });
    };
    let shape = view.shape().iter().map(|side| u64::saturating_from(*side)).collect();
    Ok(TensorView { name, dtype, shape, data: view.data() })
}

/// All numbers of the model and of its scaling are finite.
fn check_numbers(
    model: &[TensorView<'_>],
    scaling: &[TensorView<'_>],
) -> Result<(), ModelFileError> {
    for view in model.iter().chain(scaling).filter(|view| view.dtype == Dtype::F32) {
        if view.f32s()?.any(|value| !value.is_finite()) {
            return Err(ModelFileError::NotFinite(view.name.clone()));
        }
    }
    Ok(())
}

/// The graph's file, from its tensors in a model file.
fn graph_file(
    description: &Description,
    views: Vec<TensorView<'_>>,
) -> Result<Option<Vec<u8>>, ModelFileError> {
    let Some(exported) = description.architecture.exported() else {
        return match views.first() {
            Some(view) => Err(ModelError::ForeignTensor(view.name.clone()).into()),
            None => Ok(None),
        };
    };
    let tensors = views.iter().map(|view| {
        let name = view.name.strip_prefix(GRAPH).unwrap_or_default().to_owned();
        Tensor { name, ..view.to_tensor() }
    });
    let file = encode(&tensors.collect::<Vec<_>>())?;
    if Digest::of(&file) == exported.file.sha256 {
        return Ok(Some(file));
    }
    Err(ModelFileError::Contradiction("its graph isn't the one that it names".into()))
}

#[cfg(test)]
mod tests;
