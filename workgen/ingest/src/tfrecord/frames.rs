//! The frames of a TFRecord file: length, checksum of the length, bytes, checksum of the bytes.
//!
//! Source: `tensorflow/core/lib/io/record_reader.cc` and `tensorflow/core/lib/hash/crc32c.h`.

use crate::{
    error::{IngestError, Place, Problem},
    source::{SourceFile, Unpacked},
};
use sojourn_protocol::quantity::to_u64;
use std::io::{self, BufReader, Read};

const MASK_DELTA: u32 = 0xa282_ead8;
/// The longest record that is read, in bytes.
const MAX_RECORD: u64 = 64 << 20;
const READ_BUFFER: usize = 1 << 20;
/// The bytes of a length and of its checksum.
const HEADER: usize = 12;

/// The records of one file.
pub(super) struct Frames<'a> {
    pub(super) part: &'a SourceFile,
    reader: BufReader<Unpacked>,
    record: Vec<u8>,
    /// Records read so far.
    count: u64,
}

impl<'a> Frames<'a> {
    pub(super) fn open(part: &'a SourceFile) -> Result<Self, IngestError> {
        let reader = BufReader::with_capacity(READ_BUFFER, part.read()?);
        Ok(Self { part, reader, record: Vec::new(), count: 0 })
    }

    /// The next record's bytes; none behind the last.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, IngestError> {
        self.count += 1;
        let mut header = Vec::with_capacity(HEADER);
        self.read(to_u64(HEADER), &mut header)?;
        if header.is_empty() {
            return Ok(None);
        }
        let length = match length(&header) {
            Ok(length) if length <= MAX_RECORD => length,
            Ok(_) => return Err(self.place().refuse(Problem::LongRecord { limit: MAX_RECORD })),
            Err(reason) => return Err(self.damaged(reason)),
        };
        let mut record = std::mem::take(&mut self.record);
        record.clear();
        self.read(length, &mut record)?;
        let mut checksum = Vec::with_capacity(4);
        self.read(4, &mut checksum)?;
        let Ok(checksum) = <[u8; 4]>::try_from(checksum) else {
            return Err(self.damaged("the file ends within it"));
        };
        if u32::from_le_bytes(checksum) != masked(&record) {
            return Err(self.damaged("its checksum isn't that of its bytes"));
        }
        self.record = record;
        Ok(Some(&self.record))
    }

    /// Reads so many bytes, or less at the end of the file. A length allocates nothing that isn't there.
    fn read(&mut self, bytes: u64, into: &mut Vec<u8>) -> Result<(), IngestError> {
        let mut limited = (&mut self.reader).take(bytes);
        let read = limited.read_to_end(into);
        read.map(drop).map_err(|error: io::Error| self.part.failed(error))
    }

    fn damaged(&self, reason: &str) -> IngestError {
        self.place().refuse(Problem::Damaged { how: "TFRecord", reason: reason.to_owned() })
    }

    /// Where the last record is.
    pub(super) fn place(&self) -> Place {
        Place { row: Some(self.count), ..Place::of(self.part.shown()) }
    }

    /// Bytes read so far, as they lie in the file.
    pub(super) fn bytes_read(&self) -> u64 {
        self.reader.get_ref().bytes_read()
    }
}

/// The length of a record, by the bytes before it.
fn length(header: &[u8]) -> Result<u64, &'static str> {
    let mut bytes = header;
    let (Some((length, rest)), true) = (bytes.split_first_chunk::<8>(), header.len() == HEADER)
    else {
        return Err("the file ends within it");
    };
    bytes = rest;
    if bytes != masked(length).to_le_bytes() {
        return Err("the checksum of its length isn't that of the length");
    }
    Ok(u64::from_le_bytes(*length))
}

/// The checksum of bytes, rotated and offset, so that the checksum of bytes that have checksums in them is no simple one.
fn masked(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(MASK_DELTA)
}

/// Does a file begin with a record?
pub(crate) fn begins(start: &[u8]) -> bool {
    start.get(..HEADER).is_some_and(|header| length(header).is_ok())
}
