//! The records of a text file: its lines, and those of quotes that a line break is in.

use super::split::QuoteState;
use crate::{
    error::{IngestError, Place, Problem},
    source::{SourceFile, Unpacked},
};
use sojourn_protocol::{quantity::to_u64, spec::Separator};
use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Chain, Cursor, Read},
};

/// The longest record that is read, in bytes.
const MAX_RECORD: u64 = 64 << 20;
/// Lines of the longest record: a stray quote must not swallow the rest of the file.
const MAX_LINES: u64 = 1000;
const READ_BUFFER: usize = 1 << 20;
/// Bytes by which the ends of lines are found out.
const START: u64 = 64 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The records of one file, with the numbers of their lines.
pub(crate) struct Lines<'a> {
    pub(crate) part: &'a SourceFile,
    reader: BufReader<Chain<Cursor<Vec<u8>>, Unpacked>>,
    /// The byte that ends a line: a carriage return alone, in files of old.
    end: u8,
    record: Vec<u8>,
    /// Lines read so far.
    number: u64,
    /// Lines of a broken record that are read again, without their ends.
    again: VecDeque<Vec<u8>>,
    /// The separator that the line `sep=;` of a spreadsheet says.
    said: Option<Separator>,
}

/// A record of a file.
pub(crate) struct Record<'a> {
    /// The number of its first line.
    pub(crate) line: u64,
    /// The lines that it has.
    pub(crate) lines: u64,
    /// The text, without the end of the last line.
    pub(crate) text: &'a [u8],
}

impl<'a> Lines<'a> {
    /// Begins to read a file, behind its byte order mark and the line `sep=;`.
    pub(crate) fn open(part: &'a SourceFile) -> Result<Self, IngestError> {
        let mut rest = part.text()?;
        let mut start = Vec::new();
        (&mut rest).take(START).read_to_end(&mut start).map_err(|error| part.failed(error))?;
        // The first half of a line's end may be the last byte that was read.
        let is_cut = to_u64(start.len()) == START;
        let looked_at = start.strip_suffix(b"\r").filter(|_| is_cut).unwrap_or(&start);
        let is_old = looked_at.contains(&b'\r') && !looked_at.contains(&b'\n');
        let end = if is_old { b'\r' } else { b'\n' };
        let mark = if start.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let text = start.get(mark..).unwrap_or_default();
        let first = text.split(|byte| *byte == end).next().unwrap_or_default();
        let (said, skipped) = match said(first.trim_ascii()) {
            Some(Ok(said)) => (Some(said), mark + first.len() + 1),
            Some(Err(other)) => {
                let place = Place { line: Some(1), ..Place::of(part.shown()) };
                return Err(place.refuse(Problem::OtherSeparator(other)));
            }
            None => (None, mark),
        };
        let mut start = Cursor::new(start);
        start.set_position(to_u64(skipped));
        let reader = BufReader::with_capacity(READ_BUFFER, start.chain(rest));
        let number = u64::from(said.is_some());
        let (record, again) = (Vec::new(), VecDeque::new());
        Ok(Self { part, reader, end, record, number, again, said })
    }

    /// The separator that the file says in a line of its own.
    pub(crate) fn said(&self) -> Option<Separator> {
        self.said
    }

    /// The next record, whose fields are separated so.
    pub(crate) fn next(&mut self, separator: Separator) -> Result<Option<Record<'_>>, IngestError> {
        self.record.clear();
        if !self.append_line()? {
            return Ok(None);
        }
        let line = self.number;
        let mut state = QuoteState::default();
        state.pass(&self.record, separator.byte());
        while state.is_open() && self.number - line < MAX_LINES {
            let length = self.record.len();
            self.record.push(b'\n');
            if !self.append_line()? {
                self.record.truncate(length);
                break;
            }
            state.pass(self.record.get(length..).unwrap_or_default(), separator.byte());
        }
        Ok(Some(Record { line, lines: self.number - line + 1, text: &self.record }))
    }

    /// The next line, whatever quotes are in it.
    pub(crate) fn next_line(&mut self) -> Result<Option<Record<'_>>, IngestError> {
        self.record.clear();
        if !self.append_line()? {
            return Ok(None);
        }
        Ok(Some(Record { line: self.number, lines: 1, text: &self.record }))
    }

    /// Takes back all lines of the last record but its first.
    pub(crate) fn take_back(&mut self) {
        let lines = self.record.split(|byte| *byte == b'\n').skip(1).map(<[u8]>::to_vec);
        let lines: Vec<Vec<u8>> = lines.collect();
        self.number = self.number.saturating_sub(to_u64(lines.len()));
        for line in lines.into_iter().rev() {
            self.again.push_front(line);
        }
    }

    /// Appends the next line, without its end, to the record; `false` behind the last.
    fn append_line(&mut self) -> Result<bool, IngestError> {
        if let Some(line) = self.again.pop_front() {
            self.record.extend(line);
            self.number += 1;
            return Ok(true);
        }
        let length = self.record.len();
        let limit = MAX_RECORD.saturating_sub(to_u64(length));
        let mut limited = (&mut self.reader).take(limit);
        let read = limited
            .read_until(self.end, &mut self.record)
            .map_err(|error| self.part.failed(error))?;
        if read == 0 && limit > 0 {
            return Ok(false);
        }
        self.number += 1;
        if self.record.get(length..).is_some_and(|line| line.ends_with(&[self.end])) {
            self.record.pop();
            if self.end == b'\n'
                && self.record.get(length..).is_some_and(|line| line.ends_with(b"\r"))
            {
                self.record.pop();
            }
        } else if to_u64(read) == limit {
            let place = Place { line: Some(self.number), ..Place::of(self.part.shown()) };
            return Err(place.refuse(Problem::LongLine { limit: MAX_RECORD }));
        }
        Ok(true)
    }

    /// Bytes read so far, as they lie in the file.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.reader.get_ref().get_ref().1.bytes_read()
    }
}

/// The separator of a line such as `sep=;`, by which spreadsheets are told; none where it is another line.
fn said(line: &[u8]) -> Option<Result<Separator, String>> {
    let line = std::str::from_utf8(line).ok()?;
    let line = line.strip_prefix('"').and_then(|line| line.strip_suffix('"')).unwrap_or(line);
    let (key, sign) = line.split_at_checked("sep=".len())?;
    let mut signs = if sign.is_empty() { "\t" } else { sign }.bytes();
    let (Some(sign), None) = (signs.next(), signs.next()) else { return None };
    if !key.eq_ignore_ascii_case("sep=") {
        return None;
    }
    let found = Separator::ALL.into_iter().find(|separator| separator.byte() == sign);
    Some(found.ok_or_else(|| char::from(sign).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_spreadsheets_says_the_separator() {
        assert_eq!(said(b"sep=;"), Some(Ok(Separator::Semicolon)));
        assert_eq!(said(b"\"SEP=,\""), Some(Ok(Separator::Comma)));
        // The tab was trimmed with the end of the line.
        assert_eq!(said(b"sep="), Some(Ok(Separator::Tab)));
        assert_eq!(said(b"sep=:"), Some(Err(":".to_owned())));
        for line in ["a,b,sep=;", "sep=ab", "step=;", "sep", ""] {
            assert_eq!(said(line.as_bytes()), None, "{line}");
        }
    }
}
