//! Parts: safetensors files with a tensor for each column, as `sojourn.data.write` makes them.
//!
//! A column of sequences is two tensors: `NAME` has the elements of all rows, and `NAME.ends`, `I64 [rows]`, says where
//! each row ends. The header's metadata has [`MARK`], by which a part is known.

use super::table::{ColumnRows, ColumnTable, Field};
use crate::{
    error::{IngestError, Place, Problem},
    source::{SourceFile, Unpacked},
};
use safetensors::tensor::{Metadata, TensorInfo};
use sojourn_protocol::{
    column::{MAX_COLUMNS, MAX_ROW_ELEMENTS, check_name},
    dtype::Dtype,
    quantity::{to_u64, to_usize},
};
use std::{
    collections::BTreeMap,
    io::{self, BufReader, Read},
};

/// The key of a part's metadata by which it is known; its value is the version of the format.
const MARK: &str = "sojourn.columns";
const VERSION: &str = "1";
/// The key under which a part says how many values columns have, as JSON.
const VALUES: &str = "values";
/// The longest header that is read.
const MAX_HEADER: u64 = 1 << 20;
/// The end of the name of a column's ends.
const ENDS: &str = ".ends";
/// Bytes that are read of a column at once.
const READ_BUFFER: usize = 256 << 10;

/// Has the file columns by name?
pub(super) fn is_part(file: &SourceFile) -> Result<bool, IngestError> {
    let start = file.start()?;
    let length = start.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
    if start.get(8) != Some(&b'{') || length.is_none_or(|length| length > MAX_HEADER) {
        return Ok(false);
    }
    // Other files of this format are read as arrays, and what is wrong with them is said there.
    Ok(header(file).is_ok_and(|(header, _)| mark(&header).is_some()))
}

fn mark(header: &Metadata) -> Option<&str> {
    header.metadata().as_ref()?.get(MARK).map(String::as_str)
}

/// The header, and the first byte behind it.
fn header(file: &SourceFile) -> Result<(Metadata, u64), IngestError> {
    let bad = |reason: String| file.refuse(Problem::Damaged { how: "safetensors", reason });
    let mut stream = file.read()?;
    let mut start = Vec::new();
    stream.by_ref().take(8).read_to_end(&mut start).map_err(|error| file.failed(error))?;
    let length = start.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
    let length = length.filter(|length| *length <= MAX_HEADER);
    let length = length.ok_or_else(|| bad("no header".to_owned()))?;
    let mut header = Vec::new();
    stream.take(length).read_to_end(&mut header).map_err(|error| file.failed(error))?;
    let header = serde_json::from_slice(&header).map_err(|error| bad(error.to_string()))?;
    Ok((header, length + 8))
}

/// All parts, in name order.
#[derive(Debug)]
pub(super) struct Parts {
    shown: String,
    parts: Vec<Part>,
    fields: Vec<Field>,
}

/// One part.
#[derive(Debug)]
struct Part {
    file: SourceFile,
    rows: u64,
    /// Where each column's elements begin in the file.
    starts: Vec<u64>,
    /// Where the ends of its rows begin, for columns of sequences.
    ends: Vec<Option<u64>>,
    /// Elements of all rows, for columns of sequences.
    elements: Vec<u64>,
    bytes: u64,
}

impl Parts {
    /// Reads the headers of all parts, which must have the same columns.
    pub(super) fn open(shown: &str, files: Vec<SourceFile>) -> Result<Self, IngestError> {
        let mut fields: Vec<Field> = Vec::new();
        let mut parts = Vec::with_capacity(files.len());
        for file in files {
            let (part, mut found) = Part::open(file)?;
            if parts.is_empty() {
                fields = found;
            } else {
                for (field, found) in fields.iter_mut().zip(&mut found) {
                    field.values = field.values.max(found.values);
                    found.values = field.values;
                }
                if fields != found {
                    let first: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
                    return Err(part.file.refuse(Problem::OtherColumns(first.join(", "))));
                }
            }
            parts.push(part);
        }
        Ok(Self { shown: shown.to_owned(), parts, fields })
    }
}

