//! The keys of `[data]` that say nothing about files of one kind or another.

use crate::spec::FileKind;
use sojourn_forms::Table;

/// Keys, each with the reason for which it is refused.
type Refused = &'static [(&'static str, &'static str)];

const OF_ARRAYS: &str = "names an array of an NPZ, HDF5 or safetensors file";
const OF_LABELS: &str = "is the file of labels beside an IDX or NPY file; here the labels are in the same file, and `label` names them";
const ENCODING: (&str, &str) =
    ("encoding", "is for CSV files; other formats say how they write words");

const ON_BAD_IMAGE: (&str, &str) =
    ("on_bad_image", "is for a folder of images; `on_bad_row` is for tables");

/// Keys of a table, where there is none.
const OF_TABLES: [(&str, &str); 12] = [
    ("separator", "is for CSV files; of arrays nothing separates the columns"),
    ("columns", "names columns of a table; the features of an array have no names"),
    ("categories", "names columns of a table; arrays hold numbers, and words only as labels"),
    ("dates", "names columns of a table; arrays hold numbers"),
    ("groups", "names a column of a table; arrays hold features and labels alone"),
    ("missing", "is for tables; arrays must hold finite numbers"),
    ("missing_values", "is for tables; arrays must hold finite numbers"),
    ("on_bad_row", "is for tables; arrays must hold finite numbers"),
    ("header", "is for CSV files; arrays have no line of names"),
    ENCODING,
    ("decimal", "is for CSV files; arrays hold numbers as they are"),
    ("thousands", "is for CSV files; arrays hold numbers as they are"),
];

/// Refuses the keys that say nothing about files of this kind.
pub(super) fn fit(section: &Table<'_>, kind: Option<FileKind>) -> Option<()> {
    let foreign: [Refused; 3] = match kind {
        Some(FileKind::Csv) => [
            &[
                (
                    "features",
                    "names an array; of a CSV file every column beside the label is a feature, unless `columns` says which are",
                ),
                ("labels", OF_LABELS),
                ("channels", "is for arrays of images; of a CSV file `shape` says what a row is"),
            ],
            &[],
            &[],
        ],
        Some(FileKind::JsonLines) => [
            &[
                (
                    "features",
                    "names an array; of JSON lines every key beside the label is a feature, unless `columns` says which are",
                ),
                ("labels", OF_LABELS),
                ("separator", "is for CSV files; JSON lines have keys"),
                ("header", "is for CSV files; JSON lines have a name at each value"),
                ("encoding", "is for CSV files; JSON lines are in UTF-8"),
                ("decimal", "is for CSV files; JSON lines have numbers with a decimal point"),
                ("thousands", "is for CSV files; JSON lines have numbers with a decimal point"),
                ("channels", "is for arrays of images; of JSON lines `shape` says what a row is"),
            ],
            &[],
            &[],
        ],
        Some(FileKind::Libsvm) => [
            &[
                (
                    "features",
                    "names an array; of sparse rows every index is a feature, unless `columns` says which are",
                ),
                ("labels", OF_LABELS),
                ("separator", "is for CSV files; sparse rows have blanks between their values"),
                ("header", "is for CSV files; sparse rows have an index at each value"),
                ("encoding", "is for CSV files; sparse rows hold numbers alone"),
                ("decimal", "is for CSV files; sparse rows have numbers with a decimal point"),
                ("thousands", "is for CSV files; sparse rows have numbers with a decimal point"),
                ("channels", "is for arrays of images; of sparse rows `shape` says what a row is"),
            ],
            &[],
            &[],
        ],
        Some(FileKind::TfRecord) => [
            &[
                (
                    "features",
                    "names an array; of TFRecord every feature beside the label is one, unless `columns` says which are",
                ),
                ("labels", OF_LABELS),
                ("separator", "is for CSV files; TFRecord has features by name"),
                ("header", "is for CSV files; TFRecord has a name at each list"),
                ENCODING,
                ("decimal", "is for CSV files; TFRecord holds numbers as they are"),
                ("thousands", "is for CSV files; TFRecord holds numbers as they are"),
                ("channels", "is for arrays of images; of TFRecord `shape` says what a row is"),
            ],
            &[],
            &[],
        ],
        Some(FileKind::Excel) => [
            &[
                (
                    "features",
                    "names an array; of a workbook every column beside the label is a feature, unless `columns` says which are",
                ),
                ("labels", OF_LABELS),
                ("separator", "is for CSV files; a sheet has its columns apart"),
                ("encoding", "is for CSV files; a workbook says how it writes words"),
                ("decimal", "is for CSV files; a workbook holds numbers as they are"),
                ("thousands", "is for CSV files; a workbook holds numbers as they are"),
                ("channels", "is for arrays of images; of a workbook `shape` says what a row is"),
            ],
            &[],
            &[],
        ],
        Some(FileKind::Parquet) => [
            &[
                (
                    "features",
                    "names an array; of a Parquet file every column beside the label is a feature, unless `columns` says which are",
                ),
                ("labels", OF_LABELS),
                ("separator", "is for CSV files; a Parquet file has its columns apart"),
                ("header", "is for CSV files; a Parquet file has the names of its columns"),
                ENCODING,
                ("decimal", "is for CSV files; a Parquet file holds numbers as they are"),
                ("thousands", "is for CSV files; a Parquet file holds numbers as they are"),
                (
                    "channels",
                    "is for arrays of images; of a Parquet file `shape` says what a row is",
                ),
            ],
            &[],
            &[],
        ],
        Some(FileKind::Npz | FileKind::Hdf5 | FileKind::Safetensors) => {
            [&[("labels", OF_LABELS)], &OF_TABLES, &[]]
        }
        Some(FileKind::Text) => [
            &[
                ("features", OF_ARRAYS),
                ("label", "names a column; text has none, its tokens are what is learnt"),
                ("labels", OF_LABELS),
            ],
            &OF_TABLES,
            &[
                ("shape", "is for rows of numbers; `window` says how long rows of text are"),
                ("channels", "is for arrays of images"),
            ],
        ],
        Some(FileKind::Idx | FileKind::Npy) => {
            [&[("features", OF_ARRAYS), ("label", OF_ARRAYS)], &OF_TABLES, &[]]
        }
        // Images are refused as a whole.
        Some(FileKind::Image) | None => [&[], &[], &[]],
    };
    // A folder of images has no ending that says so.
    let images: Refused = if kind.is_some() { &[ON_BAD_IMAGE] } else { &[] };
    let refused: Vec<Option<()>> = foreign
        .into_iter()
        .flatten()
        .chain(images)
        .filter_map(|(key, reason)| Some(section.optional(key)?.refuse(*reason)))
        .collect();
    refused.into_iter().collect()
}
