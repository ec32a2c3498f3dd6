//! Rows of columns by name for other uses than training, such as `predict`.

use super::{
    is_parquet,
    part::is_part,
    parts::Parts,
    table::{Choice, ColumnRows, ColumnTable, Field},
    text::Text,
    windows::{TokenSource as _, Windows},
};
use crate::{
    error::{IngestError, Place, Problem},
    format, parquet,
    progress::Progress,
    source::{Finder, SourceFile},
};
use sojourn_codec::{Dtype, Tensor, encode};
use sojourn_protocol::{
    column::Column,
    quantity::{to_u64, to_usize},
    spec::FileKind,
};
use std::path::Path;

/// Data to be read, and the folders that it needs.
#[derive(Debug, Clone, Copy)]
pub struct ColumnSource<'a> {
    /// A file, a folder or a URL.
    pub data: &'a str,
    /// The file of the tokenizer by which text is cut; bytes without one.
    pub tokenizer: Option<&'a str>,
    /// The folder that paths are relative to.
    pub base_dir: &'a Path,
    /// Where a remote file is copied to, until the reader is dropped; made where it isn't there.
    pub spool: &'a Path,
}

/// A file or folder of columns by name, to be read as often as asked, in bounded memory.
pub struct ColumnReader {
    table: Box<dyn ColumnTable>,
    /// The wanted columns that are there, each with its place in the source.
    columns: Vec<(usize, Column)>,
}

impl ColumnReader {
    /// Finds the source, and those of the wanted columns that it has. Others of its columns are left aside. Where windows are
    /// wanted, text is cut into such. Blocks; inside an async runtime it must be called where blocking is allowed.
    ///
    /// # Errors
    /// A file that isn't there or has no columns by name; a column of another type or shape; text that is cut into other tokens
    /// than the wanted ones.
    pub fn open(
        source: ColumnSource<'_>,
        wanted: &[Column],
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Self, IngestError> {
        let mut finder =
            Finder::new(source.base_dir, source.spool, &crate::bounds::unbounded(), progress);
        if let Some((table, column)) = windows_of_text(&mut finder, source, wanted)? {
            let columns = vec![(0, column.clone())];
            return Ok(Self { table: Box::new(table), columns });
        }
        let names: Vec<&str> = wanted.iter().map(|column| column.name.as_str()).collect();
        let table = columns_by_name(&mut finder, source, &names)?;
        let mut columns = Vec::new();
        for column in wanted {
            let fields = table.fields().iter().enumerate();
            let Some((at, field)) = fields.into_iter().find(|(_, field)| field.name == column.name)
            else {
                continue;
            };
            if !fits(field, column) {
                let place = Place { column: Some(column.name.clone()), ..Place::of(table.shown()) };
                return Err(place.refuse(Problem::OtherKind(taken(column))));
            }
            columns.push((at, column.clone()));
        }
        if columns.is_empty() {
            return Err(table.refuse(Problem::NoneOfColumns(names.join(", "))));
        }
        Ok(Self { table, columns })
    }

    /// The wanted columns that are there.
    #[must_use]
    pub fn columns(&self) -> Vec<Column> {
        self.columns.iter().map(|(_, column)| column.clone()).collect()
    }

    /// Bytes that a pass reads, for progress.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.table.bytes()
    }

    /// Begins a pass over the rows, in the file's order.
    ///
    /// # Errors
    /// Whatever the disk says.
    pub fn rows(&self) -> Result<ColumnRowReader<'_>, IngestError> {
        let cut = vec![0; self.columns.len()];
        Ok(ColumnRowReader { reader: self, rows: self.table.rows()?, read: 0, cut })
    }
}

/// The source of that name, which must have columns by name. Others of its columns than the wanted ones needn't be read.
fn columns_by_name(
    finder: &mut Finder<'_>,
    source: ColumnSource<'_>,
    wanted: &[&str],
) -> Result<Box<dyn ColumnTable>, IngestError> {
    let data = source.data;
    if source.tokenizer.is_some() {
        return Err(Place::of(data).refuse(Problem::TokenizerForText));
    }
    let files = finder.find("data", data)?;
    match files.first() {
        Some(first) if is_part(first)? => Ok(Box::new(Parts::open(data, files)?)),
        Some(first) if is_parquet(first)? => {
            parquet::by_name(finder, data, files, Choice::Wanted(wanted))
        }
        _ => Err(Place::of(data).refuse(Problem::NotColumns)),
    }
}

/// The source of that name, cut into windows, where it is text and windows are wanted: one of the columns, whose rows have one
/// token more.
fn windows_of_text<'a>(
    finder: &mut Finder<'_>,
    source: ColumnSource<'_>,
    wanted: &'a [Column],
) -> Result<Option<(Windows, &'a Column)>, IngestError> {
    let data = source.data;
    let column = wanted.iter().find(|column| column.windows);
    let Some((column, tokens)) = column.and_then(|of| Some((of, *of.shape.first()?))) else {
        return Ok(None);
    };
    let texts = texts(finder, data)?;
    let Some(first) = texts.first().cloned() else { return Ok(None) };
    let tokenizer = source.tokenizer.map(|name| finder.find("tokenizer", name)).transpose()?;
    let tokenizer = tokenizer.and_then(|found| found.into_iter().next());
    let text = Text::open(texts, tokenizer.as_ref())?;
    if (text.dtype(), text.values()) != (column.dtype, column.values) {
        let takes = tokens_of(column.dtype, column.values);
        return Err(match tokenizer {
            None => first.refuse(Problem::TokensForBytes(takes)),
            Some(file) => {
                let makes = tokens_of(text.dtype(), text.values());
                file.refuse(Problem::OtherTokenizer { makes, takes })
            }
        });
    }
    let window = tokens.saturating_sub(1);
    Ok(Some((Windows::new(data, Box::new(text), window), column)))
}

