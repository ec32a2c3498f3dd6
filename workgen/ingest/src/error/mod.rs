//! Errors of data, with their place.

mod problem;
mod reason;
mod remedy;
mod several;
mod sparse;
#[cfg(test)]
mod tests;

pub use problem::{Problem, RaggedHint, Way};
pub use reason::Reason;
pub use several::{BadRow, MAX_TOLD, Problems};
pub use sparse::SparseProblem;

use sojourn_protocol::text::{MAX_NAME_CHARS, plain_line};
use std::{fmt, io, path::PathBuf};

/// Why reading ends early, where [bounds](crate::bounds) are passed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// Why data could not be made into shards.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum IngestError {
    /// Something in a file.
    #[error("{at}{problem}")]
    Data { at: Box<Place>, problem: Problem },
    /// Several things in the rows of one source.
    #[error("{0}")]
    Several(Box<Problems>),
    #[error("`{key}`: there is no file or folder `{path}`")]
    NotFound { key: &'static str, path: PathBuf },
    #[error(
        "`{key}`: the folder `{path}` holds no `.csv`, `.jsonl`, `.libsvm`, `.tfrecord`, `.parquet`, `.xlsx`, `.npz`, `.h5` or `.safetensors` file, no JPEG, PNG, TIFF or WebP image, and no `.txt` file, which `data.window` would cut"
    )]
    NoParts { key: &'static str, path: PathBuf },
    #[error(
        "`{key}`: the folder `{path}` holds files of several kinds: `{}` and `{}`",
        sentence(&files.0), sentence(&files.1)
    )]
    MixedParts { key: &'static str, path: PathBuf, files: Box<(String, String)> },
    #[error("the labels were looked for in `{labels}`; another file is named by `labels`")]
    NoSibling { labels: String, source: Box<IngestError> },
    #[error("can't fetch `{url}`")]
    Fetch { url: String, source: FetchError },
    #[error(
        "`data.shape` {shape} has {values} values, but `{file}` has {features} feature columns",
        shape = sides(.shape), file = sentence(.file)
    )]
    Shape { shape: Vec<u32>, values: u32, features: u32, file: String },
    #[error(
        "`data.shape` is {shape}, but a row of `{file}` is {actual}",
        shape = sides(.shape), actual = sides(.actual), file = sentence(.file)
    )]
    ArrayShape { shape: Vec<u32>, actual: Vec<u32>, file: String },
    #[error(
        "`data.shards` is {shards}, but only {rows} of {total} rows are left to train on; at least one row a shard is needed"
    )]
    TooManyShards { shards: u32, rows: u64, total: u64 },
    #[error(
        "only {left} of {total} windows of {window} tokens are left to train on, and at least {shards} are needed, one for each shard; add text, or make `data.window` smaller"
    )]
    TooFewWindows { window: u32, left: u64, total: u64, shards: u32 },
    #[error(
        "a shard would have {rows} rows; raise `data.shards` until it has at most {}",
        u32::MAX
    )]
    TooFewShards { rows: u64 },
    #[error("{groups} groups (`data.groups`) are too few: {wanted} folds or shares need one each")]
    TooFewGroups { groups: u64, wanted: u64 },
    #[error("shards of {rows} rows in all are wanted, but {left} rows are left to train on")]
    OtherRows { rows: u64, left: u64 },
    /// The operating system refused something.
    #[error("can't {action} `{path}`")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    /// The bounds of reading.
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("the data can't be encoded")]
    Codec(#[from] sojourn_codec::CodecError),
}

impl IngestError {
    /// The problems, a line each, where there are several.
    #[must_use]
    pub fn several(&self) -> Option<Vec<String>> {
        match self {
            IngestError::Several(problems) => Some(problems.messages()),
            _ => None,
        }
    }

    /// An operating-system error of `action` on `path`.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| IngestError::Io { action, path, source }
    }
}

/// Why a URL couldn't be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum FetchError {
    #[error("it is no URL: {text}", text = sentence(.0))]
    BadUrl(String),
    #[error("the server answers {status}{hint}", status = line(.status))]
    Status { status: String, hint: &'static str },
    /// There is no request that could be sent: a scheme that nobody knows, redirects without an end.
    #[error("{text}", text = sentence(.0))]
    Request(String),
    #[error("it leads to `{text}`, which may not be fetched", text = sentence(.0))]
    Elsewhere(String),
    #[error("{attempts} attempts failed after {bytes} bytes: {reason}", reason = line(.reason))]
    Cut { attempts: u32, bytes: u64, reason: String },
    #[error("the server sent another part, or another version, than it was asked for")]
    Mixed,
    #[error(
        "no credentials: set `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, or `AWS_SKIP_SIGNATURE=true` for a public bucket ({text})",
        text = sentence(.0)
    )]
    NoCredentials(String),
    #[error("this program was built without S3; `make build` builds the whole")]
    NotBuilt,
    /// The object store said no.
    #[error("{text}", text = sentence(.0))]
    Store(String),
}

/// A place in a file, as people write it: `file:line: column: `, `file: row: column: `, or `file: element: `.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, as the job names it.
    pub file: String,
    /// The line, counted from 1, where it is about one.
    pub line: Option<u64>,
    /// The row of a file without lines, counted from 1, where it is about one.
    pub row: Option<u64>,
    /// The column's name, where it is about one.
    pub column: Option<String>,
    /// An array, or an element of it counted from 0: `x[31, 0, 7]`.
    pub element: Option<String>,
}

impl Place {
    /// A file as a whole.
    pub(crate) fn of(file: &str) -> Self {
        Self { file: file.to_owned(), line: None, row: None, column: None, element: None }
    }

    /// A problem there.
    pub(crate) fn refuse(self, problem: Problem) -> IngestError {
        IngestError::Data { at: Box::new(self), problem }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&sentence(&self.file))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        f.write_str(": ")?;
        if let Some(row) = self.row {
            write!(f, "row {row}: ")?;
        }
        // Names out of the file, which may be as long as the file.
        match (&self.column, &self.element) {
            (Some(column), _) => write!(f, "column `{}`: ", line(column)),
            (None, Some(element)) => write!(f, "`{}`: ", line(element)),
            (None, None) => Ok(()),
        }
    }
}

/// A name as it is shown: those out of a file may be as long as the file, and a terminal might obey them.
fn line(name: &str) -> String {
    plain_line(name, MAX_NAME_CHARS)
}

/// A path, several names, or a reason with some.
fn sentence(text: &str) -> String {
    plain_line(text, 4 * MAX_NAME_CHARS)
}

/// A shape, of which a file may have thousands of dimensions.
fn sides<T: fmt::Debug>(shape: &[T]) -> String {
    line(&format!("{shape:?}"))
}
