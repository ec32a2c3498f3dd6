//! The records of text files as they are, before anybody says what they mean.

use crate::{
    csv::{Lines, visit},
    error::{IngestError, Place, Problem},
    fields::Names,
    number::number,
    source::SourceFile,
};
use sojourn_protocol::spec::Separator;

/// Records by which the separator is found.
const LOOKED_AT: usize = 64;

/// A record.
#[derive(Debug)]
pub(super) struct RawRecord<'a> {
    pub(super) line: u64,
    /// Is it the first of its file?
    pub(super) is_first: bool,
    pub(super) fields: &'a [Vec<u8>],
    /// Why it can't be split into fields, where that is so.
    pub(super) problem: Option<Problem>,
}

impl RawRecord<'_> {
    pub(super) fn into_fields(self) -> Vec<Vec<u8>> {
        self.fields.to_vec()
    }
}

/// A pass over the records of all parts.
pub(super) struct RawRecords<'a> {
    parts: std::slice::Iter<'a, SourceFile>,
    separator: Separator,
    lines: Option<Lines<'a>>,
    is_first: bool,
    fields: Vec<Vec<u8>>,
    /// Bytes of the parts that are done.
    before: u64,
}

impl<'a> RawRecords<'a> {
    /// Opens the first part, and finds the separator where nobody said it.
    pub(super) fn open(
        parts: &'a [SourceFile],
        said: Option<Separator>,
    ) -> Result<Self, IngestError> {
        let separator = match (said, parts.first()) {
            (Some(said), _) => said,
            (None, Some(part)) => separator(part)?,
            (None, None) => Separator::Comma,
        };
        let (parts, fields) = (parts.iter(), Vec::new());
        Ok(Self { parts, separator, lines: None, is_first: true, fields, before: 0 })
    }

    pub(super) const fn separator(&self) -> Separator {
        self.separator
    }

    /// The error for files without a record.
    pub(super) fn empty(parts: &[SourceFile]) -> IngestError {
        let shown = parts.first().map_or("", SourceFile::shown);
        Place::of(shown).refuse(Problem::Empty)
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.before + self.lines.as_ref().map_or(0, Lines::bytes_read)
    }

    /// The next record that isn't empty.
    pub(super) fn next(&mut self) -> Result<Option<RawRecord<'_>>, IngestError> {
        let (line, is_first, problem) = loop {
            let Some(lines) = &mut self.lines else {
                let Some(part) = self.parts.next() else { return Ok(None) };
                self.lines = Some(Lines::open(part)?);
                self.is_first = true;
                continue;
            };
            let part = lines.part;
            let Some(record) = lines.next(self.separator)? else {
                self.before += part.bytes();
                self.lines = None;
                continue;
            };
            let line = record.line;
            if record.text.trim_ascii().is_empty() {
                if self.is_first {
                    let place = Place { line: Some(line), ..Place::of(part.shown()) };
                    return Err(place.refuse(Problem::NoTable { what: "empty".to_owned() }));
                }
                continue;
            }
            let is_first = std::mem::replace(&mut self.is_first, false);
            let has_more = record.lines > 1;
            let problem = match split(record.text, self.separator, &mut self.fields) {
                Ok(()) => None,
                Err(problem @ (Problem::OpenQuote | Problem::AfterQuote)) if !is_first => {
                    // The lines that a stray quote has swallowed are rows of their own.
                    if has_more {
                        lines.take_back();
                    }
                    Some(if has_more { Problem::OpenQuote } else { problem })
                }
                Err(problem) => {
                    let place = Place { line: Some(line), ..Place::of(part.shown()) };
                    return Err(place.refuse(problem));
                }
            };
            break (line, is_first, problem);
        };
        Ok(Some(RawRecord { line, is_first, fields: &self.fields, problem }))
    }
}

/// The line that has the names of the columns below a title: the first record of which more than half of the fields are filled that the
/// fullest has, if it isn't the first and has words alone.
pub(super) fn names_below_title(
    part: &SourceFile,
    separator: Separator,
) -> Result<Option<u64>, IngestError> {
    let mut lines = Lines::open(part)?;
    let mut filled: Vec<(u64, usize, bool)> = Vec::new();
    while filled.len() < LOOKED_AT
        && let Some(record) = lines.next(separator)?
    {
        let (mut count, mut are_words) = (0, true);
        // A record with broken quotes is told by the pass over all records.
        let _ = visit(record.text, separator.byte(), |_, field| {
            count += usize::from(!field.trim_ascii().is_empty());
            are_words &= number(field).is_err();
            Ok(())
        });
        if count > 0 {
            filled.push((record.line, count, are_words));
        }
    }
    let fullest = filled.iter().map(|(_, count, _)| *count).max().unwrap_or(0);
    let first = filled.iter().position(|(_, count, _)| *count > 1 && *count > fullest / 2);
    let names = first.filter(|first| *first > 0).and_then(|first| filled.get(first));
    Ok(names.filter(|(_, _, are_words)| *are_words).map(|(line, ..)| *line))
}

/// Splits a record; the memory of the fields before is used again.
fn split(text: &[u8], separator: Separator, into: &mut Vec<Vec<u8>>) -> Result<(), Problem> {
    let count = visit(text, separator.byte(), |index, field| {
        if into.len() == index {
            Names::check_count(index + 1)?;
            into.push(Vec::new());
        }
        if let Some(into) = into.get_mut(index) {
            into.clear();
            into.extend_from_slice(field);
        }
        Ok(())
    });
    into.truncate(count.map_err(|(_, problem)| problem)?);
    Ok(())
}

/// The separator by which most of the first records have the same number of fields, more than one; of several the one that makes the
/// most fields.
fn separator(part: &SourceFile) -> Result<Separator, IngestError> {
    if let Some(said) = Lines::open(part)?.said() {
        return Ok(said);
    }
    let mut best = (0, 0, Separator::Comma);
    let mut below = (0, Separator::Comma);
    for separator in Separator::ALL {
        let mut lines = Lines::open(part)?;
        let mut counts = Vec::new();
        while counts.len() < LOOKED_AT
            && let Some(record) = lines.next(separator)?
        {
            if !record.text.trim_ascii().is_empty() {
                counts.push(visit(record.text, separator.byte(), |_, _| Ok(())).unwrap_or(0));
            }
        }
        let fields = counts.first().copied().unwrap_or(0);
        let alike = counts.iter().filter(|count| **count == fields).count();
        if fields > 1 && (alike, fields) > (best.0, best.1) {
            best = (alike, fields, separator);
        }
        // Below a title of another width the records are alike.
        let mut widths: Vec<usize> = counts.into_iter().filter(|count| *count > 1).collect();
        widths.sort_unstable();
        let commonest = widths.chunk_by(|a, b| a == b).max_by_key(|alike| alike.len());
        let alike = commonest.map_or(0, <[usize]>::len);
        if alike > below.0 {
            below = (alike, separator);
        }
    }
    Ok(if best.0 > 1 { best.2 } else { below.1 })
}
