//! The bytes of a file, as the crate that decodes asks for them.

use super::thrift::{Thrift, Type};
use crate::{
    bounds::SharedBounds,
    error::IngestError,
    source::{Raw, SourceFile},
};
use bytes::Bytes;
use parquet::{
    errors::{ParquetError, Result},
    file::reader::{ChunkReader, Length},
};
use sojourn_protocol::quantity::{to_u64, to_usize};
use std::io::{self, BufReader, Read};

/// Most bytes of a page, packed or not: writers end them at about one million.
const MAX_PAGE: i64 = 256 << 20;
/// Bytes in which the header of a page is looked for: first so many, then so many.
const HEADER: [u64; 2] = [4 << 10, 1 << 20];
const READ_BUFFER: usize = 8 << 10;

/// The bytes of a file. Only headers of pages are read by `get_read`.
#[derive(Debug)]
pub(super) struct Chunks {
    raw: Raw,
    bytes: u64,
    bounds: SharedBounds,
}

impl Chunks {
    pub(super) fn open(file: &SourceFile) -> std::result::Result<Self, IngestError> {
        let bounds = SharedBounds::clone(file.bounds());
        Ok(Self { raw: file.raw()?, bytes: file.bytes(), bounds })
    }

    /// The bounds of reading.
    pub(super) const fn bounds(&self) -> &SharedBounds {
        &self.bounds
    }

    /// So many bytes. Nothing is allocated for more than there are.
    pub(super) fn read(&self, start: u64, count: u64) -> io::Result<Vec<u8>> {
        if start.checked_add(count).is_none_or(|end| end > self.bytes) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; to_usize(count)];
        self.raw.at(start).read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Refuses the page whose header is here where it would take too much memory.
    fn check_page(&self, start: u64) -> Result<()> {
        const UNPACKED: i64 = 2;
        const PACKED: i64 = 3;
        for most in HEADER {
            let bytes = self.read(start, most.min(self.bytes.saturating_sub(start)))?;
            let mut largest = 0;
            let header = Thrift(&bytes).fields(|id, kind, thrift| {
                let is_size = matches!(id, UNPACKED | PACKED) && kind == Type::I32;
                if is_size {
                    largest = largest.max(thrift.int()?);
                }
                Some(is_size)
            });
            if largest > MAX_PAGE {
                let text = format!("a page of over {MAX_PAGE} bytes");
                return Err(ParquetError::General(text));
            }
            if header.is_some() {
                return Ok(());
            }
        }
        Err(ParquetError::General("a page's header can't be read".to_owned()))
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for Chunks {
    type T = BufReader<Raw>;

    fn get_read(&self, start: u64) -> Result<BufReader<Raw>> {
        self.check_page(start)?;
        Ok(BufReader::with_capacity(READ_BUFFER, self.raw.at(start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        Ok(self.read(start, to_u64(length))?.into())
    }
}
