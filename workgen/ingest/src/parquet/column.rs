//! The values of one column in one row group, some rows at once.

use super::{
    chunks::Chunks,
    guard::guarded,
    kind::{Kind, Value},
    pages::CheckedPages,
};
use parquet::{
    column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader},
    data_type::{
        BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type,
        Int64Type,
    },
    errors::{ParquetError, Result},
    file::metadata::ColumnChunkMetaData,
};
use sojourn_protocol::quantity::to_usize;
use std::sync::Arc;

/// A column of values, from which rows are taken one after the other.
pub(super) struct Values {
    kind: Kind,
    /// Nulls have less.
    full_level: i16,
    /// For each row that was read, if it may be null.
    levels: Vec<i16>,
    /// The next of them.
    next: usize,
    typed: Typed,
}

enum Typed {
    Truth(Buffer<BoolType>),
    Int(Buffer<Int32Type>),
    Long(Buffer<Int64Type>),
    Single(Buffer<FloatType>),
    Double(Buffer<DoubleType>),
    Bytes(Buffer<ByteArrayType>),
    Fixed(Buffer<FixedLenByteArrayType>),
}

/// The values that were read and aren't null.
struct Buffer<T: DataType> {
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
    next: usize,
}

impl<T: DataType> Buffer<T> {
    fn new(reader: ColumnReaderImpl<T>) -> Self {
        Self { reader, values: Vec::new(), next: 0 }
    }

    /// Reads so many rows; returns how many there were.
    fn read(&mut self, rows: usize, levels: &mut Vec<i16>) -> Result<usize> {
        levels.clear();
        self.values.clear();
        self.next = 0;
        let (read, ..) = self.reader.read_records(rows, Some(levels), None, &mut self.values)?;
        Ok(read)
    }

    fn next(&mut self) -> Option<&T::T> {
        let value = self.values.get(self.next);
        self.next = self.next.saturating_add(1);
        value
    }
}

impl Values {
    /// The values of `column`, which has so many rows.
    pub(super) fn open(
        chunks: &Arc<Chunks>,
        column: &ColumnChunkMetaData,
        kind: Kind,
        rows: u64,
    ) -> std::result::Result<Self, String> {
        guarded(|| {
            let pages = CheckedPages::new(chunks, column, to_usize(rows))?;
            let description = column.column_descr_ptr();
            let full_level = description.max_def_level();
            let typed = match get_column_reader(description, Box::new(pages)) {
                ColumnReader::BoolColumnReader(reader) => Typed::Truth(Buffer::new(reader)),
                ColumnReader::Int32ColumnReader(reader) => Typed::Int(Buffer::new(reader)),
                ColumnReader::Int64ColumnReader(reader) => Typed::Long(Buffer::new(reader)),
                ColumnReader::FloatColumnReader(reader) => Typed::Single(Buffer::new(reader)),
                ColumnReader::DoubleColumnReader(reader) => Typed::Double(Buffer::new(reader)),
                ColumnReader::ByteArrayColumnReader(reader) => Typed::Bytes(Buffer::new(reader)),
                ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                    Typed::Fixed(Buffer::new(reader))
                }
                ColumnReader::Int96ColumnReader(_) => {
                    return Err(ParquetError::NYI("values of 96 bits".to_owned()));
                }
            };
            Ok(Self { kind, full_level, levels: Vec::new(), next: 0, typed })
        })
    }

    /// Reads the next rows, which must be there.
    pub(super) fn read(&mut self, rows: usize) -> std::result::Result<(), String> {
        self.next = 0;
        let levels = &mut self.levels;
        let read = guarded(|| match &mut self.typed {
            Typed::Truth(buffer) => buffer.read(rows, levels),
            Typed::Int(buffer) => buffer.read(rows, levels),
            Typed::Long(buffer) => buffer.read(rows, levels),
            Typed::Single(buffer) => buffer.read(rows, levels),
            Typed::Double(buffer) => buffer.read(rows, levels),
            Typed::Bytes(buffer) => {
                let read = buffer.read(rows, levels)?;
                // Where a dictionary was cut off, there are values without bytes, which panic if they are looked at.
                buffer.values.iter().for_each(|value| {
                    let _ = value.data();
                });
                Ok(read)
            }
            Typed::Fixed(buffer) => {
                let read = buffer.read(rows, levels)?;
                buffer.values.iter().for_each(|value| {
                    let _ = value.data();
                });
                Ok(read)
            }
        })?;
        if read == rows { Ok(()) } else { Err("it has fewer rows than the others".to_owned()) }
    }

    /// The field of the next row as text; nothing where it is null.
    pub(super) fn next(&mut self, text: &mut Vec<u8>) -> std::result::Result<(), &'static str> {
        text.clear();
        let level = self.levels.get(self.next).copied();
        self.next = self.next.saturating_add(1);
        if self.full_level > 0 && level != Some(self.full_level) {
            return Ok(());
        }
        let kind = self.kind;
        let written = match &mut self.typed {
            Typed::Truth(buffer) => buffer.next().map(|value| value.write(kind, text)),
            Typed::Int(buffer) => buffer.next().map(|value| value.write(kind, text)),
            Typed::Long(buffer) => buffer.next().map(|value| value.write(kind, text)),
            Typed::Single(buffer) => buffer.next().map(|value| value.write(kind, text)),
            Typed::Double(buffer) => buffer.next().map(|value| value.write(kind, text)),
            Typed::Bytes(buffer) => buffer.next().map(|value| value.data().write(kind, text)),
            Typed::Fixed(buffer) => buffer.next().map(|value| value.data().write(kind, text)),
        };
        written.unwrap_or(Err("fewer values than rows"))
    }
}
