//! `[data]`: where rows lie, what is in them, and which are set aside.

use super::{categories::CategoriesSpec, dialect::Dialect};
use crate::{digest::BlobRef, manifest::LabelScaling};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `[data]`: read where `submit` runs, and kept with the job for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DataSpec {
    /// A file, a folder of parts, or a URL (`http`, `https`, `s3`); paths are relative to the job
    /// file.
    pub train: String,
    /// The array of rows in an NPZ, safetensors or HDF5 file; `x` where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<String>,
    /// Name of the label column, or of the array of labels; `None` where the job says none, as for images and for data that
    /// has columns by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The file of labels beside one of images (IDX) or rows (NPY); `None` is what the images'
    /// name suggests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
    /// The separator of the columns of a CSV file; `None` is found out by the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separator: Option<Separator>,
    /// The columns of a table that are features; `None` is all but the label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Columns>,
    /// Columns of a table that hold words, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<CategoriesSpec>,
    /// The treatment of missing values of a table.
    #[serde(default, skip_serializing_if = "Missing::is_refuse")]
    pub missing: Missing,
    /// The treatment of rows of a table that can't be read.
    #[serde(default, skip_serializing_if = "OnBad::is_refuse")]
    pub on_bad_row: OnBad,
    /// The treatment of images that can't be read.
    #[serde(default, skip_serializing_if = "OnBad::is_refuse")]
    pub on_bad_image: OnBad,
    /// How the fields of a table are written.
    #[serde(default, skip_serializing_if = "Dialect::is_default")]
    pub dialect: Dialect,
    /// The longest window that text is cut into, in tokens. The windows of trials are keys of their models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
    /// The file that says how text becomes tokens; `None` takes its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<String>,
    /// The most elements that rows of a column keep, where they are sequences of different lengths, by the column's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub length: BTreeMap<String, u32>,
    /// Shape of one row; `None` is the shape that the file has, a flat vector for a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<u32>>,
    /// Where the channels of an image are in a row of an array.
    #[serde(default, skip_serializing_if = "Channels::is_first")]
    pub channels: Channels,
    /// How features are scaled before training.
    pub scale: Scale,
    /// How labels that are numbers are scaled before training. Job files that don't say it get the standard.
    #[serde(default, skip_serializing_if = "ScaleLabel::is_none")]
    pub scale_label: ScaleLabel,
    /// Validation rows.
    pub valid: Split,
    /// Test rows: kept apart, never used by the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<Split>,
    /// Shards of the training rows, at least 1; `None` until `submit` has chosen how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<u32>,
    /// How rows are shared out among them; `None` is [`ShardSizes::Speed`] where each shard is to be on one host
    /// alone, else [`ShardSizes::Equal`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard_sizes: Option<ShardSizes>,
    /// Are the rows of each class spread evenly over shards, and over validation and test rows that are shares of them?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stratified: bool,
    /// The column whose values name groups of rows: each group is in one fold, or of the training, validation and test rows in one part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<String>,
    /// The folds that groups were kept together in, where there were some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_folds: Option<u32>,
    /// The seed by which rows are dealt to shards and splits; `None` is the job's own.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::decimal::optional")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::decimal::Seed>))]
    pub seed: Option<u64>,
}

/// [`DataSpec::seed`] of job files that say none.
pub const DEFAULT_DATA_SEED: u64 = 0;

/// The separator of the columns of a CSV file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Separator {
    /// `,`
    #[serde(rename = ",")]
    Comma,
    /// `;`, as spreadsheets write it where the decimal sign is a comma.
    #[serde(rename = ";")]
    Semicolon,
    /// A tab.
    #[serde(rename = "\t")]
    Tab,
    /// `|`
    #[serde(rename = "|")]
    Pipe,
}

impl Separator {
    /// All of them, the usual ones first.
    pub const ALL: [Separator; 4] =
        [Separator::Comma, Separator::Semicolon, Separator::Tab, Separator::Pipe];

    /// The separator's one byte.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Separator::Comma => b',',
            Separator::Semicolon => b';',
            Separator::Tab => b'\t',
            Separator::Pipe => b'|',
        }
    }

    /// The separator, as job files write it.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Separator::Comma => ",",
            Separator::Semicolon => ";",
            Separator::Tab => "tab",
            Separator::Pipe => "|",
        }
    }

    /// The separator as a sentence names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Separator::Comma => "`,`",
            Separator::Semicolon => "`;`",
            Separator::Tab => "tabs",
            Separator::Pipe => "`|`",
        }
    }
}

