//! Rows of columns by name for other uses than training, such as `predict`.

use super::{
    open_for_reading,
    table::{ColumnRows, ColumnTable},
};
use crate::{
    error::{IngestError, Place, Problem},
    progress::Progress,
    source::Finder,
};
use sojourn_codec::{Dtype, Tensor, encode};
use sojourn_protocol::{
    column::Column,
    quantity::{to_u64, to_usize},
};
use std::path::Path;

/// A file or folder of columns by name, to be read as often as asked, in bounded memory.
pub struct ColumnReader {
    table: Box<dyn ColumnTable>,
    /// The wanted columns that are there, each with its place in the source.
    columns: Vec<(usize, Column)>,
}

impl ColumnReader {
    /// Finds the source, and those of the wanted columns that it has. Others of its columns are left aside. Blocks; inside an
    /// async runtime it must be called where blocking is allowed.
    ///
    /// # Errors
    /// A file that isn't there or has no columns by name; a column of another type or shape.
    pub fn open(
        source: &str,
        wanted: &[Column],
        (base_dir, spool): (&Path, &Path),
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Self, IngestError> {
        let mut finder = Finder::new(base_dir, spool, progress);
        let names: Vec<&str> = wanted.iter().map(|column| column.name.as_str()).collect();
        let table = open_for_reading(&mut finder, source, &names)?;
        let mut columns = Vec::new();
        for column in wanted {
            let fields = table.fields().iter().enumerate();
            let Some((at, field)) = fields.into_iter().find(|(_, field)| field.name == column.name)
            else {
                continue;
            };
            let is_same = field.dtype == column.dtype
                && field.shape == column.shape
                && field.is_sequence == column.longest.is_some();
            if !is_same {
                let name = column.dtype.name();
                let text =
                    format!("the model takes {name} of shape {:?}", column.batch_shape(None));
                let place = Place { column: Some(column.name.clone()), ..Place::of(table.shown()) };
                return Err(place.refuse(Problem::OtherKind(text)));
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
        Ok(ColumnRowReader { rows: self.table.rows()?, columns: &self.columns })
    }
}

/// A pass over rows.
pub struct ColumnRowReader<'a> {
    rows: Box<dyn ColumnRows + 'a>,
    columns: &'a [(usize, Column)],
}

impl ColumnRowReader<'_> {
    /// Up to `count` rows as the bytes of a shard, and how many they are; `None` after the last.
    ///
    /// # Errors
    /// The problem, with file and row.
    pub fn next_shard(&mut self, count: usize) -> Result<Option<(Vec<u8>, usize)>, IngestError> {
        let mut held: Vec<(Vec<u8>, Vec<u8>)> = vec![Default::default(); self.columns.len()];
        let mut rows = 0;
        while rows < count && self.rows.advance()? {
            rows += 1;
            for ((at, column), (bytes, ends)) in self.columns.iter().zip(&mut held) {
                let row = self.rows.column(*at);
                let element = to_usize(column.element_bytes()).max(1);
                let most = column.longest.map(|longest| to_usize(longest).saturating_mul(element));
                bytes.extend_from_slice(most.and_then(|most| row.get(..most)).unwrap_or(row));
                ends.extend(to_u64(bytes.len() / element).to_le_bytes());
            }
        }
        if rows == 0 {
            return Ok(None);
        }
        let mut tensors = Vec::new();
        for ((_, column), (data, ends)) in self.columns.iter().zip(held) {
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

    /// Bytes read so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.rows.bytes_read()
    }
}
