//! CSV: a file, or a folder of parts with one header.

mod lines;
mod records;
mod separator;
mod split;

use crate::{
    error::{IngestError, Place, Problem},
    fields::{FieldSource, FieldTable, Names, Need, same},
    source::SourceFile,
    table::{Reading, Wanted},
};
use lines::Lines;
use records::CsvRecords;
use sojourn_protocol::spec::Separator;
use split::visit;

/// Fields as text between separators.
#[derive(Debug, Clone)]
pub(crate) struct Csv {
    parts: Vec<SourceFile>,
    first: String,
    columns: Vec<String>,
    separator: Separator,
}

/// The separator of a file, where it was found out and is no comma.
type Found = Option<(String, Separator)>;

impl Csv {
    /// Reads the headers of `parts`; also returns the separator of the first.
    pub(crate) fn open(
        shown: &str,
        parts: Vec<SourceFile>,
        label: Option<&str>,
        reading: Reading<'_>,
    ) -> Result<(FieldTable<Self>, Found), IngestError> {
        let said = reading.text.separator;
        let looked_for = match reading.wanted {
            Wanted::Features([first, ..]) => Some(first.as_str()),
            Wanted::Labelled | Wanted::Features([]) => label,
        };
        let separator = match (said, parts.first()) {
            (Some(said), _) => said,
            (None, Some(part)) => separator::find(&first_line(part)?, looked_for),
            (None, None) => Separator::Comma,
        };
        let first = parts.first().map_or(shown, SourceFile::shown).to_owned();
        let mut columns: Vec<String> = Vec::new();
        for part in &parts {
            let found = names(part, separator)?;
            if columns.is_empty() {
                columns = found;
            } else {
                same(&header(part.shown()), &found, &columns, &first)?;
            }
        }
        let found = said.is_none() && separator != Separator::Comma;
        let found = found.then(|| (first.clone(), separator));
        let csv = Self { parts, first, columns, separator };
        Ok((FieldTable::open(shown, csv, label, reading)?, found))
    }
}

/// Where the names of columns are.
fn header(file: &str) -> Place {
    Place { line: Some(1), ..Place::of(file) }
}

/// The header line of one file.
fn first_line(part: &SourceFile) -> Result<Vec<u8>, IngestError> {
    let mut lines = Lines::open(part)?;
    match lines.next()? {
        Some((_, line)) => Ok(line.to_vec()),
        None => Err(part.refuse(Problem::Empty)),
    }
}

/// The column names of one file.
fn names(part: &SourceFile, separator: Separator) -> Result<Vec<String>, IngestError> {
    let line = first_line(part)?;
    let refuse = |problem| header(part.shown()).refuse(problem);
    if line.trim_ascii().is_empty() {
        return Err(refuse(Problem::NoTable { what: "empty".to_owned() }));
    }
    let mut names = Names::default();
    let push =
        |_, field: &[u8]| names.push(std::str::from_utf8(field).map_err(|_| Problem::NotUtf8)?);
    visit(&line, separator.byte(), push).map_err(|(_, problem)| refuse(problem))?;
    Ok(names.finish())
}

impl FieldSource for Csv {
    type Records<'a> = CsvRecords<'a>;

    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn first(&self) -> &str {
        &self.first
    }

    fn header(&self, file: &str) -> Place {
        header(file)
    }

    fn bytes(&self) -> u64 {
        self.parts.iter().map(SourceFile::bytes).sum()
    }

    fn records(&self, _: Vec<Need>) -> Result<CsvRecords<'_>, IngestError> {
        Ok(CsvRecords::new(self))
    }
}