/// The columns of a table that are features.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Columns {
    /// These, in this order.
    Use(Vec<String>),
    /// All but these and the label. `*` in a name stands for any characters.
    Drop(Vec<String>),
    /// All but these, those at some positions, and the label.
    DropAt {
        /// The names of columns, as in `Drop`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        names: Vec<String>,
        /// The positions of columns, from 1.
        positions: Vec<u32>,
    },
}

impl Columns {
    /// The names and the positions that are left out; `None` where the job says which columns are features.
    #[must_use]
    pub fn dropped(&self) -> Option<(&[String], &[u32])> {
        match self {
            Columns::Use(_) => None,
            Columns::Drop(names) => Some((names, &[])),
            Columns::DropAt { names, positions } => Some((names, positions)),
        }
    }

    /// Does `pattern` mean the column `name`? A `*` in it stands for any characters, unless that is the name.
    #[must_use]
    pub fn is_meant(pattern: &str, name: &str) -> bool {
        if pattern == name {
            return true;
        }
        let Some((first, rest)) = pattern.split_once('*') else { return false };
        let Some(mut left) = name.strip_prefix(first) else { return false };
        let mut parts: Vec<&str> = rest.split('*').collect();
        let last = parts.pop().unwrap_or_default();
        for part in parts {
            let Some(at) = left.find(part) else { return false };
            left = left.get(at + part.len()..).unwrap_or_default();
        }
        left.ends_with(last)
    }
}

/// The treatment of missing values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// The file is refused.
    #[default]
    Refuse,
    /// A missing feature is 0.
    Zero,
    /// A missing feature is the mean of those that are there in the training rows.
    Mean,
    /// Rows with a missing value are left out.
    DropRow,
}

impl Missing {
    /// Is the file refused?
    #[must_use]
    pub fn is_refuse(&self) -> bool {
        *self == Missing::Refuse
    }
}

/// The treatment of rows or images that can't be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnBad {
    /// The data is refused.
    #[default]
    Refuse,
    /// Bad ones are left out, unless more than half are bad.
    Skip,
}

impl OnBad {
    /// Is the data refused?
    #[must_use]
    pub fn is_refuse(&self) -> bool {
        *self == OnBad::Refuse
    }
}

/// How rows are shared out among shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ShardSizes {
    /// All alike, but for one row.
    Equal,
    /// In proportion to the speeds of the hosts that are to keep them, as they were known when the data was cut.
    Speed,
}

/// The array of rows where a job names none.
pub const DEFAULT_FEATURES: &str = "x";
/// The array of labels where a job names none.
pub const DEFAULT_LABEL: &str = "y";
/// The column of labels of sparse rows, which have no names.
pub const SPARSE_LABEL: &str = "label";

impl DataSpec {
    /// Where the training rows lie.
    #[must_use]
    pub fn train_source(&self) -> SourceSpec {
        SourceSpec {
            data: self.train.clone(),
            features: self.features.clone(),
            label: self.label.clone(),
            labels: self.labels.clone(),
        }
    }

    /// Where the rows of a split lie, names that it leaves out as for the training rows; `None`
    /// where they are a share of those.
    #[must_use]
    pub fn source_of(&self, split: &Split) -> Option<SourceSpec> {
        let source = match split {
            Split::Ratio(_) | Split::Folds => return None,
            Split::File(path) => {
                SourceSpec { data: path.clone(), features: None, label: None, labels: None }
            }
            Split::Source(source) => source.clone(),
        };
        Some(SourceSpec {
            features: source.features.or_else(|| self.features.clone()),
            label: source.label.or_else(|| self.label.clone()),
            ..source
        })
    }
}

/// Where the channels of an image are in a row of an array.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Channels {
    /// `[channels, height, width]`, as models take them.
    #[default]
    First,
    /// `[height, width, channels]`, turned round when it is read.
    Last,
}

impl Channels {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
    fn is_first(&self) -> bool {
        *self == Channels::First
    }
}

/// How features are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Taken as they are.
    None,
    /// Per feature, minus the mean and over the standard deviation of the training rows; a feature
    /// that doesn't vary becomes 0.
    Standard,
    /// Times a constant.
    Constant(f64),
    /// As the model was that a job starts from: by this scaling blob (see [`crate::manifest`]).
    Given(BlobRef),
}

