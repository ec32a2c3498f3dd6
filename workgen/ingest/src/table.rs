//! A CSV file, or a folder of CSV parts with one header: its columns and its rows.

use crate::{
    error::{IngestError, Place, Problem},
    fields::{number, shown, visit},
};
use sojourn_protocol::jobfile::nearest;
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

/// Longest line that is read.
const MAX_LINE: u64 = 64 << 20;
const READ_BUFFER: usize = 1 << 20;
/// How often progress is told, in bytes.
const TELL_EVERY: u64 = 4 << 20;
/// How formats that people take for CSV begin.
const OTHER_FORMATS: &[(&[u8], &str)] = &[
    (b"\x1f\x8b", "compressed by gzip"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd"),
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet"),
    (b"PAR1", "a Parquet file"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A file or folder of rows.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    shown: String,
    parts: Vec<Part>,
    columns: Vec<String>,
    label: usize,
}

/// One file of it.
#[derive(Debug, Clone)]
struct Part {
    path: PathBuf,
    shown: String,
    bytes: u64,
}

impl Part {
    fn refuse(&self, line: Option<u64>, column: Option<String>, problem: Problem) -> IngestError {
        place(&self.shown, line, column, problem)
    }
}

impl Table {
    /// Finds the files that `key` of the job names by `path`, and reads their headers.
    pub(crate) fn open(
        key: &'static str,
        base_dir: &Path,
        path: &str,
        label: &str,
    ) -> Result<Self, IngestError> {
        let parts = parts(key, &base_dir.join(path), path)?;
        let mut table = Self { shown: path.to_owned(), parts, columns: Vec::new(), label: 0 };
        for part in &table.parts {
            let columns = header(part)?;
            if table.columns.is_empty() {
                table.label = find_label(part, &columns, label)?;
                table.columns = columns;
            } else {
                same(part, &columns, &table.columns, &table.first_shown())?;
            }
        }
        Ok(table)
    }

    /// Refuses where the columns aren't those of `other`.
    pub(crate) fn same_columns(&self, other: &Table) -> Result<(), IngestError> {
        match self.parts.first() {
            Some(part) => same(part, &self.columns, &other.columns, &other.first_shown()),
            None => Ok(()),
        }
    }

    /// Its name, as the job writes it.
    pub(crate) fn shown(&self) -> String {
        self.shown.clone()
    }

    fn first_shown(&self) -> String {
        self.parts.first().map_or_else(|| self.shown.clone(), |part| part.shown.clone())
    }

    /// Bytes of all its files.
    pub(crate) fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// Names of all columns but the label, in order.
    pub(crate) fn features(&self) -> Vec<String> {
        let columns = self.columns.iter().enumerate();
        columns.filter(|(index, _)| *index != self.label).map(|(_, name)| name.clone()).collect()
    }

    /// A problem of the whole.
    pub(crate) fn refuse(&self, problem: Problem) -> IngestError {
        place(&self.shown, None, None, problem)
    }

    /// A problem of the label column.
    pub(crate) fn refuse_column(&self, problem: Problem) -> IngestError {
        place(&self.shown, None, self.columns.get(self.label).cloned(), problem)
    }

    /// The second pass found something else than the first.
    pub(crate) fn changed(&self) -> IngestError {
        self.refuse(Problem::Changed)
    }

    /// Calls `take` with every row, parts in name order; `progress` with the bytes read so far.
    pub(crate) fn rows(
        &self,
        progress: &mut dyn FnMut(u64),
        mut take: impl FnMut(&Row<'_>) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let mut before = 0;
        for part in &self.parts {
            let mut lines = Lines::open(part)?;
            lines.next()?;
            let mut told = 0;
            while let Some((line, bytes)) = lines.next()? {
                // The last line of many files is empty; no row can be, it has two columns or more.
                if !bytes.is_empty() {
                    take(&Row { table: self, part, line, bytes })?;
                }
                if lines.read - told >= TELL_EVERY {
                    told = lines.read;
                    progress(before + told);
                }
            }
            before += part.bytes;
            progress(before);
        }
        Ok(())
    }
}

/// One row, not yet split.
pub(crate) struct Row<'a> {
    table: &'a Table,
    part: &'a Part,
    line: u64,
    bytes: &'a [u8],
}

impl Row<'_> {
    /// Checks the width and takes the label's text.
    pub(crate) fn check(&self, label: &mut Vec<u8>) -> Result<(), IngestError> {
        let count = visit(self.bytes, |index, field| {
            if index == self.table.label {
                set_label(label, field);
            }
            Ok(())
        });
        self.width(count)
    }

    /// Takes the features' numbers and the label's text.
    pub(crate) fn read(
        &self,
        numbers: &mut Vec<f32>,
        label: &mut Vec<u8>,
    ) -> Result<(), IngestError> {
        numbers.clear();
        let count = visit(self.bytes, |index, field| {
            if index == self.table.label {
                set_label(label, field);
            } else {
                numbers.push(number(field)?);
            }
            Ok(())
        });
        self.width(count)
    }

    fn width(&self, count: Result<usize, (usize, Problem)>) -> Result<(), IngestError> {
        let expected = self.table.columns.len();
        match count {
            Ok(actual) if actual == expected => Ok(()),
            Ok(actual) => {
                Err(self.part.refuse(Some(self.line), None, Problem::Ragged { actual, expected }))
            }
            Err((index, problem)) => {
                let column = self.table.columns.get(index).cloned();
                Err(self.part.refuse(Some(self.line), column, problem))
            }
        }
    }

    /// The label as a number.
    pub(crate) fn label_number(&self, label: &[u8]) -> Result<f32, IngestError> {
        number(label).map_err(|problem| {
            self.refuse_label(match problem {
                Problem::NotANumber(text) => Problem::LabelNotANumber(text),
                other => other,
            })
        })
    }

    /// A problem of this row's label.
    pub(crate) fn refuse_label(&self, problem: Problem) -> IngestError {
        let column = self.table.columns.get(self.table.label).cloned();
        self.part.refuse(Some(self.line), column, problem)
    }
}

fn set_label(label: &mut Vec<u8>, field: &[u8]) {
    label.clear();
    label.extend_from_slice(field.trim_ascii());
}

/// The lines of one file, with their numbers.
struct Lines<'a> {
    part: &'a Part,
    reader: BufReader<File>,
    line: Vec<u8>,
    number: u64,
    read: u64,
}

