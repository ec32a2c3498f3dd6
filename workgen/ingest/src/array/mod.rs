//! Arrays: NPZ, NPY, IDX, HDF5 and safetensors.
//!
//! An array of rows and one of labels are two streams, which are read in parallel. Each format finds its arrays ([`npz`],
//! [`npy`], [`idx`], [`hdf5`], [`tensors`]); from there on they are the same ([`Array`]).

mod body;
mod dtype;
mod fortran;
#[cfg_attr(not(feature = "hdf5"), path = "hdf5/absent.rs")]
mod hdf5;
mod headers;
mod idx;
mod npy;
mod npz;
mod rows;
mod shape;
mod tensors;

pub(crate) use headers::headers;
pub use headers::{ArrayProfile, Elements};

use crate::{
    error::{IngestError, Place, Problem},
    names::{listed, meant},
    source::{Finder, SourceFile},
    table::{Element, Pass, Reading, Rows, Schema, Table, Wanted},
};
use body::Body;
use dtype::{Dtype, Encoding};
use rows::ArrayRows;
use sojourn_protocol::spec::{
    Channels, FileKind, SourceSpec,
    data::{DEFAULT_FEATURES, DEFAULT_LABEL},
};

/// Most bytes of a label in the file: those of the longest class name in UTF-32.
const MAX_LABEL: u64 = 4 << 10;
/// The first bytes of HDF5.
const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";

/// One array of a file, not yet read.
#[derive(Debug, Clone)]
pub(crate) struct Array {
    file: SourceFile,
    /// The array's name in messages.
    name: String,
    encoding: Encoding,
    shape: Vec<u64>,
    body: Body,
}

impl Array {
    /// A problem of the array as a whole.
    fn refuse(&self, problem: Problem) -> IngestError {
        self.place().refuse(problem)
    }

    fn place(&self) -> Place {
        Place { element: Some(self.name.clone()), ..Place::of(self.file.shown()) }
    }

    fn rows(&self) -> u64 {
        self.shape.first().copied().unwrap_or(0)
    }

    /// Bytes of a row.
    fn stride(&self) -> u64 {
        let elements = self.shape.iter().skip(1).fold(1u64, |all, side| all.saturating_mul(*side));
        elements.saturating_mul(self.encoding.dtype.bytes())
    }

    fn bytes(&self) -> u64 {
        self.rows().saturating_mul(self.stride())
    }
}

/// The rows and labels of one file, or of two that belong together.
#[derive(Debug, Clone)]
struct Pair {
    x: Array,
    y: Option<Array>,
}

/// Rows as arrays: a file, or a folder of parts.
#[derive(Debug, Clone)]
pub(crate) struct Arrays {
    pairs: Vec<Pair>,
    schema: Schema,
    channels: Channels,
}

impl Arrays {
    /// Finds the arrays of `parts`, which are files of `kind`.
    pub(crate) fn open(
        finder: &mut Finder<'_>,
        kind: ArrayKind,
        parts: Vec<SourceFile>,
        source: &SourceSpec,
        reading: Reading<'_>,
    ) -> Result<Self, IngestError> {
        let pairs = parts
            .into_iter()
            .map(|file| Pair::open(finder, kind, file, source, reading.wanted))
            .collect::<Result<Vec<_>, _>>()?;
        let channels = match pairs.first() {
            Some(pair) if shape::is_in_order(&pair.x, reading.in_order) => Channels::First,
            _ => reading.channels,
        };
        let mut schema = Schema { shown: source.data.clone(), ..Schema::default() };
        for pair in &pairs {
            let shape = shape::of_row(&pair.x, channels)?;
            if schema.shape.is_empty() {
                schema.width = shape::width(&pair.x, &shape)?;
                schema.first = pair.x.file.shown().to_owned();
                schema.has_labels = pair.y.is_some();
                schema.shape = shape;
            } else if schema.shape != shape {
                return Err(pair.x.refuse(Problem::RowShape {
                    actual: shape,
                    expected: schema.shape,
                    of: schema.first,
                }));
            }
        }
        Ok(Self { pairs, schema, channels })
    }

    /// Refuses rows that look like images with their channels last, where nobody said so.
    pub(crate) fn refuse_channels_last(&self) -> Result<(), IngestError> {
        match self.pairs.first() {
            Some(pair) if self.channels == Channels::First => shape::refuse_channels_last(&pair.x),
            _ => Ok(()),
        }
    }
}

