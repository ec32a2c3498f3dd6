//! The values of one column in one row group, some rows at once.

use super::{
    chunks::Chunks,
    guard::guarded,
    kind::{Kind, Value},
    pages::{CheckedPages, PageBudget},
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
    /// Nulls have less.
    pub(super) full_level: i16,
    /// For each value that was read, if it may be null or one of a list.
    pub(super) levels: Vec<i16>,
    /// The next of them, where a row is one.
    pub(super) next: usize,
    pub(super) typed: Typed,
    /// For each value that was read, if it may be one of a list: whether it begins a row.
    begins: Vec<i16>,
    budget: PageBudget,
}

pub(super) enum Typed {
    Truth(Buffer<BoolType>),
    Int(Buffer<Int32Type>),
    Long(Buffer<Int64Type>),
    Single(Buffer<FloatType>),
    Double(Buffer<DoubleType>),
    Bytes(Buffer<ByteArrayType>),
    Fixed(Buffer<FixedLenByteArrayType>),
}

/// The values that were read and aren't null.
pub(super) struct Buffer<T: DataType> {
    reader: ColumnReaderImpl<T>,
    pub(super) values: Vec<T::T>,
    next: usize,
}

impl<T: DataType> Buffer<T> {
    fn new(reader: ColumnReaderImpl<T>) -> Self {
        Self { reader, values: Vec::new(), next: 0 }
    }

    /// Reads so many rows; returns how many there were.
    fn read(&mut self, rows: usize, levels: &mut Vec<i16>, begins: &mut Vec<i16>) -> Result<usize> {
        levels.clear();
        begins.clear();
        self.values.clear();
        self.next = 0;
        let (read, ..) =
            self.reader.read_records(rows, Some(levels), Some(begins), &mut self.values)?;
        Ok(read)
    }

    pub(super) fn next(&mut self) -> Option<&T::T> {
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
        rows: u64,
    ) -> std::result::Result<Self, String> {
        guarded(|| {
            let budget = PageBudget::default();
            let pages = CheckedPages::new(chunks, column, to_usize(rows), budget.clone())?;
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
            let (levels, begins) = (Vec::new(), Vec::new());
            Ok(Self { full_level, levels, next: 0, typed, begins, budget })
        })
    }

    /// Reads the next rows, which must be there.
    pub(super) fn read(&mut self, rows: usize) -> std::result::Result<(), String> {
        self.next = 0;
        self.budget.renew();
        let (levels, begins) = (&mut self.levels, &mut self.begins);
        let read = guarded(|| match &mut self.typed {
            Typed::Truth(buffer) => buffer.read(rows, levels, begins),
            Typed::Int(buffer) => buffer.read(rows, levels, begins),
            Typed::Long(buffer) => buffer.read(rows, levels, begins),
            Typed::Single(buffer) => buffer.read(rows, levels, begins),
            Typed::Double(buffer) => buffer.read(rows, levels, begins),
            Typed::Bytes(buffer) => {
                let read = buffer.read(rows, levels, begins)?;
                // Where a dictionary was cut off, there are values without bytes, which panic if they are looked at.
                buffer.values.iter().for_each(|value| {
                    let _ = value.data();
                });
                Ok(read)
            }
            Typed::Fixed(buffer) => {
                let read = buffer.read(rows, levels, begins)?;
                buffer.values.iter().for_each(|value| {
                    let _ = value.data();
                });
                Ok(read)
            }
        })?;
        if read == rows { Ok(()) } else { Err("it has fewer rows than the others".to_owned()) }
    }

    /// The field of the next row as text; nothing where it is null.
    pub(super) fn next(
        &mut self,
        kind: Kind,
        text: &mut Vec<u8>,
    ) -> std::result::Result<(), &'static str> {
        text.clear();
        let level = self.levels.get(self.next).copied();
        self.next = self.next.saturating_add(1);
        if self.full_level > 0 && level != Some(self.full_level) {
            return Ok(());
        }
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
