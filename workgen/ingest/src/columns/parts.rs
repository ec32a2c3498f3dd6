//! Parts: safetensors files with a tensor for each column, as `sojourn.data.write` makes them.
//!
//! A column of sequences is two tensors: `NAME` has the elements of all rows, and `NAME.ends`, `I64 [rows]`, says where
//! each row ends.

use super::{
    part::Part,
    table::{ColumnRows, ColumnTable, Field, check_same},
};
use crate::{
    error::{IngestError, Place, Problem},
    source::{SourceFile, Unpacked},
};
use sojourn_protocol::{column::MAX_ROW_ELEMENTS, quantity::to_usize};
use std::io::{self, BufReader, Read as _};

/// Bytes that are read of a column at once.
const READ_BUFFER: usize = 256 << 10;

/// All parts, in name order.
#[derive(Debug)]
pub(super) struct Parts {
    shown: String,
    parts: Vec<Part>,
    fields: Vec<Field>,
}

impl Parts {
    /// Reads the headers of all parts, which must have the same columns.
    pub(super) fn open(shown: &str, files: Vec<SourceFile>) -> Result<Self, IngestError> {
        let mut fields: Vec<Field> = Vec::new();
        let mut parts = Vec::with_capacity(files.len());
        for file in files {
            let (part, found) = Part::open(file)?;
            if parts.is_empty() {
                fields = found;
            } else {
                let first = parts.first().map_or(shown, |part: &Part| part.file.shown());
                check_same(&Place::of(part.file.shown()), &found, first, &fields)?;
                for (field, found) in fields.iter_mut().zip(found) {
                    field.values = field.values.max(found.values);
                    if field.classes.is_empty() {
                        field.classes = found.classes;
                    }
                }
            }
            parts.push(part);
        }
        Ok(Self { shown: shown.to_owned(), parts, fields })
    }
}

impl ColumnTable for Parts {
    fn shown(&self) -> &str {
        &self.shown
    }

    fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn bytes(&self) -> u64 {
        self.parts.iter().fold(0, |all, part| all.saturating_add(part.bytes))
    }

    fn rows(&self) -> Result<Box<dyn ColumnRows + '_>, IngestError> {
        let values = vec![Vec::new(); self.fields.len()];
        Ok(Box::new(PartRows { all: self, next: 0, open: None, values, read: 0 }))
    }
}

/// A pass over the rows of all parts.
struct PartRows<'a> {
    all: &'a Parts,
    /// The part to open next.
    next: usize,
    open: Option<OpenPart<'a>>,
    /// The row's bytes in each column.
    values: Vec<Vec<u8>>,
    read: u64,
}

/// A part whose columns are read side by side.
struct OpenPart<'a> {
    part: &'a Part,
    columns: Vec<Stream>,
    /// Rows read.
    rows: u64,
}

/// One column of a part.
struct Stream {
    elements: BufReader<Unpacked>,
    ends: Option<BufReader<Unpacked>>,
    /// Elements read, of a column of sequences.
    at: u64,
}

impl Stream {
    /// Reads a row; also returns how many bytes were read.
    fn row(&mut self, field: &Field, elements: u64, into: &mut Vec<u8>) -> io::Result<Row> {
        let count = match &mut self.ends {
            None => 1,
            Some(ends) => {
                let mut end = [0; 8];
                ends.read_exact(&mut end)?;
                let end = u64::try_from(i64::from_le_bytes(end)).unwrap_or(u64::MAX);
                let Some(count) = end.checked_sub(self.at).filter(|_| end <= elements) else {
                    return Ok(Row::BadEnd);
                };
                self.at = end;
                count
            }
        };
        let bytes = count.saturating_mul(field.stride());
        if bytes > MAX_ROW_ELEMENTS.saturating_mul(field.dtype.bytes()) {
            return Ok(Row::TooWide);
        }
        into.resize(to_usize(bytes), 0);
        self.elements.read_exact(into)?;
        Ok(Row::Bytes(bytes))
    }
}

/// A row of a column.
enum Row {
    /// The row has so many bytes.
    Bytes(u64),
    /// The row ends before it begins, or behind the column.
    BadEnd,
    /// The row has more numbers than a row may have.
    TooWide,
}

impl<'a> OpenPart<'a> {
    fn open(part: &'a Part) -> Result<Self, IngestError> {
        let from = |start: u64| {
            Ok::<_, IngestError>(BufReader::with_capacity(READ_BUFFER, part.file.read_from(start)?))
        };
        let columns = part.starts.iter().zip(&part.ends).map(|(start, ends)| {
            Ok(Stream { elements: from(*start)?, ends: ends.map(from).transpose()?, at: 0 })
        });
        Ok(Self { part, columns: columns.collect::<Result<_, IngestError>>()?, rows: 0 })
    }

    fn place(&self) -> Place {
        let row = self.rows.saturating_sub(1);
        Place { element: Some(format!("row {row}")), ..Place::of(self.part.file.shown()) }
    }

    fn read(
        &mut self,
        fields: &[Field],
        values: &mut [Vec<u8>],
        read: &mut u64,
    ) -> Result<(), IngestError> {
        self.rows += 1;
        let columns = self.columns.iter_mut().zip(fields).zip(&self.part.elements).zip(values);
        for (((stream, field), elements), into) in columns {
            let place = || self.part.column(&field.name);
            let row = stream.row(field, *elements, into).map_err(|error| {
                if error.raw_os_error().is_some() {
                    return self.part.file.failed(error);
                }
                let (row, rows, reason) = (self.rows, self.part.rows, error.to_string());
                place().refuse(Problem::CutOff { row, rows, reason })
            })?;
            match row {
                Row::Bytes(bytes) => *read = read.saturating_add(bytes),
                Row::BadEnd => return Err(place().refuse(Problem::BadEnds)),
                Row::TooWide => {
                    return Err(place().refuse(Problem::WideRow { limit: MAX_ROW_ELEMENTS }));
                }
            }
        }
        Ok(())
    }

    /// Do the rows use all elements?
    fn check_end(&self, fields: &[Field]) -> Result<(), IngestError> {
        for ((stream, field), elements) in self.columns.iter().zip(fields).zip(&self.part.elements)
        {
            if stream.ends.is_some() && stream.at != *elements {
                return Err(self.part.column(&field.name).refuse(Problem::BadEnds));
            }
        }
        Ok(())
    }
}

impl ColumnRows for PartRows<'_> {
    fn advance(&mut self) -> Result<bool, IngestError> {
        loop {
            if let Some(open) = &mut self.open {
                if open.rows < open.part.rows {
                    open.read(&self.all.fields, &mut self.values, &mut self.read)?;
                    return Ok(true);
                }
                open.check_end(&self.all.fields)?;
                self.open = None;
            }
            let Some(part) = self.all.parts.get(self.next) else { return Ok(false) };
            self.open = Some(OpenPart::open(part)?);
            self.next += 1;
        }
    }

    fn column(&self, index: usize) -> &[u8] {
        self.values.get(index).map(Vec::as_slice).unwrap_or_default()
    }

    fn place(&self) -> Place {
        self.open.as_ref().map_or_else(|| Place::of(&self.all.shown), OpenPart::place)
    }

    fn bytes_read(&self) -> u64 {
        self.read
    }
}
