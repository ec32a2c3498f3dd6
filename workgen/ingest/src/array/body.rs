//! An array's bytes: somewhere in a file, or in a member of a ZIP archive.

use super::Array;
use crate::{
    bounds::SharedBounds,
    error::IngestError,
    source::{Counted, SourceFile},
};
use flate2::{Crc, bufread::DeflateDecoder};
use sojourn_protocol::quantity::to_u64;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Take};

const READ_BUFFER: usize = 256 << 10;

/// Where an array's bytes are.
#[derive(Debug, Clone)]
pub(super) enum Body {
    /// From this unpacked byte of the file on.
    At {
        start: u64,
        /// Does the file end with it?
        is_last: bool,
    },
    /// In a member of a ZIP archive, behind this many bytes of it.
    Member { member: Member, skip: u64 },
    /// Column after column, in Fortran's order, behind this many bytes of the file, or of a member of a ZIP archive.
    Columns { skip: u64, member: Option<Member> },
}

/// A member of a ZIP archive.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) name: String,
    /// The place of the member's first byte in the archive.
    pub(super) start: u64,
    /// Bytes in the archive.
    pub(super) stored: u64,
    /// Bytes unpacked.
    pub(super) bytes: u64,
    pub(super) crc: u32,
    pub(super) is_deflated: bool,
}

impl Member {
    /// The member's bytes, unpacked. Size and checksum are verified at the end.
    pub(super) fn open(&self, file: &SourceFile) -> Result<Box<dyn Read + Send>, IngestError> {
        let mut raw = file.raw()?;
        raw.seek(SeekFrom::Start(self.start)).map_err(|error| file.failed(error))?;
        let stored = raw.take(self.stored);
        let stream: Box<dyn Read + Send> = match self.is_deflated {
            true => {
                let stored = BufReader::with_capacity(READ_BUFFER, stored);
                let bounds = SharedBounds::clone(file.bounds());
                Box::new(Counted { stream: DeflateDecoder::new(stored), bounds })
            }
            false => Box::new(stored),
        };
        // One byte more, so that a member that is too long is noticed.
        let stream = stream.take(self.bytes.saturating_add(1));
        Ok(Box::new(Checked {
            stream,
            bytes: self.bytes,
            crc: self.crc,
            found: Crc::new(),
            read: 0,
        }))
    }
}

impl Array {
    /// The array's bytes, and whether the stream must end after them.
    pub(super) fn open(&self) -> Result<(Box<dyn Read + Send>, bool), IngestError> {
        match &self.body {
            Body::At { start, is_last } => Ok((Box::new(self.file.read_from(*start)?), *is_last)),
            Body::Member { member, skip } => {
                let mut stream = member.open(&self.file)?;
                io::copy(&mut stream.by_ref().take(*skip), &mut io::sink())
                    .map_err(|error| self.file.failed(error))?;
                Ok((stream, true))
            }
            Body::Columns { skip, member } => {
                Ok((Box::new(self.open_columns(*skip, member.as_ref())?), true))
            }
        }
    }
}

/// Compares size and checksum at the end.
struct Checked {
    stream: Take<Box<dyn Read + Send>>,
    bytes: u64,
    crc: u32,
    found: Crc,
    read: u64,
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        self.found.update(buffer.get(..count).unwrap_or_default());
        self.read = self.read.saturating_add(to_u64(count));
        let is_at_end = count == 0 && !buffer.is_empty();
        if self.read > self.bytes || (is_at_end && self.read < self.bytes) {
            return Err(io::Error::other("its size isn't what the archive says"));
        }
        if is_at_end && self.found.sum() != self.crc {
            return Err(io::Error::other("its checksum isn't what the archive says"));
        }
        Ok(count)
    }
}
