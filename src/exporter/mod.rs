//! Makes graphs of users' code: runs the Python package of `python/` where the code's author is, and believes nothing that
//! it says before the graph's own reader has seen the file.
//!
//! ```text
//! job file, shape of the data --> configurations that differ --> python -m sojourn.export --> files
//!                                                                                             |
//!                                    ExportedGraph (as units carry it) <-- sojourn_graph::read
//! ```

mod package;
mod python;

pub(crate) use python::VARIABLE;

use serde::{Deserialize, Serialize};
use sojourn_graph::Graph;
use sojourn_protocol::{
    column::Column,
    digest::{BlobRef, Digest},
    dtype::Dtype,
    manifest::Labels,
    quantity::to_u64,
    spec::{ExportedGraph, InitialWeights, Setting, WINDOW},
};
use std::{
    collections::BTreeMap,
    fs,
    io::{self, BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
};

/// The most bytes of what Python says on standard error that are shown: the end of it.
const SHOWN_ERROR: usize = 4000;

/// The values of a model's own keys.
pub(crate) type Values = BTreeMap<String, Setting>;

/// The data of a job, as a user's code sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct DataDescription {
    #[serde(flatten)]
    columns: Columns,
    /// None where labels are numbers, or columns have names.
    classes: Option<u32>,
    /// Rows that are trained on.
    rows: u64,
}

/// The columns of a batch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
enum Columns {
    /// Rows of numbers with a label.
    Rows { x: BatchColumn, y: BatchColumn },
    /// Columns by name.
    Named { columns: BTreeMap<String, BatchColumn> },
}

/// A column of a batch: its type, and the shape of one row.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct BatchColumn {
    dtype: Dtype,
    shape: Vec<u32>,
    /// How many whole numbers from 0 on there are in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<u64>,
    /// The column of the lengths of its rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<String>,
    /// Is its shape that of the trial's window, and one more?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    window: bool,
}

impl BatchColumn {
    const fn plain(dtype: Dtype, shape: Vec<u32>) -> Self {
        Self { dtype, shape, values: None, length: None, window: false }
    }
}

impl DataDescription {
    /// Data with so many rows of these columns; where they have no names, rows of this shape with these labels.
    pub(crate) fn new(columns: &[Column], shape: &[u32], labels: &Labels, rows: u64) -> Self {
        let (dtype, classes) = match labels {
            Labels::Classes(_) => (Dtype::I64, Some(labels.outputs())),
            Labels::Number => (Dtype::F32, None),
            Labels::None => {
                let columns = Columns::Named { columns: named(columns) };
                return Self { columns, classes: None, rows };
            }
        };
        let x = BatchColumn::plain(Dtype::F32, shape.to_vec());
        let y = BatchColumn::plain(dtype, Vec::new());
        Self { columns: Columns::Rows { x, y }, classes, rows }
    }
}

impl DataDescription {
    /// Rows that a model with these values sees in one that is stored: several where its window is shorter.
    fn windows(&self, values: &Values) -> u64 {
        let Columns::Named { columns } = &self.columns else { return 1 };
        let stored = columns.values().find(|column| column.window);
        let stored = stored.and_then(|column| column.shape.first()?.checked_sub(1));
        match (stored, values.get(WINDOW)) {
            (Some(stored), Some(Setting::Whole(window))) if *window > 0 => {
                (u64::from(stored) / window.unsigned_abs()).max(1)
            }
            _ => 1,
        }
    }
}

/// The columns of a batch, with those of lengths.
fn named(columns: &[Column]) -> BTreeMap<String, BatchColumn> {
    let mut named = BTreeMap::new();
    for column in columns {
        let length = column.length_name();
        if let Some(length) = &length {
            named.insert(length.clone(), BatchColumn::plain(Dtype::I64, Vec::new()));
        }
        let (values, window) = (column.values, column.windows);
        let shape = column.batch_shape(None);
        let described = BatchColumn { dtype: column.dtype, shape, values, length, window };
        named.insert(column.name.clone(), described);
    }
    named
}

/// The model that is to be exported, in each of its configurations.
#[derive(Debug)]
pub(crate) struct Export<'a> {
    /// The folder that the entry's file is in.
    pub(crate) folder: &'a Path,
    /// `model.py:Cnn`.
    pub(crate) entry: &'a str,
    /// The data.
    pub(crate) data: &'a DataDescription,
    /// How tensors begin.
    pub(crate) initial: InitialWeights,
    /// The values of each configuration.
    pub(crate) configs: &'a [Values],
    /// Where the files go, and what else is needed for a while.
    pub(crate) workspace: &'a Path,
    /// The Python that the command line names.
    pub(crate) python: Option<&'a Path>,
}

/// A graph that was made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Made {
    /// As units carry it.
    pub(crate) graph: ExportedGraph,
    /// The graph's file.
    pub(crate) file: PathBuf,
}

/// Why a configuration can't be exported.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Refusal {
    message: String,
    file: Option<String>,
    line: Option<u64>,
    hint: Option<String>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let (Some(file), Some(line)) = (&self.file, self.line) {
            write!(f, "{file}:{line}: ")?;
        }
        f.write_str(&self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, " {hint}"))
    }
}

/// Why nothing could be exported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportError {
    #[error("can't run `{python}`; `--python` names another Python")]
    Start { python: String, source: io::Error },
    #[error("can't prepare the export in `{folder}`")]
    Workspace { folder: String, source: io::Error },
    #[error("`{python}` can't export `{entry}`:\n{said}")]
    Failed { python: String, entry: String, said: String },
    #[error("the exporter said what can't be understood: {0}")]
    Answer(String),
    #[error("the exporter made a file that is no graph")]
    Graph(#[from] sojourn_graph::GraphError),
}

