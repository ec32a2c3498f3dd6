//! One file that is read: its row groups in order, and the values of their columns.

use super::{column::Values, footer::Footer};
use crate::{
    error::{IngestError, Place, Problem},
    source::{Finder, SourceFile},
};
use parquet::basic::Compression;
use sojourn_protocol::quantity::mul_div;

/// Files of which any place can be read: packed ones are unpacked first.
pub(super) fn unpacked(
    finder: &mut Finder<'_>,
    files: Vec<SourceFile>,
) -> Result<Vec<SourceFile>, IngestError> {
    let files = files.into_iter();
    files.map(|file| if file.is_packed() { finder.unpack(&file) } else { Ok(file) }).collect()
}

/// A file that is being read.
pub(super) struct Part<'a> {
    pub(super) file: &'a SourceFile,
    pub(super) footer: Footer,
    /// Rows that were taken.
    pub(super) taken: u64,
    /// The next row group.
    next: usize,
}

/// A row group, by its number.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowGroup {
    index: usize,
    pub(super) rows: u64,
}

impl<'a> Part<'a> {
    pub(super) fn open(file: &'a SourceFile) -> Result<Self, IngestError> {
        Ok(Self { file, footer: Footer::read(file)?, taken: 0, next: 0 })
    }

    /// The next row group; none after the last.
    pub(super) fn next_group(&mut self) -> Result<Option<RowGroup>, IngestError> {
        let index = self.next;
        let Some(group) = self.footer.metadata.row_groups().get(index) else { return Ok(None) };
        self.next += 1;
        let rows = u64::try_from(group.num_rows());
        let rows =
            rows.map_err(|_| self.damaged(None, "a row group of less than no rows".to_owned()))?;
        Ok(Some(RowGroup { index, rows }))
    }

    /// The values of a column, which is the `leaf`th of those that hold any.
    pub(super) fn values(
        &self,
        group: RowGroup,
        name: &str,
        leaf: usize,
    ) -> Result<Values, IngestError> {
        let damaged = |reason| self.damaged(Some(name), reason);
        let columns = self.footer.metadata.row_groups().get(group.index);
        let values = columns.and_then(|group| group.columns().get(leaf));
        let values = values.ok_or_else(|| damaged("a row group lacks it".to_owned()))?;
        if let Some(codec) = unread(values.compression()) {
            return Err(self.column(name).refuse(Problem::ParquetCodec(codec)));
        }
        Values::open(&self.footer.chunks, values, group.rows).map_err(damaged)
    }

    /// The error of a column that can't be decoded; of the file where none is known.
    pub(super) fn damaged(&self, column: Option<&str>, reason: String) -> IngestError {
        let column = column.map(str::to_owned);
        let place = Place { column, ..Place::of(self.file.shown()) };
        place.refuse(Problem::Damaged { how: "Parquet", reason })
    }

    pub(super) fn column(&self, name: &str) -> Place {
        Place { column: Some(name.to_owned()), ..Place::of(self.file.shown()) }
    }

    /// The row that was taken last.
    pub(super) fn row(&self) -> Place {
        Place { row: Some(self.taken), ..Place::of(self.file.shown()) }
    }

    /// Bytes of the rows that were taken, about.
    pub(super) fn bytes_read(&self) -> u64 {
        let rows = u64::try_from(self.footer.metadata.file_metadata().num_rows()).unwrap_or(0);
        mul_div(self.file.bytes(), self.taken.min(rows), rows.max(1))
    }
}

/// The name of a compression that isn't read.
const fn unread(compression: Compression) -> Option<&'static str> {
    match compression {
        Compression::LZO => Some("LZO"),
        Compression::BROTLI(_) => Some("Brotli"),
        Compression::UNCOMPRESSED
        | Compression::SNAPPY
        | Compression::GZIP(_)
        | Compression::LZ4
        | Compression::LZ4_RAW
        | Compression::ZSTD(_) => None,
    }
}
