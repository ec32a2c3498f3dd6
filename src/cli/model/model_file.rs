//! Reads a model file from disk, for `init` and `predict`.

use crate::cli::model::file_kind;
use sojourn_model::portable::{
    Description, FileScaling, ModelFile, ModelFileError, ModelHeader, TrainedRows,
};
use sojourn_protocol::error::error_chain;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    quantity::to_u64,
    spec::{Scale, ScaleLabel},
};
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// Bytes that a file's kind is seen by.
const START: u64 = 64;

/// A model in memory, as blobs.
pub(crate) struct Model {
    pub(crate) description: Description,
    /// A sample of the rows that it was trained on, where the file has one.
    pub(crate) trained_rows: Option<TrainedRows>,
    /// The model's parameters and buffers, canonical.
    pub(crate) parameters: Vec<u8>,
    /// The scaling that a trainer takes, where there is one.
    pub(crate) scaling: Option<Vec<u8>>,
    /// The file of its graph, where it is a user's own model.
    pub(crate) graph: Option<Vec<u8>>,
}

/// The name of a blob of these bytes.
pub(crate) fn blob(bytes: &[u8]) -> BlobRef {
    BlobRef { sha256: Digest::of(bytes), bytes: to_u64(bytes.len()) }
}

/// Reads a model file; or why it is none, as a text that follows its name.
pub(crate) fn read(path: &Path) -> Result<Model, String> {
    let unread = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "doesn't exist".to_owned(),
        _ => format!("can't be read: {error}"),
    };
    let no_model = |error: ModelFileError| format!("is no model: {}", error_chain(&error));
    let mut file = File::open(path).map_err(unread)?;
    let metadata = file.metadata().map_err(unread)?;
    if metadata.is_dir() {
        return Err("is a folder; a model file is wanted".to_owned());
    }
    // The header first: another's file of a hundred gigabytes is refused before it is read.
    let mut bytes = Vec::new();
    (&mut file).take(START).read_to_end(&mut bytes).map_err(unread)?;
    if let Some(what) = file_kind::kind(&bytes) {
        return Err(format!("is no model file, but {what}; `sojourn export` writes model files"));
    }
    if let Some(prefix) = bytes.first_chunk() {
        let header = ModelHeader::bytes(*prefix).map_err(no_model)?;
        (&mut file).take(header.saturating_sub(START)).read_to_end(&mut bytes).map_err(unread)?;
    }
    let expected = ModelHeader::read(&bytes).map_err(no_model)?.file_bytes;
    let actual = metadata.len();
    if actual != expected {
        return Err(format!(
            "is no whole model: it has {actual} bytes, its header says {expected}"
        ));
    }
    file.read_to_end(&mut bytes).map_err(unread)?;
    let model = ModelFile::read(&bytes).map_err(no_model)?;
    Ok(Model {
        parameters: model.parameters().map_err(no_model)?,
        scaling: model.scaling().map_err(no_model)?,
        graph: model.graph().map(<[u8]>::to_vec),
        trained_rows: model.trained_rows,
        description: model.description,
    })
}

impl Model {
    /// The scaling of labels as a job file says it.
    pub(crate) fn scale_label(&self) -> ScaleLabel {
        self.description.label_scaling.map_or(ScaleLabel::None, ScaleLabel::Given)
    }

    /// The scaling of features as a job file says it.
    pub(crate) fn scale(&self) -> Scale {
        match (self.description.scaling, &self.scaling) {
            (FileScaling::Constant(factor), _) => Scale::Constant(factor),
            (FileScaling::Standard, Some(scaling)) => Scale::Given(blob(scaling)),
            (FileScaling::Standard, None) | (FileScaling::None, _) => Scale::None,
        }
    }
}