/// A line of the exporter.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Starting(serde::de::IgnoredAny),
    Exported(MadeLine),
    Refused(RefusedLine),
    Done(serde::de::IgnoredAny),
}

#[derive(Debug, Deserialize)]
struct MadeLine {
    index: usize,
    file: PathBuf,
    flops_per_row: u64,
    widest: u64,
}

#[derive(Debug, Deserialize)]
struct RefusedLine {
    index: usize,
    #[serde(flatten)]
    refusal: Refusal,
}

/// The graph of each configuration, in their order, or why there is none. `told` hears how many are done.
///
/// Blocks while Python runs.
pub(crate) fn export(
    wanted: &Export<'_>,
    told: &mut dyn FnMut(usize),
) -> Result<Vec<Result<Made, Refusal>>, ExportError> {
    let mut child = start(wanted)?;
    let errors = child.stderr.take();
    // Both streams are read at once: a child that fills one would wait for ever.
    let errors = thread::spawn(move || errors.map_or_else(String::new, last_text));
    let request = request(wanted);
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(request.as_bytes()));
    let mut answers: BTreeMap<usize, Result<Made, Refusal>> = BTreeMap::new();
    let read = child.stdout.take().map_or(Ok(()), |lines| {
        BufReader::new(lines).lines().try_for_each(|line| {
            let (index, answer) = match understand(&line.map_err(cut_off)?)? {
                Line::Starting(_) | Line::Done(_) => return Ok(()),
                Line::Exported(made) => {
                    let values = wanted.configs.get(made.index);
                    let windows = values.map_or(1, |values| wanted.data.windows(values));
                    (made.index, Ok(accept(&made, windows)?))
                }
                Line::Refused(refused) => (refused.index, Err(refused.refusal)),
            };
            answers.insert(index, answer);
            told(answers.len());
            Ok::<(), ExportError>(())
        })
    });
    if read.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|source| cannot_start(wanted, source))?;
    let said = errors.join().unwrap_or_default();
    read?;
    let is_whole = answers.len() == wanted.configs.len() && matches!(written, Some(Ok(())));
    if !status.success() || !is_whole {
        return Err(failed(wanted, status, &said));
    }
    Ok(answers.into_values().collect())
}

fn start(wanted: &Export<'_>) -> Result<Child, ExportError> {
    let workspace = wanted.workspace;
    let package = workspace.join("python");
    package::write(&package).map_err(|source| ExportError::Workspace {
        folder: workspace.display().to_string(),
        source,
    })?;
    let python = python::find(wanted.python, wanted.folder);
    let mut path = vec![package];
    path.extend(std::env::var_os("PYTHONPATH").iter().flat_map(std::env::split_paths));
    let path = std::env::join_paths(path).map_err(|error| {
        let source = io::Error::new(io::ErrorKind::InvalidInput, error);
        ExportError::Workspace { folder: workspace.display().to_string(), source }
    })?;
    Command::new(&python)
        .args(["-W", "ignore", "-m", "sojourn.export"])
        .env("PYTHONPATH", path)
        // Sets and dictionaries of strings then have the same order in every process.
        .env("PYTHONHASHSEED", "0")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| cannot_start(wanted, source))
}

fn cannot_start(wanted: &Export<'_>, source: io::Error) -> ExportError {
    ExportError::Start { python: shown(wanted), source }
}

fn shown(wanted: &Export<'_>) -> String {
    python::find(wanted.python, wanted.folder).display().to_string()
}

fn request(wanted: &Export<'_>) -> String {
    let folder = std::path::absolute(wanted.folder).unwrap_or_else(|_| wanted.folder.to_owned());
    let operators: Vec<&str> = sojourn_graph::operators().collect();
    serde_json::json!({
        "folder": folder,
        "entry": wanted.entry,
        "operators": operators,
        "data": wanted.data,
        "initial": wanted.initial,
        "configs": wanted.configs,
        "output": wanted.workspace,
    })
    .to_string()
}

fn cut_off(error: io::Error) -> ExportError {
    ExportError::Answer(error.to_string())
}

fn understand(line: &str) -> Result<Line, ExportError> {
    serde_json::from_str(line).map_err(|error| ExportError::Answer(error.to_string()))
}

/// The graph in a file, read as every trainer will; a stored row is so many of its rows.
fn accept(made: &MadeLine, windows: u64) -> Result<Made, ExportError> {
    let bytes = fs::read(&made.file).map_err(|source| ExportError::Workspace {
        folder: made.file.display().to_string(),
        source,
    })?;
    let graph = Graph::read(&bytes)?;
    let file = BlobRef { sha256: Digest::of(&bytes), bytes: to_u64(bytes.len()) };
    let flops_per_row = made.flops_per_row.saturating_mul(windows);
    let widest = made.widest.saturating_mul(windows);
    Ok(Made { graph: graph.summary(file, flops_per_row, widest), file: made.file.clone() })
}

fn failed(wanted: &Export<'_>, status: ExitStatus, said: &str) -> ExportError {
    let said = said.trim();
    let said = if said.is_empty() { format!("it ended with {status}") } else { said.to_owned() };
    ExportError::Failed { python: shown(wanted), entry: wanted.entry.to_owned(), said }
}

/// The end of a stream's text.
fn last_text(mut stream: impl io::Read) -> String {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    while let Ok(count @ 1..) = stream.by_ref().read(&mut part) {
        bytes.extend_from_slice(part.get(..count).unwrap_or_default());
        let surplus = bytes.len().saturating_sub(2 * SHOWN_ERROR);
        bytes.drain(..surplus);
    }
    let surplus = bytes.len().saturating_sub(SHOWN_ERROR);
    String::from_utf8_lossy(bytes.get(surplus..).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests;