impl<'a> Lines<'a> {
    fn open(part: &'a Part) -> Result<Self, IngestError> {
        let file = File::open(&part.path).map_err(IngestError::io("open", &part.path))?;
        let reader = BufReader::with_capacity(READ_BUFFER, file);
        Ok(Self { part, reader, line: Vec::new(), number: 0, read: 0 })
    }

    /// The next line, without its end.
    fn next(&mut self) -> Result<Option<(u64, &[u8])>, IngestError> {
        self.line.clear();
        let mut limited = (&mut self.reader).take(MAX_LINE);
        let read = limited
            .read_until(b'\n', &mut self.line)
            .map_err(IngestError::io("read", &self.part.path))?;
        let read = u64::try_from(read).unwrap_or(u64::MAX);
        if read == 0 {
            return Ok(None);
        }
        self.read += read;
        self.number += 1;
        let mut line = self.line.as_slice();
        if let Some(rest) = line.strip_suffix(b"\n") {
            line = rest.strip_suffix(b"\r").unwrap_or(rest);
        } else if read == MAX_LINE {
            let problem = Problem::LongLine { limit: MAX_LINE };
            return Err(self.part.refuse(Some(self.number), None, problem));
        }
        if self.number == 1 {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        Ok(Some((self.number, line)))
    }
}

fn place(file: &str, line: Option<u64>, column: Option<String>, problem: Problem) -> IngestError {
    let at = Box::new(Place { file: file.to_owned(), line, column });
    IngestError::Data { at, problem }
}

/// The files that a path names: itself, or a folder's `.csv` files in name order.
fn parts(key: &'static str, path: &Path, shown: &str) -> Result<Vec<Part>, IngestError> {
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => IngestError::NotFound { key, path: path.to_owned() },
        _ => IngestError::io("look at", path)(error),
    })?;
    if !metadata.is_dir() {
        let part = Part { path: path.to_owned(), shown: shown.to_owned(), bytes: metadata.len() };
        return Ok(vec![part]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(IngestError::io("list", path))? {
        let path = entry.map_err(IngestError::io("list", path))?.path();
        let is_csv = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
        let metadata = fs::metadata(&path).map_err(IngestError::io("look at", &path))?;
        let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else {
            continue;
        };
        if is_csv && metadata.is_file() && !name.starts_with('.') {
            let shown = format!("{}/{name}", shown.trim_end_matches('/'));
            found.push(Part { path, shown, bytes: metadata.len() });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    if found.is_empty() {
        return Err(IngestError::NoParts { key, path: path.to_owned() });
    }
    Ok(found)
}

/// The column names of one file.
fn header(part: &Part) -> Result<Vec<String>, IngestError> {
    let refuse = |problem| part.refuse(Some(1), None, problem);
    let mut lines = Lines::open(part)?;
    let start = lines.reader.fill_buf().map_err(IngestError::io("read", &part.path))?;
    if let Some((_, what)) = OTHER_FORMATS.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Err(part.refuse(None, None, Problem::NotText(what)));
    }
    let Some((_, line)) = lines.next()? else {
        return Err(part.refuse(None, None, Problem::Empty));
    };
    let mut columns: Vec<String> = Vec::new();
    let mut first_at = BTreeMap::new();
    visit(line, |index, field| {
        let name = std::str::from_utf8(field).map_err(|_| Problem::NotUtf8)?.trim();
        let second = index + 1;
        if name.is_empty() {
            return Err(Problem::UnnamedColumn { number: second });
        }
        if let Some(first) = first_at.insert(name.to_owned(), second) {
            return Err(Problem::DuplicateColumn { name: shown(field), first, second });
        }
        columns.push(name.to_owned());
        Ok(())
    })
    .map_err(|(_, problem)| refuse(problem))?;
    Ok(columns)
}

fn find_label(part: &Part, columns: &[String], label: &str) -> Result<usize, IngestError> {
    let refuse = |problem| part.refuse(Some(1), None, problem);
    let Some(index) = columns.iter().position(|column| column == label) else {
        let hint = match (nearest(label, columns.iter().map(String::as_str)), columns) {
            (_, [only]) if only.contains([';', '\t']) => {
                "; the header has no comma: are columns separated by something else?".to_owned()
            }
            (Some(near), _) => format!("; did you mean `{near}`?"),
            (None, [.., last]) => {
                let (count, last) = (columns.len(), shown(last.as_bytes()));
                format!("; there are {count} columns, the last is `{last}`")
            }
            (None, []) => String::new(),
        };
        return Err(refuse(Problem::NoLabel { label: label.to_owned(), hint }));
    };
    if columns.len() == 1 {
        return Err(refuse(Problem::NoFeatures));
    }
    Ok(index)
}

/// Refuses where the columns of `part` aren't `expected`, which are those of the file `of`.
fn same(part: &Part, columns: &[String], expected: &[String], of: &str) -> Result<(), IngestError> {
    let refuse = |problem| Err(part.refuse(Some(1), None, problem));
    let of = of.to_owned();
    if columns.len() != expected.len() {
        return refuse(Problem::HeaderWidth {
            actual: columns.len(),
            expected: expected.len(),
            of,
        });
    }
    let mut pairs = (1..).zip(columns.iter().zip(expected));
    match pairs.find(|(_, (actual, expected))| actual != expected) {
        None => Ok(()),
        Some((number, (actual, expected))) => {
            let shown = |name: &String| shown(name.as_bytes());
            refuse(Problem::HeaderName {
                number,
                actual: shown(actual),
                expected: shown(expected),
                of,
            })
        }
    }
}
