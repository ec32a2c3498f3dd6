//! The header of a part: its columns, where their numbers are in the file, and what it says of them.
//!
//! The metadata of a part has [`MARK`], by which it is known.

use super::table::Field;
use crate::{
    error::{IngestError, Place, Problem},
    source::SourceFile,
};
use safetensors::tensor::{Metadata, TensorInfo};
use sojourn_protocol::{
    column::{MAX_COLUMNS, MAX_ROW_ELEMENTS, check_name},
    dtype::Dtype,
    quantity::to_u64,
    text::{MAX_NAME_CHARS, is_plain_line, plain_line},
};
use std::{collections::BTreeMap, io::Read as _};

/// The key of a part's metadata by which it is known; its value is the version of the format.
const MARK: &str = "sojourn.columns";
const VERSION: &str = "1";
/// The key under which a part says how many values columns have, as JSON.
const VALUES: &str = "values";
/// The key under which a part names the values of columns, as JSON.
const CLASSES: &str = "classes";
/// The most characters of a class's name.
const MAX_CLASS_CHARS: usize = 256;
/// The most values that a column has.
const MAX_VALUES: u64 = u32::MAX as u64;
/// The longest header that is read.
const MAX_HEADER: u64 = 1 << 20;
/// Bytes of a longer one that are searched for the mark: as many as the `safetensors` library reads.
const MAX_SEARCHED: u64 = 100_000_000;
/// The end of the name of a column's ends.
const ENDS: &str = ".ends";

/// Has the file columns by name?
pub(super) fn is_part(file: &SourceFile) -> Result<bool, IngestError> {
    let start = file.start()?;
    let length = start.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
    if start.get(8) != Some(&b'{') {
        return Ok(false);
    }
    if let Some(length) = length.filter(|length| *length > MAX_HEADER) {
        return has_mark(file, length);
    }
    // Other files of this format are read as arrays, and what is wrong with them is said there.
    Ok(header(file).is_ok_and(|(header, _)| mark(&header).is_some()))
}

/// Is the mark in a header that is too large to be read?
fn has_mark(file: &SourceFile, length: u64) -> Result<bool, IngestError> {
    let mut header = Vec::new();
    let most = length.min(MAX_SEARCHED).saturating_add(8);
    file.read()?.take(most).read_to_end(&mut header).map_err(|error| file.failed(error))?;
    let key = format!("\"{MARK}\"");
    Ok(header.windows(key.len()).any(|bytes| bytes == key.as_bytes()))
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
    let length = length.ok_or_else(|| bad("no header".to_owned()))?;
    if length > MAX_HEADER {
        return Err(file.refuse(Problem::LargeHeader { limit: MAX_HEADER }));
    }
    let mut header = Vec::new();
    stream.take(length).read_to_end(&mut header).map_err(|error| file.failed(error))?;
    let header = serde_json::from_slice(&header).map_err(|error| bad(error.to_string()))?;
    Ok((header, length + 8))
}

/// One part.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) file: SourceFile,
    pub(super) rows: u64,
    /// Where each column's elements begin in the file.
    pub(super) starts: Vec<u64>,
    /// Where the ends of its rows begin, for columns of sequences.
    pub(super) ends: Vec<Option<u64>>,
    /// Elements of all rows, for columns of sequences.
    pub(super) elements: Vec<u64>,
    pub(super) bytes: u64,
}

impl Part {
    /// Reads the header: the part, and its columns.
    pub(super) fn open(file: SourceFile) -> Result<(Self, Vec<Field>), IngestError> {
        let (header, start) = header(&file)?;
        if mark(&header) != Some(VERSION) {
            return Err(file.refuse(Problem::OtherVersion));
        }
        let expected = start.saturating_add(to_u64(header.data_len()));
        if !file.is_packed() && file.bytes() != expected {
            let reason = format!("it has {} bytes, {expected} are wanted", file.bytes());
            return Err(file.refuse(Problem::Damaged { how: "safetensors", reason }));
        }
        let said = Said::of(&header)
            .map_err(|(how, reason)| file.refuse(Problem::Damaged { how, reason }))?;
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
            let field = part.field(name, tensor, ends, &said)?;
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
        said: &Said,
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
            values: said.values.get(name).copied(),
            classes: said.classes.get(name).cloned().unwrap_or_default(),
            windows: false,
        };
        if field.values.is_some() && !is_whole(dtype) {
            return Err(refuse(Problem::BadColumn("has values and is of no whole numbers".into())));
        }
        if field.stride() == 0 || field.stride() > MAX_ROW_ELEMENTS * 8 {
            return Err(refuse(Problem::WideRow { limit: MAX_ROW_ELEMENTS }));
        }
        if ends.is_some_and(|ends| ends.dtype != safetensors::Dtype::I64 || ends.shape.len() != 1) {
            return Err(refuse(Problem::BadEnds));
        }
        Ok(field)
    }

    /// A column as the place of a problem.
    pub(super) fn column(&self, name: &str) -> Place {
        Place { column: Some(name.to_owned()), ..Place::of(self.file.shown()) }
    }
}

const fn is_whole(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::U8 | Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64)
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

/// The counts and words of a part's whole numbers, by column, as its header says them.
#[derive(Debug)]
struct Said {
    values: BTreeMap<String, u64>,
    classes: BTreeMap<String, Vec<String>>,
}

impl Said {
    /// Reads the header; an error has the key at which something is wrong, and what.
    fn of(header: &Metadata) -> Result<Self, (&'static str, String)> {
        let bad = |key| move |error: serde_json::Error| (key, error.to_string());
        let values = serde_json::from_str(metadata(header, VALUES)).map_err(bad(VALUES))?;
        let classes = serde_json::from_str(metadata(header, CLASSES)).map_err(bad(CLASSES))?;
        let said = Self { values, classes };
        let shown = |name: &str| plain_line(name, MAX_NAME_CHARS);
        let columns = header.tensors();
        let named = said.values.keys().map(|name| (VALUES, name));
        for (key, name) in named.chain(said.classes.keys().map(|name| (CLASSES, name))) {
            if !columns.contains_key(name) {
                return Err((key, format!("there is no column `{}`", shown(name))));
            }
        }
        for (name, values) in &said.values {
            if !(1..=MAX_VALUES).contains(values) {
                let name = shown(name);
                return Err((
                    VALUES,
                    format!("`{name}` has {values} of them; 1 to {MAX_VALUES} are possible"),
                ));
            }
        }
        for (name, words) in &said.classes {
            let values = said.values.get(name).copied().unwrap_or_default();
            let name = shown(name);
            if values != to_u64(words.len()) {
                let words = words.len();
                return Err((CLASSES, format!("`{name}` has {words} of them and {values} values")));
            }
            if let Some(word) = words.iter().find(|word| !is_plain_line(word, MAX_CLASS_CHARS)) {
                let word = shown(word);
                return Err((
                    CLASSES,
                    format!(
                        "`{word}` of `{name}` is no line of at most {MAX_CLASS_CHARS} characters"
                    ),
                ));
            }
        }
        Ok(said)
    }
}

/// The JSON of the header's metadata under a key; `{}` where there is none.
fn metadata<'a>(header: &'a Metadata, key: &str) -> &'a str {
    let said = header.metadata().as_ref().and_then(|said| said.get(key));
    said.map_or("{}", String::as_str)
}
