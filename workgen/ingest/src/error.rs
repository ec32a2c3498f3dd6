//! What can be wrong with data, and where.

use std::{fmt, io, path::PathBuf};

/// Why data could not be made into shards.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
    /// Something in a file.
    #[error("{at}{problem}")]
    Data {
        /// Where.
        at: Box<Place>,
        /// What.
        problem: Problem,
    },
    /// A path that leads nowhere.
    #[error("`{key}`: there is no file or folder `{path}`")]
    NotFound {
        /// The key of the job file.
        key: &'static str,
        /// The path, as looked for.
        path: PathBuf,
    },
    /// A folder without data.
    #[error("`{key}`: the folder `{path}` holds no `.csv` file")]
    NoParts {
        /// The key of the job file.
        key: &'static str,
        /// The folder.
        path: PathBuf,
    },
    /// The job's shape doesn't fit the columns.
    #[error(
        "`data.shape` {shape:?} has {values} values, but `{file}` has {features} feature columns"
    )]
    Shape {
        /// What the job asks for.
        shape: Vec<u32>,
        /// Its product.
        values: u32,
        /// Columns besides the label.
        features: u32,
        /// The training data.
        file: String,
    },
    /// Fewer rows to train on than shards.
    #[error(
        "`data.shards` is {shards}, but only {rows} of {total} rows are left to train on; at least one row a shard is needed"
    )]
    TooManyShards {
        /// What the job asks for.
        shards: u32,
        /// Rows to train on.
        rows: u64,
        /// Rows in all.
        total: u64,
    },
    /// A shard with more rows than can be counted.
    #[error(
        "a shard would have {rows} rows; raise `data.shards` until it has at most {}",
        u32::MAX
    )]
    TooFewShards {
        /// Rows of the largest shard.
        rows: u64,
    },
    /// The operating system refused something.
    #[error("can't {action} `{path}`")]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// Tensors that can't be encoded.
    #[error("the data can't be encoded")]
    Codec(#[from] sojourn_codec::CodecError),
}

impl IngestError {
    /// An operating-system error of `action` on `path`.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| IngestError::Io { action, path, source }
    }
}

/// A place in a file, as people write it: `file:line: column: `.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, as the job names it.
    pub file: String,
    /// The line, counted from 1, where it is about one.
    pub line: Option<u64>,
    /// The column's name, where it is about one.
    pub column: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        f.write_str(": ")?;
        match &self.column {
            Some(column) => write!(f, "column `{column}`: "),
            None => Ok(()),
        }
    }
}

/// What is wrong at a [`Place`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum Problem {
    #[error("the file is empty")]
    Empty,
    #[error("there is a header and no row")]
    NoRows,
    #[error("the file is {0}, no CSV text")]
    NotText(&'static str),
    #[error("a line of over {limit} bytes; is this a CSV file?")]
    LongLine { limit: u64 },
    #[error("a quote isn't closed in its line")]
    OpenQuote,
    #[error("text after a closing quote")]
    AfterQuote,
    #[error("the text isn't UTF-8")]
    NotUtf8,
    #[error("column {number} has no name")]
    UnnamedColumn { number: usize },
    #[error("column `{name}` is there twice, as number {first} and {second}")]
    DuplicateColumn { name: String, first: usize, second: usize },
    #[error("no column `{label}` (`data.label`){hint}")]
    NoLabel { label: String, hint: String },
    #[error("no feature column beside the label")]
    NoFeatures,
    #[error("{actual} columns, {expected} as in `{of}` are wanted")]
    HeaderWidth { actual: usize, expected: usize, of: String },
    #[error("column {number} is `{actual}`, but `{expected}` in `{of}`")]
    HeaderName { number: usize, actual: String, expected: String, of: String },
    #[error("{actual} values, the header has {expected} columns")]
    Ragged { actual: usize, expected: usize },
    #[error("a value is missing")]
    Missing,
    #[error("`{0}` is no number")]
    NotANumber(String),
    #[error("`{0}` is not finite")]
    NotFinite(String),
    #[error("`{0}` is too large for single precision")]
    TooLarge(String),
    #[error("`{0}` is no number, as labels must be with `training.loss = \"mse\"`")]
    LabelNotANumber(String),
    #[error("a label of over {limit} bytes")]
    LongLabel { limit: usize },
    #[error("the label `{0}` doesn't occur in the training data")]
    UnseenLabel(String),
    #[error("over {limit} different labels; for numbers to predict, set `training.loss = \"mse\"`")]
    TooManyClasses { limit: usize },
    #[error("every row has the label `{0}`; at least two classes are needed")]
    OneClass(String),
    #[error("the file changed while it was read")]
    Changed,
}
