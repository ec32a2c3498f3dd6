//! Readers of data files to shards: what `submit` runs before it uploads.
//!
//! Two passes over the files, each a stream:
//!
//! ```text
//! survey   counts rows, collects labels (and, for CSV, checks the number of columns)
//! cut      rows -> numbers -> (row i goes to place permutation(i)) -> one writer per shard
//!                          \-> sums for the scaling, over the training rows
//! ```
//!
//! Where missing values are to be the mean, a pass between the two finds the means.
//!
//! The number of rows decides which of them are trained on, so the scaling can only be computed in the last pass. It is
//! a blob of its own, or of labels two numbers of the manifest; shards hold the unscaled numbers.
//!
//! `source` finds the bytes, `excel` copies sheets as CSV, `csv`, `json_lines`, `libsvm`, `tfrecord` and `parquet` (by `fields`), `array` and `images` read the formats, and `table` is the interface of all formats. Equal rows in
//! any format give the same blobs.
//!
//! Memory doesn't grow with the data: one row (bounded), the names of the classes (bounded), some
//! sums per feature, and write buffers that share [`shards::BUFFER_BYTES`], whatever their number.
//! The same seed and rows give the same blobs on any machine, however the rows are spread over files.
//! Nothing is left behind where an error ends it: files are made in a temporary folder and moved to
//! their names at the very end.
//!
//! ```no_run
//! use sojourn_protocol::jobfile;
//! use std::{fs, path::Path};
//!
//! let spec = jobfile::parse(&fs::read_to_string("job.toml")?)?;
//! let ingested = sojourn_ingest::ingest(&spec, Path::new("."), Path::new("shards"), &mut |_| {})?;
//! println!("{} training shards", ingested.manifest.train.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(
    not(any(feature = "parquet", feature = "tokenizers")),
    expect(dead_code, unused_imports, reason = "readers of the formats that are off use it")
)]

mod array;
mod bad;
mod bounds;
mod classes;
mod columns;
mod csv;
mod data;
mod dates;
mod error;
#[cfg_attr(not(feature = "excel"), path = "excel/absent.rs")]
mod excel;
mod fields;
mod format;
mod groups;
mod guard;
mod images;
mod into_shards;
mod json_lines;
mod libsvm;
mod listing;
mod meter;
mod missing;
mod names;
mod notation;
mod number;
#[cfg_attr(not(feature = "parquet"), path = "parquet/absent.rs")]
mod parquet;
mod permutation;
mod piece;
mod plan;
mod profile;
mod progress;
mod reader;
mod route;
mod scaling;
mod shards;
mod signs;
mod source;
mod survey;
mod table;
mod tfrecord;
mod words;

pub use bad::BadRows;
pub use bounds::{Bounds, Refusal, Step, Unbounded};
pub use columns::{ColumnReader, ColumnRowReader, ColumnSource};
pub use error::{
    BadRow, FetchError, IngestError, MAX_TOLD, Place, Problem, Problems, RaggedHint, Reason,
    SparseProblem, Way,
};
pub use plan::Cut;
pub use profile::{
    ArrayProfile, ColumnProfile, Elements, ImagesProfile, MAX_VALUES, Odd, OddLines, Profile,
    ProfileOf, TableProfile, profile,
};
pub use progress::Progress;
pub use reader::{ReadOptions, Reader, Row, RowReader};
pub use signs::without_sign;
pub use source::local_path;

use bounds::unbounded;
use columns::ColumnData;
use data::{Data, open_all};
use plan::{Part, Plan};
use sojourn_protocol::{
    column::Column,
    digest::Digest,
    manifest::{DataManifest, Labels},
    spec::{Categories, JobSpec},
};
use source::Finder;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A job's data as shards.
#[derive(Debug, Clone, PartialEq)]
pub struct Ingested {
    /// The manifest of the data.
    pub manifest: DataManifest,
    /// Where each blob of the manifest lies, named by its digest.
    pub files: BTreeMap<Digest, PathBuf>,
}

