//! A table: its separator, whether a line names its columns, and what they hold.

use super::{
    column::{ColumnProfile, MAX_VALUES, Odd, Tally},
    records::{RawRecord, RawRecords, names_below_title},
};
use crate::{
    csv::of_header,
    error::{IngestError, Place},
    json_lines, libsvm,
    missing::MissingValues,
    number::{number, truth},
    parquet,
    progress::Progress,
    source::{Finder, SourceFile},
    tfrecord,
};
use serde::Serialize;
use sojourn_protocol::spec::{FileKind, Separator, TextEncoding};

/// Different values that are kept of each column of files whose columns aren't counted beforehand.
const MAX_NAMED_VALUES: usize = 1 << 10;
/// Records that are shown of those with another number of fields.
const MAX_ODD: usize = 3;

/// A table's columns, as they are found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableProfile {
    /// The format.
    pub format: FileKind,
    /// The sign between the columns of a text file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separator: Option<Separator>,
    /// The encoding of text files.
    #[serde(skip_serializing_if = "is_utf8")]
    pub encoding: TextEncoding,
    /// Does the first line of a text file name the columns?
    pub has_header: bool,
    /// The line that seems to name them, where the lines above it seem to be a title: then nothing else of the profile means anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names_below_title: Option<u64>,
    /// Rows, without lines that are none.
    pub rows: u64,
    /// Lines that are no rows.
    #[serde(skip_serializing_if = "OddLines::are_none")]
    pub odd_lines: OddLines,
    /// Each column.
    pub columns: Vec<ColumnProfile>,
}

/// Lines that are no rows: another number of fields than the first, a stray quote, no JSON object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OddLines {
    /// How many.
    pub count: u64,
    /// The first of them, and what is wrong with each.
    pub first: Vec<Odd>,
}

impl OddLines {
    /// Are there none?
    #[must_use]
    pub const fn are_none(&self) -> bool {
        self.count == 0
    }