impl Pair {
    fn open(
        finder: &mut Finder<'_>,
        kind: ArrayKind,
        file: SourceFile,
        source: &SourceSpec,
        wanted: Wanted<'_>,
    ) -> Result<Self, IngestError> {
        let features = source.features.as_deref().unwrap_or(DEFAULT_FEATURES);
        let must = matches!(wanted, Wanted::Labelled);
        let said = source.label.as_deref();
        let label = |names: &[String]| match said {
            Some(label) if must || names.iter().any(|name| name == label) => Some(label.to_owned()),
            None if must => Some(DEFAULT_LABEL.to_owned()),
            _ => None,
        };
        let (x, y) = match kind {
            ArrayKind::Npz => {
                let archive = npz::Archive::open(finder, file)?;
                let y = label(&archive.names()).map(|label| archive.array("label", &label));
                (archive.array("features", features)?, y.transpose()?)
            }
            ArrayKind::Hdf5 => {
                let datasets = hdf5::Datasets::open(finder, file)?;
                let x = datasets.array(finder, "features", features)?;
                let y = label(datasets.names())
                    .map(|label| datasets.array(finder, "label", &label))
                    .transpose()?;
                (x, y)
            }
            ArrayKind::Safetensors => {
                let tensors = tensors::Tensors::open(file)?;
                let y = label(&tensors.names()).map(|label| tensors.array("label", &label));
                (tensors.array("features", features)?, y.transpose()?)
            }
            ArrayKind::Npy => {
                let x = npy::open(file, "rows")?;
                let y = match &source.labels {
                    Some(labels) => Some(npy::open(one(finder, labels)?, "labels")?),
                    None if must => return Err(x.refuse(Problem::NoLabelsFile)),
                    None => None,
                };
                (x, y)
            }
            ArrayKind::Idx => {
                let x = idx::open(file, "images")?;
                (x, idx::labels(finder, source, must)?)
            }
        };
        x.check_features()?;
        if let Some(y) = &y {
            y.check_labels(&x)?;
        }
        let y = y.map(|y| y.seekable(finder)).transpose()?;
        Ok(Self { x: x.seekable(finder)?, y })
    }
}

impl Array {
    fn check_features(&self) -> Result<(), IngestError> {
        if matches!(self.encoding.dtype, Dtype::Utf32(_) | Dtype::Text(_)) {
            return Err(self.refuse(Problem::TextFeatures));
        }
        match self.shape.first() {
            None => Err(self.refuse(Problem::Scalar)),
            Some(0) => Err(self.refuse(Problem::NoArrayRows)),
            Some(_) => Ok(()),
        }
    }

    fn check_labels(&self, x: &Array) -> Result<(), IngestError> {
        if !matches!(self.shape.as_slice(), [_] | [_, 1]) {
            return Err(self.refuse(Problem::LabelShape(self.shape.clone())));
        }
        if self.stride() > MAX_LABEL {
            let bytes = self.stride();
            return Err(self.refuse(Problem::WideLabel { bytes, limit: MAX_LABEL }));
        }
        if self.rows() == x.rows() {
            return Ok(());
        }
        let of = match self.file.shown() == x.file.shown() {
            true => format!("`{}`", x.name),
            false => format!("`{}` in `{}`", x.name, x.file.shown()),
        };
        Err(self.refuse(Problem::Counts { labels: self.rows(), rows: x.rows(), of }))
    }
}

/// The file of labels at a path or URL, which must be one file.
fn one(finder: &mut Finder<'_>, name: &str) -> Result<SourceFile, IngestError> {
    let found = finder.find("data.labels", name)?;
    match <[SourceFile; 1]>::try_from(found) {
        Ok([file]) => Ok(file),
        Err(_) => Err(Place::of(name).refuse(Problem::FolderOfLabels)),
    }
}

/// The error for a file without an array of that name, with the names that it has.
fn no_array(file: &SourceFile, key: &'static str, name: &str, names: &[String]) -> IngestError {
    let hint = match (meant(name, names), names) {
        (Some(meant), _) => meant,
        (None, []) => "it has none".to_owned(),
        (None, names) => format!("it has {}", listed(names)),
    };
    file.refuse(Problem::NoArray { name: name.to_owned(), key, hint })
}

impl Table for Arrays {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn bytes(&self, pass: Pass) -> u64 {
        let of = |pair: &Pair| {
            let x = if pass == Pass::Labels { 0 } else { pair.x.bytes() };
            x.saturating_add(pair.y.as_ref().map_or(0, Array::bytes))
        };
        self.pairs.iter().fold(0u64, |all, pair| all.saturating_add(of(pair)))
    }

    fn rows(&self, pass: Pass) -> Result<Box<dyn Rows + '_>, IngestError> {
        Ok(Box::new(ArrayRows::new(&self.pairs, self.schema.width, self.channels, pass)))
    }

    fn fits(&self, train: &Schema) -> Result<(), IngestError> {
        self.schema.fits_rows_of(train).map_err(|problem| self.refuse(problem))
    }

    fn element(&self) -> Element {
        let are_bytes = |pair: &Pair| pair.x.encoding.dtype.element() == Element::Byte;
        if self.pairs.iter().all(are_bytes) { Element::Byte } else { Element::Single }
    }

    fn labels_place(&self) -> Place {
        let y = self.pairs.first().and_then(|pair| pair.y.as_ref());
        y.map_or_else(|| Place::of(&self.schema.shown), Array::place)
    }
}

/// A format of arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArrayKind {
    Npz,
    Npy,
    Idx,
    Hdf5,
    Safetensors,
}

impl ArrayKind {
    /// The format of a file that begins with these bytes.
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        if start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06") {
            Some(ArrayKind::Npz)
        } else if start.starts_with(npy::MAGIC) {
            Some(ArrayKind::Npy)
        } else if start.starts_with(HDF5) {
            Some(ArrayKind::Hdf5)
        } else if idx::begins(start) {
            Some(ArrayKind::Idx)
        } else if tensors::begins(start) {
            Some(ArrayKind::Safetensors)
        } else {
            None
        }
    }

    /// The format as a kind of file.
    pub(crate) const fn file_kind(self) -> FileKind {
        match self {
            ArrayKind::Npz => FileKind::Npz,
            ArrayKind::Npy => FileKind::Npy,
            ArrayKind::Idx => FileKind::Idx,
            ArrayKind::Hdf5 => FileKind::Hdf5,
            ArrayKind::Safetensors => FileKind::Safetensors,
        }
    }
}