impl Part {
    fn open(file: SourceFile) -> Result<(Self, Vec<Field>), IngestError> {
        let (header, start) = header(&file)?;
        if mark(&header) != Some(VERSION) {
            return Err(file.refuse(Problem::OtherVersion));
        }
        let expected = start.saturating_add(to_u64(header.data_len()));
        if !file.is_packed() && file.bytes() != expected {
            let reason = format!("it has {} bytes, {expected} are wanted", file.bytes());
            return Err(file.refuse(Problem::Damaged { how: "safetensors", reason }));
        }
        let values = header.metadata().as_ref().and_then(|said| said.get(VALUES));
        let values: BTreeMap<String, u64> = match values {
            Some(json) => serde_json::from_str(json).map_err(|error| {
                file.refuse(Problem::Damaged { how: "values", reason: error.to_string() })
            })?,
            None => BTreeMap::new(),
        };
        let tensors: BTreeMap<String, &TensorInfo> = header.tensors().into_iter().collect();
        let mut part = Self {
            rows: 0,
            starts: Vec::new(),
            ends: Vec::new(),
            elements: Vec::new(),
            bytes: to_u64(header.data_len()),
            file,
        };
        let (mut fields, mut rows) = (Vec::new(), None);
        let place = |of: &TensorInfo| start.saturating_add(to_u64(of.data_offsets.0));
        for (name, tensor) in &tensors {
            let of = name.strip_suffix(ENDS).filter(|of| tensors.contains_key(*of));
            if of.is_some() {
                continue;
            }
            let ends = tensors.get(&format!("{name}{ENDS}")).copied();
            let field = part.field(name, tensor, ends, values.get(name).copied())?;
            let of = to_u64(ends.unwrap_or(tensor).shape.first().copied().unwrap_or_default());
            if *rows.get_or_insert(of) != of {
                let place = part.column(name);
                return Err(place.refuse(Problem::OtherRowsOfColumn(of)));
            }
            part.starts.push(place(tensor));
            part.ends.push(ends.map(place));
            part.elements.push(to_u64(tensor.shape.first().copied().unwrap_or_default()));
            fields.push(field);
            if fields.len() > MAX_COLUMNS {
                return Err(part.file.refuse(Problem::TooManyNames { limit: MAX_COLUMNS }));
            }
        }
        part.rows = rows.unwrap_or_default();
        Ok((part, fields))
    }

    /// The column of a tensor, where it can be one.
    fn field(
        &self,
        name: &str,
        tensor: &TensorInfo,
        ends: Option<&TensorInfo>,
        values: Option<u64>,
    ) -> Result<Field, IngestError> {
        let refuse = |problem| self.column(name).refuse(problem);
        check_name(name).map_err(|why| refuse(Problem::BadColumn(why)))?;
        let Some(dtype) = dtype(tensor.dtype) else {
            return Err(refuse(Problem::Dtype(tensor.dtype.to_string())));
        };
        let sides =
            tensor.shape.get(1..).map(|sides| sides.iter().map(|side| u32::try_from(*side)));
        let shape = sides.map(|sides| sides.collect::<Result<Vec<u32>, _>>());
        let Some(Ok(shape)) = shape else { return Err(refuse(Problem::Scalar)) };
        let field = Field {
            name: name.to_owned(),
            dtype,
            shape,
            is_sequence: ends.is_some(),
            values,
            windows: false,
        };
        if field.stride() == 0 || field.stride() > MAX_ROW_ELEMENTS * 8 {
            return Err(refuse(Problem::WideRow { limit: MAX_ROW_ELEMENTS }));
        }
        if ends.is_some_and(|ends| ends.dtype != safetensors::Dtype::I64 || ends.shape.len() != 1) {
            return Err(refuse(Problem::BadEnds));
        }
        Ok(field)
    }

    fn column(&self, name: &str) -> Place {
        Place { column: Some(name.to_owned()), ..Place::of(self.file.shown()) }
    }
}

fn dtype(dtype: safetensors::Dtype) -> Option<Dtype> {
    use safetensors::Dtype as Theirs;
    Some(match dtype {
        Theirs::BOOL => Dtype::Bool,
        Theirs::U8 => Dtype::U8,
        Theirs::I8 => Dtype::I8,
        Theirs::I16 => Dtype::I16,
        Theirs::I32 => Dtype::I32,
        Theirs::I64 => Dtype::I64,
        Theirs::F16 => Dtype::F16,
        Theirs::BF16 => Dtype::Bf16,
        Theirs::F32 => Dtype::F32,
        Theirs::F64 => Dtype::F64,
        _ => return None,
    })
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
    /// What the row has in each column.
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
    /// It has so many bytes.
    Bytes(u64),
    /// It ends before it begins, or behind the column.
    BadEnd,
    /// It has more numbers than a row may have.
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