/// The files of text that `data` is: one file, whatever it is called, or all of a folder; none where it is other data.
fn texts(finder: &mut Finder<'_>, data: &str) -> Result<Vec<SourceFile>, IngestError> {
    let texts = finder.find_texts("data", data)?;
    if !texts.is_empty() {
        // Text beside parts is about them.
        let is_file = FileKind::named(data) == Some(FileKind::Text);
        let is_text = is_file || finder.folder_without_data("data", data)?.is_some();
        return Ok(if is_text { texts } else { Vec::new() });
    }
    let files = finder.find("data", data)?;
    let is_text = match files.as_slice() {
        [file] if FileKind::named(file.shown()).is_none() && !is_part(file)? => {
            format::is_text(&file.start()?)
        }
        _ => false,
    };
    Ok(if is_text { files } else { Vec::new() })
}

/// `I16 with 301 values`
fn tokens_of(dtype: Dtype, values: Option<u64>) -> String {
    let values =
        values.map_or_else(|| "numbers below 0".to_owned(), |values| format!("{values} values"));
    format!("{} with {values}", dtype.name())
}

/// Can rows of the source be read as the column? Whether they may differ in length is no difference: those of the source may
/// happen to be equally long, and where they must be, each is compared as it is read.
fn fits(field: &Field, column: &Column) -> bool {
    let is_element = match (column.longest, field.is_sequence) {
        (Some(_), true) | (None, false) => field.shape == column.shape,
        (Some(_), false) => field.shape.get(1..) == Some(&column.shape),
        (None, true) => column.shape.get(1..) == Some(&field.shape),
    };
    field.dtype == column.dtype && is_element
}

/// The type and shape that the model takes in the place of what the source has, in words.
fn taken(column: &Column) -> String {
    format!("the model takes {} of shape {:?}", column.dtype.name(), column.batch_shape(None))
}

/// A pass over rows.
pub struct ColumnRowReader<'a> {
    reader: &'a ColumnReader,
    rows: Box<dyn ColumnRows + 'a>,
    /// Rows read so far.
    read: u64,
    /// Of each column, the rows that were cut so far.
    cut: Vec<u64>,
}

impl ColumnRowReader<'_> {
    /// Up to `count` rows as the bytes of a shard, and how many they are; `None` after the last.
    ///
    /// # Errors
    /// The problem, with file and row.
    pub fn next_shard(&mut self, count: usize) -> Result<Option<(Vec<u8>, usize)>, IngestError> {
        let columns = &self.reader.columns;
        let mut held: Vec<(Vec<u8>, Vec<u8>)> = vec![Default::default(); columns.len()];
        let mut rows = 0;
        while rows < count && self.rows.advance()? {
            rows += 1;
            self.read += 1;
            let held = held.iter_mut().zip(&mut self.cut);
            for ((at, column), ((bytes, ends), cut)) in columns.iter().zip(held) {
                let row = self.rows.column(*at);
                let element = to_usize(column.element_bytes()).max(1);
                let most = column.longest.map(|longest| to_usize(longest).saturating_mul(element));
                if most.is_none() && row.len() != element {
                    let count = to_u64(row.len()) / column.dtype.bytes();
                    let text =
                        format!("{}, and row {} has {count} numbers", taken(column), self.read);
                    let name = Some(column.name.clone());
                    let place = Place { column: name, ..self.rows.place() };
                    return Err(place.refuse(Problem::OtherKind(text)));
                }
                let kept = most.and_then(|most| row.get(..most)).unwrap_or(row);
                *cut += u64::from(kept.len() < row.len());
                bytes.extend_from_slice(kept);
                ends.extend(to_u64(bytes.len() / element).to_le_bytes());
            }
        }
        if rows == 0 {
            return Ok(None);
        }
        let mut tensors = Vec::new();
        for ((_, column), (data, ends)) in columns.iter().zip(held) {
            let count = to_u64(data.len()) / column.element_bytes().max(1);
            let sides = column.shape.iter().map(|side| u64::from(*side));
            let shape = std::iter::once(count).chain(sides).collect();
            tensors.push(Tensor { name: column.name.clone(), dtype: column.dtype, shape, data });
            if column.longest.is_some() {
                let (name, shape) = (format!("{}.ends", column.name), vec![to_u64(rows)]);
                tensors.push(Tensor { name, dtype: Dtype::I64, shape, data: ends });
            }
        }
        Ok(Some((encode(&tensors)?, rows)))
    }

    /// The columns of which rows were cut so far, being longer than any that the model was trained on, and how many rows.
    pub fn cut_rows(&self) -> impl Iterator<Item = (&Column, u64)> {
        let columns = self.reader.columns.iter().map(|(_, column)| column);
        columns.zip(self.cut.iter().copied()).filter(|(_, cut)| *cut > 0)
    }

    /// Bytes read so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.rows.bytes_read()
    }
}