/// The number of shards of a job that doesn't set it.
const DEFAULT_SHARDS: u32 = 4;

/// Reads the data of `spec` and writes its blobs into `out_dir`: equal shards, as many as the job says.
///
/// # Errors
/// As [`survey`] and [`Surveyed::ingest`].
pub fn ingest(
    spec: &JobSpec,
    base_dir: &Path,
    out_dir: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Ingested, IngestError> {
    let cut = Cut::Equal(spec.data.shards.unwrap_or(DEFAULT_SHARDS));
    survey(spec, base_dir, out_dir, progress)?.ingest(&cut, out_dir, progress)
}

/// Reads the data of `spec` as [`ingest`] does, and writes nothing.
///
/// # Errors
/// As [`survey`] and [`Surveyed::check`].
pub fn check(
    spec: &JobSpec,
    base_dir: &Path,
    spool: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Summary, IngestError> {
    let cut = Cut::Equal(spec.data.shards.unwrap_or(DEFAULT_SHARDS));
    survey(spec, base_dir, spool, progress)?.check(&cut, progress)
}

/// The shards that a job's data would be cut into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The columns, where the data has them by name.
    pub columns: Vec<Column>,
    /// Shape of one row.
    pub shape: Vec<u32>,
    /// Features of a row: the product of the shape.
    pub width: usize,
    /// Names of the feature columns in order; none for arrays and images.
    pub features: Vec<String>,
    /// The kind of labels.
    pub labels: Labels,
    /// Rows of each training shard.
    pub train: Vec<u32>,
    /// Rows of each validation shard.
    pub valid: Vec<u32>,
    /// Rows of each test shard.
    pub test: Vec<u32>,
}

/// A job's data, counted and not yet cut.
pub struct Surveyed<'a> {
    spec: &'a JobSpec,
    data: Counted,
    bounds: Arc<dyn Bounds>,
}

/// The data that was counted.
enum Counted {
    /// Rows of numbers with a label.
    Rows(Data),
    /// Columns by name.
    Columns(ColumnData),
}

/// Reads the data of `spec` (paths relative to `base_dir`) for the first time. Remote files are copied to unnamed temporary
/// files in the folder `spool`, which last as long as the returned value.
///
/// Blocks, as do the methods of the returned value; inside an async runtime it must be called where blocking is allowed.
///
/// # Errors
/// Whatever is wrong with the files, with file, line and column; whatever the disk says.
pub fn survey<'a>(
    spec: &'a JobSpec,
    base_dir: &Path,
    spool: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Surveyed<'a>, IngestError> {
    survey_within(spec, base_dir, spool, unbounded(), progress)
}

/// The same within bounds, which hold for the methods of the returned value too.
///
/// # Errors
/// As [`survey`]; [`IngestError::Refused`] where the bounds say so.
pub fn survey_within<'a>(
    spec: &'a JobSpec,
    base_dir: &Path,
    spool: &Path,
    bounds: Arc<dyn Bounds>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Surveyed<'a>, IngestError> {
    let mut finder = Finder::new(base_dir, spool, &bounds, progress);
    let data = if let Some(tables) = ColumnData::open(spec, &mut finder)? {
        drop(finder);
        Counted::Columns(ColumnData::survey(spec, tables, &bounds, progress)?)
    } else {
        let tables = open_all(spec, &mut finder)?;
        drop(finder);
        Counted::Rows(Data::survey(spec, tables, &bounds, progress)?)
    };
    Ok(Surveyed { spec, data, bounds })
}

/// Has the training data of `spec` columns by name? No rows are read. A URL isn't fetched, and counts as having none.
///
/// # Errors
/// A file that isn't there or can't be read.
pub fn has_columns(spec: &JobSpec, base_dir: &Path, spool: &Path) -> Result<bool, IngestError> {
    let train = &spec.data.train;
    if train.contains("://") {
        return Ok(false);
    }
    let mut silent = |_: Progress<'_>| ();
    let mut finder = Finder::new(base_dir, spool, &unbounded(), &mut silent);
    Ok(columns::open(&mut finder, "data.train", train, spec)?.is_some())
}

