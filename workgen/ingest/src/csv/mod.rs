//! CSV: a file, or a folder of parts with the same columns.

mod lines;
mod names;
mod records;
mod separator;
mod split;

pub(crate) use names::of_header;
pub(crate) use split::visit;

use crate::{
    bounds::{SharedBounds, unbounded},
    error::{IngestError, Place, Problem},
    fields::{FieldSource, FieldTable, Need, same},
    source::SourceFile,
    table::{Reading, Wanted},
};
pub(crate) use lines::Lines;
use records::CsvRecords;
use sojourn_protocol::spec::{DecimalSign, Header, Separator};

/// Fields as text between separators.
#[derive(Debug, Clone)]
pub(crate) struct Csv {
    parts: Vec<SourceFile>,
    first: String,
    columns: Vec<String>,
    separator: Separator,
    header: Option<Header>,
    /// The line of the first part that has the names.
    header_line: u64,
}

/// The facts that were found out about a source, for people.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The file, and its separator, where it was found out and is no comma.
    pub(crate) separator: Option<(String, Separator)>,
}

impl Csv {
    /// Finds the columns of `parts`.
    pub(crate) fn open(
        shown: &str,
        parts: Vec<SourceFile>,
        label: Option<&str>,
        reading: Reading<'_>,
    ) -> Result<(FieldTable<Self>, Found), IngestError> {
        let dialect = reading.text.dialect;
        let looked_for = match (&dialect.header, reading.wanted) {
            (Some(Header::Position | Header::Names(_)), _) => None,
            (_, Wanted::Features([first, ..])) => Some(first.as_str()),
            (_, Wanted::Labelled | Wanted::Features([])) => label,
        };
        let first = parts.first().map_or(shown, SourceFile::shown).to_owned();
        let said = match (reading.text.separator, parts.first()) {
            (None, Some(part)) => Lines::open(part)?.said(),
            (said, _) => said,
        };
        let separator = match (said, parts.first()) {
            (Some(said), _) => said,
            (None, Some(part)) => {
                let records = first_records(part)?;
                let record = |separator| of(&records, separator);
                let is_row = matches!(dialect.header, Some(Header::Position | Header::Names(_)));
                let by_width = match reading.wanted {
                    Wanted::Features(names) if is_row => {
                        let fits = |width| is_width(dialect.header.as_ref(), names, label, width);
                        // Rows to predict may be without their label.
                        separator::find_by_width(record, fits)
                            .or_else(|| separator::find_by_width(record, |width| fits(width + 1)))
                    }
                    Wanted::Features(_) | Wanted::Labelled => None,
                };
                match dialect.numbers.decimal {
                    _ if by_width.is_some() => by_width.unwrap_or(Separator::Comma),
                    DecimalSign::Comma if is_row => separator::find_beside_commas(record),
                    DecimalSign::Comma | DecimalSign::Point => separator::find(record, looked_for),
                }
            }
            (None, None) => Separator::Comma,
        };
        let mut csv = Self {
            parts: Vec::new(),
            first: first.clone(),
            columns: Vec::new(),
            separator,
            header: dialect.header.clone(),
            header_line: 1,
        };
        for part in &parts {
            let (line, found) = csv.names(part, label, reading.wanted)?;
            if csv.columns.is_empty() {
                (csv.header_line, csv.columns) = (line, found);
            } else {
                same(&csv.header(part.shown()), &found, &csv.columns, &first)?;
            }
        }
        csv.parts = parts;
        let found = said.is_none() && separator != Separator::Comma;
        let found = Found { separator: found.then_some((first, separator)) };
        Ok((FieldTable::open(shown, csv, label, reading)?, found))
    }

    /// Has the first line of each part the names of columns?
    fn has_header(&self) -> bool {
        matches!(self.header, None | Some(Header::First))
    }

    /// Did the job give the names of columns?
    fn has_given_names(&self) -> bool {
        matches!(self.header, Some(Header::Names(_)))
    }

