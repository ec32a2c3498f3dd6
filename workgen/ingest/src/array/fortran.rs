//! Arrays in Fortran's order: element after element of the first dimension, which is the rows.
//!
//! ```text
//! file:  column 0: r0 r1 r2 ... | column 1: r0 r1 r2 ... | ...
//! block:           `-----'                  `-----'        -> r0, r1, r2 as rows
//! ```
//!
//! A block of rows is read at a time, a piece of each column by seeking, so that no more than the block is in memory. Bytes that
//! can't be sought in are copied to a temporary file first ([`Array::seekable`]).

use super::{
    Array,
    body::{Body, Member},
};
use crate::{
    bounds,
    error::{IngestError, Problem},
    source::{Finder, Raw},
};
use flate2::Crc;
use sojourn_protocol::quantity::to_usize;
use std::io::{self, Read, Seek, SeekFrom};

/// Most bytes of a block of more than one row.
const BLOCK: u64 = 64 << 20;

impl Array {
    /// The array with bytes that can be sought in, if its order asks for that.
    pub(super) fn seekable(self, finder: &mut Finder<'_>) -> Result<Self, IngestError> {
        let Body::Columns { skip, member } = &self.body else { return Ok(self) };
        let file = match member {
            Some(member) if member.is_deflated => {
                let mut stream = member.open(&self.file)?;
                finder
                    .copy(self.file.shown(), &mut stream, |error| self.failed_in_archive(error))?
            }
            None if self.file.is_packed() => finder.unpack(&self.file)?,
            _ => return Ok(self),
        };
        let skip = *skip;
        let array = Self { file, body: Body::Columns { skip, member: None }, ..self };
        array.check_size(skip)?;
        Ok(array)
    }

    fn failed_in_archive(&self, error: io::Error) -> IngestError {
        match bounds::refusal(error) {
            Ok(refused) => refused,
            Err(error) if error.raw_os_error().is_some() => self.file.failed(error),
            Err(error) => self.refuse(Problem::Damaged { how: "ZIP", reason: error.to_string() }),
        }
    }

    /// The rows of columns that lie behind `skip` bytes of the file, or of the member, one after the other.
    pub(super) fn open_columns(
        &self,
        skip: u64,
        member: Option<&Member>,
    ) -> Result<RowsOfColumns, IngestError> {
        let mut raw = self.file.raw()?;
        let begin = member.map_or(0, |member| member.start);
        let checksum = match member {
            None => None,
            Some(member) => {
                raw.seek(SeekFrom::Start(begin)).map_err(|error| self.file.failed(error))?;
                let mut header = Vec::new();
                raw.by_ref()
                    .take(skip)
                    .read_to_end(&mut header)
                    .map_err(|error| self.file.failed(error))?;
                Some(Checksum::new(&header, self.columns(), member.crc))
            }
        };
        let (rows, stride) = (self.rows(), self.stride());
        Ok(RowsOfColumns {
            raw,
            start: begin.saturating_add(skip),
            rows,
            stride: to_usize(stride),
            element: self.encoding.dtype.bytes(),
            columns: self.columns(),
            sides: self.shape.iter().skip(1).copied().collect(),
            next: 0,
            most: (BLOCK / stride.max(1)).clamp(1, rows.max(1)),
            piece: Vec::new(),
            block: Vec::new(),
            given: 0,
            checksum,
        })
    }

    /// Numbers in a row.
    fn columns(&self) -> u64 {
        self.stride() / self.encoding.dtype.bytes().max(1)
    }
}

/// The bytes of an array in Fortran's order, as those of the same array in C's order.
pub(super) struct RowsOfColumns {
    raw: Raw,
    /// The place of the first element in the file.
    start: u64,
    rows: u64,
    /// Bytes of a row.
    stride: usize,
    /// Bytes of an element.
    element: u64,
    columns: u64,
    /// The dimensions of a row.
    sides: Vec<u64>,
    /// The first row that no block has had.
    next: u64,
    /// Rows of a block.
    most: u64,
    /// The part of a column that a block takes.
    piece: Vec<u8>,
    block: Vec<u8>,
    /// Bytes of the block that have been given.
    given: usize,
    checksum: Option<Checksum>,
}