    fn add(&mut self, line: u64, why: String) {
        self.count += 1;
        if self.first.len() < MAX_ODD {
            self.first.push(Odd { line, field: why });
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_utf8(encoding: &TextEncoding) -> bool {
    *encoding == TextEncoding::Utf8
}

/// Looks at text files with the same columns.
pub(super) fn of_csv(
    parts: &[SourceFile],
    said: Option<Separator>,
    finder: &mut Finder<'_>,
) -> Result<TableProfile, IngestError> {
    let mut records = RawRecords::open(parts, said)?;
    let separator = records.separator();
    let Some(first) = records.next()?.map(RawRecord::into_fields) else {
        return Err(RawRecords::empty(parts));
    };
    let kept = values_kept(first.len());
    let mut tallies: Vec<Tally> = first.iter().map(|_| Tally::keeping(kept)).collect();
    let (mut rows, mut odd_lines) = (0_u64, OddLines::default());
    let total = parts.iter().map(SourceFile::bytes).sum();
    while let Some(record) = records.next()? {
        let (line, found) = (record.line, record.fields.len());
        if let Some(problem) = record.problem {
            odd_lines.add(line, problem.to_string());
            continue;
        }
        // The names again, at the beginning of another part.
        if record.is_first && record.fields == first {
            continue;
        }
        if found != first.len() {
            odd_lines.add(line, format!("{found} fields, where the first has {}", first.len()));
            continue;
        }
        rows += 1;
        for (tally, field) in tallies.iter_mut().zip(record.fields) {
            tally.take(field, line);
        }
        if rows.is_multiple_of(4096) {
            finder.tell(Progress::Reading { bytes: records.bytes_read(), of: total });
        }
    }
    let mut columns: Vec<ColumnProfile> =
        tallies.into_iter().map(|tally| tally.finish(String::new())).collect();
    let has_header = rows == 0 || names_columns(&first, &columns);
    if has_header {
        let names = of_header(first).map_err(|problem| {
            let file = parts.first().map_or("", SourceFile::shown);
            Place { line: Some(1), ..Place::of(file) }.refuse(problem)
        })?;
        columns.iter_mut().zip(names).for_each(|(column, name)| column.name = name);
    } else {
        rows += 1;
        for (position, (column, field)) in (1..).zip(columns.iter_mut().zip(&first)) {
            column.name = format!("{position}");
            column.add_first(field);
        }
    }
    let format = FileKind::Csv;
    let first = parts.first();
    let names_below_title = first.map(|part| names_below_title(part, separator)).transpose()?;
    Ok(TableProfile {
        names_below_title: names_below_title.flatten(),
        format,
        separator: Some(separator),
        encoding: parts.first().map(SourceFile::encoding).unwrap_or_default(),
        has_header,
        rows,
        odd_lines,
        columns,
    })
}

/// Different values that are kept of each of so many columns: a few million of all.
fn values_kept(columns: usize) -> usize {
    const ALL: usize = 1 << 21;
    MAX_VALUES.min(ALL / columns.max(1)).max(1)
}

/// Looks at Parquet files with the same columns.
pub(super) fn of_parquet(
    shown: &str,
    parts: Vec<SourceFile>,
    finder: &mut Finder<'_>,
) -> Result<TableProfile, IngestError> {
    of_named(FileKind::Parquet, |take, _| parquet::each_row(finder, shown, parts, take))
}

/// Looks at files with an object in each line.
pub(super) fn of_json_lines(
    shown: &str,
    parts: Vec<SourceFile>,
) -> Result<TableProfile, IngestError> {
    of_named(FileKind::JsonLines, |take, odd| json_lines::each_row(shown, parts, take, odd))
}

/// Looks at files with a sparse row in each line.
pub(super) fn of_libsvm(shown: &str, parts: Vec<SourceFile>) -> Result<TableProfile, IngestError> {
    of_named(FileKind::Libsvm, |take, odd| {
        let names = libsvm::each_row(shown, parts, take, odd)?;
        Ok(names.into_iter().map(|name| (name, None)).collect())
    })
}

/// Looks at files of examples.
pub(super) fn of_tfrecord(
    shown: &str,
    parts: Vec<SourceFile>,
) -> Result<TableProfile, IngestError> {
    of_named(FileKind::TfRecord, |take, odd| tfrecord::each_row(shown, parts, take, odd))
}

/// Takes the number of a row, from 1, and a field with its column.
type Take<'a> = &'a mut dyn FnMut(u64, usize, &[u8]);
/// Takes the number of a line that is no row, and why.
type TakeOdd<'a> = &'a mut dyn FnMut(u64, String);
/// Columns, each with the kind of values for which it can't be read.
type NamedColumns = Vec<(String, Option<&'static str>)>;

/// Looks at all fields of files that have the names of their columns.
fn of_named(
    format: FileKind,
    each_row: impl FnOnce(Take<'_>, TakeOdd<'_>) -> Result<NamedColumns, IngestError>,
) -> Result<TableProfile, IngestError> {
    let mut tallies: Vec<Tally> = Vec::new();
    let mut rows = 0;
    let mut take = |row: u64, index: usize, field: &[u8]| {
        rows = row;
        while tallies.len() <= index {
            tallies.push(Tally::keeping(MAX_NAMED_VALUES));
        }
        if let Some(tally) = tallies.get_mut(index) {
            tally.take(field, row);
        }
    };
    let mut odd_lines = OddLines::default();
    let named = each_row(&mut take, &mut |line, why| odd_lines.add(line, why))?;
    tallies.resize_with(named.len(), Tally::new);
    let columns = named.into_iter().zip(tallies).map(|((name, unreadable), tally)| {
        let mut column = tally.finish(name);
        column.unreadable = unreadable.map(str::to_owned);
        column
    });
    Ok(TableProfile {
        format,
        separator: None,
        encoding: TextEncoding::Utf8,
        has_header: true,
        names_below_title: None,
        rows,
        odd_lines,
        columns: columns.collect(),
    })
}

/// Does the first record name the columns below it? It does where a word stands above numbers alone. Else it doesn't where one of its
/// fields is a number, where a name is there twice, or where most of its fields are values of their columns.
fn names_columns(first: &[Vec<u8>], columns: &[ColumnProfile]) -> bool {
    let missing = MissingValues::default();
    let mut names: Vec<&[u8]> = first.iter().map(|field| field.trim_ascii()).collect();
    let is_word = |field: &[u8]| {
        let has_letter = String::from_utf8_lossy(field).chars().any(char::is_alphabetic);
        has_letter && number(field).is_err() && !missing.contains(field)
    };
    let is_above_numbers = |(field, column): (&&[u8], &ColumnProfile)| {
        let are_alike = [column.numbers, column.dates, column.truths].contains(&column.values);
        column.values > 0 && are_alike && is_word(field) && truth(field).is_none()
    };
    if names.iter().zip(columns).any(is_above_numbers) {
        return true;
    }
    if names.iter().any(|field| number(field).is_ok()) {
        return false;
    }
    let are_values = names.iter().zip(columns).filter(|(field, column)| {
        let field = String::from_utf8_lossy(field);
        column.distinct.as_ref().is_some_and(|distinct| distinct.contains_key(field.as_ref()))
    });
    if 2 * are_values.count() > names.len() {
        return false;
    }
    names.retain(|field| !missing.contains(field));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    names.len() == count && count > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_header(first: &str, rows: &[&str]) -> bool {
        let fields = |line: &str| -> Vec<Vec<u8>> {
            line.split(',').map(|field| field.as_bytes().to_vec()).collect()
        };
        let first = fields(first);
        let mut tallies: Vec<Tally> = first.iter().map(|_| Tally::new()).collect();
        for row in rows {
            for (tally, field) in tallies.iter_mut().zip(fields(row)) {
                tally.take(&field, 2);
            }
        }
        let columns: Vec<ColumnProfile> =
            tallies.into_iter().map(|tally| tally.finish(String::new())).collect();
        names_columns(&first, &columns)
    }

    #[test]
    fn the_first_line_names_columns_where_it_reads_as_no_row() {
        assert!(is_header("a,b,y", &["1,2,x", "3,4,z"]));
        assert!(is_header("a,a,y", &["1,2,x", "3,4,z"]), "a name that is there twice");
        assert!(is_header("0,1,2,target", &["1,2,3,0", "3,4,5,1"]), "names of pandas");
        assert!(is_header(",a,y", &["1,2,x", "2,4,z"]), "an index without a name");
        assert!(is_header("cap,odor,class", &["x,n,p", "b,n,e"]), "words alone");
        assert!(!is_header("5.1,3.5,setosa", &["4.9,3.0,setosa"]));
        assert!(!is_header("p,x,s,n,t,p", &["e,x,s,y,t,a", "p,b,s,w,t,l"]), "letters of a code");
        assert!(!is_header("x,n,p", &["x,n,p", "b,n,e"]));
        assert!(!is_header("39,State-gov,?", &["50,Private,M"]));
    }
}