/// How labels that are numbers are scaled. Shards hold them unscaled, and predictions and losses are in their units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ScaleLabel {
    /// Taken as they are.
    #[default]
    None,
    /// Minus the mean and over the standard deviation of the training rows' labels.
    Standard,
    /// As they were for the model that a job starts from.
    Given(LabelScaling),
}

impl ScaleLabel {
    /// Are labels taken as they are?
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == ScaleLabel::None
    }
}

/// Rows set aside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// This share of the rows of `train`, in `(0, 1)`.
    #[serde(rename = "share")]
    Ratio(f64),
    /// A file, folder or URL of its own, as `train` is one.
    File(String),
    /// The same with names of its own.
    Source(SourceSpec),
    /// No rows of their own: each fold of the training shards is validated on in turn, as `search.folds` says.
    Folds,
}

/// Where rows lie, and what they are called there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SourceSpec {
    /// A file, a folder of parts, or a URL.
    pub data: String,
    /// The array of rows in an NPZ, safetensors or HDF5 file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<String>,
    /// The label column, or the array of labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The file of labels beside one of images (IDX) or rows (NPY).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
}

/// The kind of file by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// Text, a row a line.
    Csv,
    /// Text, an object a line.
    JsonLines,
    /// Text, a sparse row a line.
    Libsvm,
    /// Records of TensorFlow, an example each.
    #[serde(rename = "tfrecord")]
    TfRecord,
    /// A table in columns.
    Parquet,
    /// A workbook of Excel, of which a sheet is the table.
    Excel,
    /// NumPy's archive of arrays.
    Npz,
    /// One NumPy array.
    Npy,
    /// Datasets by name.
    Hdf5,
    /// One array as MNIST has it.
    Idx,
    /// Tensors by name.
    Safetensors,
    /// Text that is cut into windows.
    Text,
    /// One image.
    Image,
}

impl FileKind {
    /// Is it a table: rows of fields under names?
    #[must_use]
    pub const fn is_table(self) -> bool {
        match self {
            FileKind::Csv
            | FileKind::JsonLines
            | FileKind::Libsvm
            | FileKind::TfRecord
            | FileKind::Parquet
            | FileKind::Excel => true,
            FileKind::Npz
            | FileKind::Npy
            | FileKind::Hdf5
            | FileKind::Idx
            | FileKind::Safetensors
            | FileKind::Image
            | FileKind::Text => false,
        }
    }

    /// The kind that a path or URL says by its ending, `.gz` and `.zst` left aside.
    #[must_use]
    pub fn named(path: &str) -> Option<Self> {
        // A URL's query and fragment are no part of its name.
        let path = match path.contains("://") {
            true => path.split(['?', '#']).next().unwrap_or(path),
            false => path,
        };
        let path = path.to_ascii_lowercase();
        let path = [".gz", ".zst"].iter().find_map(|end| path.strip_suffix(end)).unwrap_or(&path);
        let endings = [
            (".csv", FileKind::Csv),
            (".tsv", FileKind::Csv),
            (".jsonl", FileKind::JsonLines),
            (".ndjson", FileKind::JsonLines),
            (".libsvm", FileKind::Libsvm),
            (".svmlight", FileKind::Libsvm),
            (".svm", FileKind::Libsvm),
            (".tfrecord", FileKind::TfRecord),
            (".tfrecords", FileKind::TfRecord),
            (".parquet", FileKind::Parquet),
            (".xlsx", FileKind::Excel),
            (".xlsm", FileKind::Excel),
            (".npz", FileKind::Npz),
            (".npy", FileKind::Npy),
            (".h5", FileKind::Hdf5),
            (".hdf5", FileKind::Hdf5),
            (".safetensors", FileKind::Safetensors),
            (".idx", FileKind::Idx),
            (".txt", FileKind::Text),
            ("-ubyte", FileKind::Idx),
            (".jpeg", FileKind::Image),
            (".jpg", FileKind::Image),
            (".png", FileKind::Image),
            (".tif", FileKind::Image),
            (".tiff", FileKind::Image),
            (".webp", FileKind::Image),
        ];
        endings.iter().find(|(end, _)| path.ends_with(end)).map(|(_, kind)| *kind)
    }