impl RowsOfColumns {
    /// Reads the next block. After the last one it is empty, and the checksum has been compared.
    fn fill(&mut self) -> io::Result<()> {
        let count = self.most.min(self.rows.saturating_sub(self.next));
        let element = to_usize(self.element);
        self.given = 0;
        self.block.resize(to_usize(count).saturating_mul(self.stride), 0);
        if count == 0 {
            return self.checksum.take().map_or(Ok(()), |checksum| checksum.compare());
        }
        self.piece.resize(to_usize(count).saturating_mul(element), 0);
        for column in 0..self.columns {
            let at = column.saturating_mul(self.rows).saturating_add(self.next);
            let at = self.start.saturating_add(at.saturating_mul(self.element));
            self.raw.seek(SeekFrom::Start(at))?;
            self.raw.read_exact(&mut self.piece)?;
            if let Some(checksum) = &mut self.checksum {
                checksum.update(to_usize(column), &self.piece);
            }
            let place = to_usize(in_row(&self.sides, column)).saturating_mul(element);
            let rows = self.block.chunks_exact_mut(self.stride);
            for (row, number) in rows.zip(self.piece.chunks_exact(element)) {
                if let Some(into) = row.get_mut(place..place.saturating_add(element)) {
                    into.copy_from_slice(number);
                }
            }
        }
        self.next = self.next.saturating_add(count);
        Ok(())
    }
}

impl Read for RowsOfColumns {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.block.len() {
            self.fill()?;
        }
        let mut rest = self.block.get(self.given..).unwrap_or_default();
        let count = rest.read(buffer)?;
        self.given = self.given.saturating_add(count);
        Ok(count)
    }
}

/// The place in a row, in C's order, of its element that is at `index` in Fortran's order.
fn in_row(sides: &[u64], index: u64) -> u64 {
    let mut rest = index;
    sides.iter().fold(0, |place: u64, side| {
        let side = (*side).max(1);
        let at = rest % side;
        rest /= side;
        place.saturating_mul(side).saturating_add(at)
    })
}

/// The checksum of a member whose columns are read in pieces, each column from its start.
struct Checksum {
    header: Crc,
    columns: Vec<Crc>,
    expected: u32,
}

impl Checksum {
    fn new(header: &[u8], columns: u64, expected: u32) -> Self {
        let mut crc = Crc::new();
        crc.update(header);
        let columns = (0..columns).map(|_| Crc::new()).collect();
        Self { header: crc, columns, expected }
    }

    fn update(&mut self, column: usize, piece: &[u8]) {
        if let Some(crc) = self.columns.get_mut(column) {
            crc.update(piece);
        }
    }

    /// Compares the checksum of all that was read.
    fn compare(self) -> io::Result<()> {
        let mut all = self.header;
        for column in &self.columns {
            all.combine(column);
        }
        if all.sum() == self.expected {
            return Ok(());
        }
        Err(io::Error::other("its checksum isn't what the archive says"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_a_row_are_those_of_c_order() {
        // A row of [2, 3]: the first side changes fastest in Fortran's order.
        let places: Vec<u64> = (0..6).map(|index| in_row(&[2, 3], index)).collect();
        assert_eq!(places, [0, 3, 1, 4, 2, 5]);
        assert_eq!((0..4).map(|index| in_row(&[4], index)).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(in_row(&[], 0), 0);
    }

    #[test]
    fn blocks_of_few_rows_give_the_same_bytes() {
        use crate::{bounds::unbounded, source::SourceFile};
        use std::io::Write;
        const ROWS: u64 = 7;
        let sides = [2u64, 3];
        let value = |row: u64, place: u64| u8::try_from(row * 6 + place).unwrap();
        let columns: Vec<u8> = (0..6)
            .flat_map(|index| (0..ROWS).map(move |row| value(row, in_row(&sides, index))))
            .collect();
        let wanted: Vec<u8> = (0..42).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[&[9; 5][..], &columns].concat()).unwrap();
        let file = SourceFile::copied(file, "t.npy", &unbounded()).unwrap();
        for most in [1, 2, 3, 7] {
            let mut rows = RowsOfColumns {
                raw: file.raw().unwrap(),
                start: 5,
                rows: ROWS,
                stride: 6,
                element: 1,
                columns: 6,
                sides: sides.to_vec(),
                next: 0,
                most,
                piece: Vec::new(),
                block: Vec::new(),
                given: 0,
                checksum: None,
            };
            let mut found = Vec::new();
            rows.read_to_end(&mut found).unwrap();
            assert_eq!(found, wanted, "{most} rows a block");
        }
    }
}