    /// The names of one part's columns, and the line of its first record.
    fn names(
        &self,
        part: &SourceFile,
        label: Option<&str>,
        wanted: Wanted<'_>,
    ) -> Result<(u64, Vec<String>), IngestError> {
        let mut lines = Lines::open(part)?;
        let Some(record) = lines.next(self.separator)? else {
            return Err(part.refuse(Problem::Empty));
        };
        let line = record.line;
        let refuse =
            |problem| Place { line: Some(line), ..Place::of(part.shown()) }.refuse(problem);
        if record.text.trim_ascii().is_empty() {
            return Err(refuse(Problem::NoTable { what: "empty".to_owned() }));
        }
        let fields = names::fields(record.text, self.separator).map_err(refuse)?;
        let names = match &self.header {
            None | Some(Header::First) => {
                let is_asked_for = |name: &String| {
                    fields.iter().any(|field| field.trim_ascii() == name.as_bytes())
                };
                let is_header = match wanted {
                    Wanted::Features(names) => !names.is_empty() && names.iter().all(is_asked_for),
                    Wanted::Labelled => false,
                };
                if self.header.is_none() && !is_header && names::are_numbers(&fields) {
                    return Err(refuse(Problem::NumbersForHeader));
                }
                names::of_header(fields).map_err(refuse)?
            }
            Some(Header::Position) => names::by_position(fields.len()),
            Some(Header::Names(given)) => {
                let is_label = |name: &String| Some(name.as_str()) == label;
                let to_predict = matches!(wanted, Wanted::Features(_));
                // Rows to predict may be without the column of the labels.
                if to_predict && fields.len() + 1 == given.len() && given.iter().any(is_label) {
                    given.iter().filter(|name| !is_label(name)).cloned().collect()
                } else if fields.len() == given.len() {
                    given.clone()
                } else {
                    let (actual, expected) = (fields.len(), given.len());
                    return Err(refuse(Problem::NamedWidth { actual, expected }));
                }
            }
        };
        Ok((line, names))
    }
}

/// Are rows of so many fields, with their label, those of a model over these columns of files without a header?
fn is_width(header: Option<&Header>, wanted: &[String], label: Option<&str>, width: usize) -> bool {
    if let Some(Header::Names(given)) = header {
        return width == given.len();
    }
    let mut positions = wanted.iter().map(String::as_str).chain(label);
    positions.all(|name| name.parse().is_ok_and(|position: usize| position <= width))
}

/// The first record of a file with each of the separators; a line break may be in quotes.
fn first_records(part: &SourceFile) -> Result<Vec<(Separator, Vec<u8>)>, IngestError> {
    let record = |separator| {
        let mut lines = Lines::open(part)?;
        match lines.next(separator)? {
            Some(record) => Ok((separator, record.text.to_vec())),
            None => Err(part.refuse(Problem::Empty)),
        }
    };
    Separator::ALL.into_iter().map(record).collect()
}

fn of(records: &[(Separator, Vec<u8>)], separator: Separator) -> Vec<u8> {
    let found = records.iter().find(|(of, _)| *of == separator);
    found.map(|(_, record)| record.clone()).unwrap_or_default()
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
        Place { line: Some(self.header_line), ..Place::of(file) }
    }

    fn no_label(&self) -> Option<&'static str> {
        let is_comment = self.columns.first().is_some_and(|name| name.starts_with('#'));
        match &self.header {
            None | Some(Header::First) if is_comment => None,
            None | Some(Header::First) => Some(
                "; the first line was taken for the names of the columns: if it is a row, say `data.header = false`, or give \
                 the names, `data.header = [\"a\", \"b\", ...]`; if it is a title above them, leave it out: `tail -n +2 FILE > \
                 NEW_FILE`",
            ),
            Some(Header::Position) => {
                Some("; without a header columns are named by their positions, from 1")
            }
            Some(Header::Names(_)) => Some("; `data.header` names the columns"),
        }
    }

    fn has_comment(&self) -> bool {
        self.has_header() && self.columns.first().is_some_and(|name| name.starts_with('#'))
    }

    fn is_text(&self) -> bool {
        true
    }

    fn bytes(&self) -> u64 {
        self.parts.iter().map(SourceFile::bytes).sum()
    }

    fn bounds(&self) -> SharedBounds {
        self.parts.first().map_or_else(unbounded, |part| SharedBounds::clone(part.bounds()))
    }

    fn records(&self, _: Vec<Need>) -> Result<CsvRecords<'_>, IngestError> {
        Ok(CsvRecords::new(self))
    }
}