impl Surveyed<'_> {
    /// Rows that are trained on.
    #[must_use]
    pub fn train_rows(&self) -> u64 {
        match &self.data {
            Counted::Rows(data) => data.train_rows(self.spec),
            Counted::Columns(data) => data.train_rows(self.spec),
        }
    }

    /// The columns, where the data has them by name.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        match &self.data {
            Counted::Rows(_) => &[],
            Counted::Columns(data) => &data.columns,
        }
    }

    /// Shape of one row; empty where the data has columns by name.
    #[must_use]
    pub fn shape(&self) -> &[u32] {
        self.rows().map(|data| data.shape.as_slice()).unwrap_or_default()
    }

    /// The kind of labels.
    #[must_use]
    pub fn labels(&self) -> &Labels {
        self.rows().map_or(&Labels::None, |data| &data.labels)
    }

    /// Names of the feature columns in order; none for arrays.
    #[must_use]
    pub fn features(&self) -> &[String] {
        self.rows().map(|data| data.features.as_slice()).unwrap_or_default()
    }

    /// Columns of words, in the order of their features.
    #[must_use]
    pub fn categories(&self) -> &[Categories] {
        self.rows().map(|data| data.categories.as_slice()).unwrap_or_default()
    }

    fn rows(&self) -> Option<&Data> {
        match &self.data {
            Counted::Rows(data) => Some(data),
            Counted::Columns(_) => None,
        }
    }

    /// Writes the blobs into `out_dir`.
    ///
    /// # Errors
    /// Whatever is wrong with the files or with the cut; whatever the disk says. Then `out_dir` is as it was.
    pub fn ingest(
        self,
        cut: &Cut,
        out_dir: &Path,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Ingested, IngestError> {
        let Self { spec, data, bounds } = self;
        let into = (out_dir, &bounds);
        match data {
            Counted::Rows(data) => into_shards::rows(spec, data, cut, into, progress),
            Counted::Columns(data) => into_shards::columns(spec, data, cut, into, progress),
        }
    }

    /// Reads the data as [`Surveyed::ingest`] does, and writes nothing.
    ///
    /// # Errors
    /// Whatever is wrong with the files or with the cut.
    pub fn check(
        self,
        cut: &Cut,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Summary, IngestError> {
        let Self { spec, data, bounds: _ } = self;
        let mut data = match data {
            Counted::Rows(data) => data,
            Counted::Columns(data) => return check_columns(spec, data, cut, progress),
        };
        let plan = data.plan(spec, cut)?;
        data.cut(&plan, None, progress)?;
        Ok(Summary {
            columns: Vec::new(),
            train: rows_of(&plan, Part::Train),
            valid: rows_of(&plan, Part::Valid),
            test: rows_of(&plan, Part::Test),
            width: data.width,
            features: data.features,
            shape: data.shape,
            labels: data.labels,
        })
    }
}

fn check_columns(
    spec: &JobSpec,
    mut data: ColumnData,
    cut: &Cut,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Summary, IngestError> {
    let plan = data.plan(spec, cut)?;
    data.cut(&plan, None, progress)?;
    Ok(Summary {
        train: rows_of(&plan, Part::Train),
        valid: rows_of(&plan, Part::Valid),
        test: rows_of(&plan, Part::Test),
        columns: data.columns,
        width: 0,
        features: Vec::new(),
        shape: Vec::new(),
        labels: Labels::None,
    })
}

/// Rows of each shard of a part.
fn rows_of(plan: &Plan, part: Part) -> Vec<u32> {
    plan.shards().filter(|(of, _)| *of == part).map(|(_, rows)| rows).collect()
}
