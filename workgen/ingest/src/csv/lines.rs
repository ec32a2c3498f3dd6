//! The lines of a text file.

use crate::{
    error::{IngestError, Place, Problem},
    source::{SourceFile, Unpacked},
};
use std::io::{BufRead, BufReader, Read};

/// The longest line that is read, in bytes.
const MAX_LINE: u64 = 64 << 20;
const READ_BUFFER: usize = 1 << 20;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The lines of one file, with their numbers.
pub(super) struct Lines<'a> {
    pub(super) part: &'a SourceFile,
    reader: BufReader<Unpacked>,
    line: Vec<u8>,
    number: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn open(part: &'a SourceFile) -> Result<Self, IngestError> {
        let reader = BufReader::with_capacity(READ_BUFFER, part.read()?);
        Ok(Self { part, reader, line: Vec::new(), number: 0 })
    }

    /// The next line, without its end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, &[u8])>, IngestError> {
        self.line.clear();
        let mut limited = (&mut self.reader).take(MAX_LINE);
        let read =
            limited.read_until(b'\n', &mut self.line).map_err(|error| self.part.failed(error))?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        let mut line = self.line.as_slice();
        if let Some(rest) = line.strip_suffix(b"\n") {
            line = rest.strip_suffix(b"\r").unwrap_or(rest);
        } else if u64::try_from(read).is_ok_and(|read| read == MAX_LINE) {
            let place = Place { line: Some(self.number), ..Place::of(self.part.shown()) };
            return Err(place.refuse(Problem::LongLine { limit: MAX_LINE }));
        }
        if self.number == 1 {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        Ok(Some((self.number, line)))
    }

    /// Bytes read so far, as they lie in the file.
    pub(super) fn bytes_read(&self) -> u64 {
        self.reader.get_ref().bytes_read()
    }
}