    /// The name that people know it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FileKind::Csv => "CSV",
            FileKind::JsonLines => "JSON lines",
            FileKind::Libsvm => "libsvm",
            FileKind::TfRecord => "TFRecord",
            FileKind::Parquet => "Parquet",
            FileKind::Excel => "an Excel workbook",
            FileKind::Npz => "NPZ",
            FileKind::Npy => "NPY",
            FileKind::Hdf5 => "HDF5",
            FileKind::Idx => "IDX",
            FileKind::Safetensors => "safetensors",
            FileKind::Text => "text",
            FileKind::Image => "an image",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_files_are() {
        for (path, kind) in [
            ("a/t.csv", Some(FileKind::Csv)),
            ("T.CSV.gz", Some(FileKind::Csv)),
            ("t.tsv", Some(FileKind::Csv)),
            ("t.jsonl.gz", Some(FileKind::JsonLines)),
            ("t.NDJSON", Some(FileKind::JsonLines)),
            ("a9a.svm", Some(FileKind::Libsvm)),
            ("t.svmlight.zst", Some(FileKind::Libsvm)),
            ("train.tfrecords.gz", Some(FileKind::TfRecord)),
            ("train.TFRecord", Some(FileKind::TfRecord)),
            ("digits.H5", Some(FileKind::Hdf5)),
            ("digits.hdf5.gz", Some(FileKind::Hdf5)),
            ("t.LIBSVM", Some(FileKind::Libsvm)),
            ("s3://bucket/t.parquet", Some(FileKind::Parquet)),
            ("t.npz", Some(FileKind::Npz)),
            ("Sales 2024.XLSX", Some(FileKind::Excel)),
            ("scan.tiff", Some(FileKind::Image)),
            ("s3://bucket/t.npy.zst", Some(FileKind::Npy)),
            ("https://host/model.safetensors?download=true#top", Some(FileKind::Safetensors)),
            ("t10k-images-idx3-ubyte.gz", Some(FileKind::Idx)),
            ("train-images.idx3-ubyte", Some(FileKind::Idx)),
            ("cat.JPG", Some(FileKind::Image)),
            ("folder", None),
            ("https://host/data", None),
            ("what?.csv", Some(FileKind::Csv)),
        ] {
            assert_eq!(FileKind::named(path), kind, "{path}");
        }
    }

    #[test]
    fn a_split_takes_the_names_that_it_leaves_out_from_the_training_rows() {
        let spec: DataSpec = serde_json::from_str(
            r#"{"train":"t.npz","features":"a","label":"b","scale":"none","valid":{"file":"v.npz"},
                "test":{"source":{"data":"t.npz","features":"c"}},"shards":1}"#,
        )
        .unwrap();
        let named = |data: &str, features: &str| SourceSpec {
            data: data.into(),
            features: Some(features.into()),
            label: Some("b".into()),
            labels: None,
        };
        assert_eq!(spec.train_source(), named("t.npz", "a"));
        assert_eq!(spec.source_of(&spec.valid), Some(named("v.npz", "a")));
        assert_eq!(spec.source_of(&spec.test.clone().unwrap()), Some(named("t.npz", "c")));
        assert_eq!(spec.source_of(&Split::Ratio(0.5)), None);
    }

    #[test]
    fn a_table_is_stored_as_it_always_was() {
        let stored =
            r#"{"train":"t.csv","label":"y","scale":"none","valid":{"share":0.2},"shards":4}"#;
        let spec: DataSpec = serde_json::from_str(stored).unwrap();
        assert_eq!(serde_json::to_string(&spec).unwrap(), stored);
    }

    #[test]
    fn a_pattern_means_names_with_any_characters_at_its_stars() {
        for (pattern, name, is_meant) in [
            ("note_*", "note_1", true),
            ("note_*", "note_", true),
            ("note_*", "a note_1", false),
            ("*_id", "user_id", true),
            ("*_id", "user_ids", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("*", "", true),
            ("5*", "5*", true),
            ("a", "ab", false),
        ] {
            assert_eq!(Columns::is_meant(pattern, name), is_meant, "{pattern} {name}");
        }
    }

    #[test]
    fn what_a_table_is_told_is_stored_where_it_is_said() {
        let stored = r#"{"train":"t.csv","label":"y","separator":";","columns":{"drop":["id"]},"missing":"drop_row","scale":"none","valid":{"share":0.2}}"#;
        let spec: DataSpec = serde_json::from_str(stored).unwrap();
        assert_eq!(spec.separator, Some(Separator::Semicolon));
        assert_eq!(spec.missing, Missing::DropRow);
        assert_eq!(serde_json::to_string(&spec).unwrap(), stored);
    }
}
