//! A pass over the rows of a Parquet source, parts in name order.

use super::{Parquet, column::Values, footer::Footer};
use crate::{
    error::{IngestError, Place, Problem},
    fields::{Need, RecordError, Records},
    source::SourceFile,
};
use parquet::basic::Compression;
use sojourn_protocol::quantity::{mul_div, to_u64, to_usize};

/// Values that are decoded at once, of all columns together.
const BATCH_VALUES: usize = 1 << 18;
/// Rows that are decoded at once.
const MAX_BATCH: usize = 1024;

/// A pass over the rows.
pub(crate) struct ParquetRecords<'a> {
    needed: Vec<Need>,
    /// Parts that haven't been opened.
    parts: std::slice::Iter<'a, SourceFile>,
    part: Option<Part<'a>>,
    /// Bytes of the parts that are done.
    before: u64,
    text: Vec<u8>,
}

/// A part that is being read.
struct Part<'a> {
    file: &'a SourceFile,
    footer: Footer,
    /// The next row group.
    group: usize,
    /// The needed columns of the row group, in order.
    columns: Vec<(usize, Values)>,
    /// Rows of the row group that aren't decoded.
    undecoded: u64,
    /// Rows that are decoded and weren't taken.
    decoded: usize,
    /// Rows that were taken.
    taken: u64,
}

impl<'a> ParquetRecords<'a> {
    pub(super) fn new(parquet: &'a Parquet, needed: Vec<Need>) -> Self {
        let parts = parquet.parts.iter();
        Self { needed, parts, part: None, before: 0, text: Vec::new() }
    }
}

impl<'a> Part<'a> {
    fn open(file: &'a SourceFile) -> Result<Self, IngestError> {
        let footer = Footer::read(file)?;
        let (group, undecoded, decoded, taken) = (0, 0, 0, 0);
        Ok(Self { file, footer, group, columns: Vec::new(), undecoded, decoded, taken })
    }

    fn rows(&self) -> u64 {
        u64::try_from(self.footer.metadata.file_metadata().num_rows()).unwrap_or(0)
    }

    /// The error of a column that can't be decoded; of all of them where none is known.
    fn damaged(&self, index: Option<usize>, reason: String) -> IngestError {
        let column = index.and_then(|index| self.footer.columns.get(index));
        let column = column.map(|column| column.name.clone());
        let place = Place { column, ..Place::of(self.file.shown()) };
        place.refuse(Problem::Damaged { how: "Parquet", reason })
    }

    /// Opens the next row group; `false` after the last.
    fn open_group(&mut self, needed: &[Need]) -> Result<bool, IngestError> {
        self.columns.clear();
        let Some(group) = self.footer.metadata.row_groups().get(self.group) else {
            return Ok(false);
        };
        self.group += 1;
        let rows = u64::try_from(group.num_rows());
        let rows =
            rows.map_err(|_| self.damaged(None, "a row group of less than no rows".to_owned()))?;
        for (index, (column, need)) in self.footer.columns.iter().zip(needed).enumerate() {
            if *need == Need::Nothing {
                continue;
            }
            let damaged = |reason| self.damaged(Some(index), reason);
            let name =
                || Place { column: Some(column.name.clone()), ..Place::of(self.file.shown()) };
            let kind = column.kind.map_err(|what| name().refuse(Problem::ColumnKind(what)))?;
            let values = group.columns().get(column.leaf);
            let values = values.ok_or_else(|| damaged("a row group lacks it".to_owned()))?;
            if let Some(codec) = unread(values.compression()) {
                return Err(name().refuse(Problem::ParquetCodec(codec)));
            }
            let values = Values::open(&self.footer.chunks, values, kind, rows).map_err(damaged)?;
            self.columns.push((index, values));
        }
        self.undecoded = rows;
        Ok(true)
    }

    /// Decodes some rows; `false` where there are none any more.
    fn decode(&mut self, needed: &[Need]) -> Result<bool, IngestError> {
        while self.undecoded == 0 {
            if !self.open_group(needed)? {
                return Ok(false);
            }
        }
        let most = (BATCH_VALUES / self.columns.len().max(1)).clamp(1, MAX_BATCH);
        let rows = self.undecoded.min(to_u64(most));
        let mut columns = std::mem::take(&mut self.columns);
        for (index, values) in &mut columns {
            values.read(to_usize(rows)).map_err(|reason| self.damaged(Some(*index), reason))?;
        }
        self.columns = columns;
        self.undecoded -= rows;
        self.decoded = to_usize(rows);
        Ok(true)
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

impl Records for ParquetRecords<'_> {
    fn advance(
        &mut self,
        mut take: impl FnMut(usize, &[u8]) -> Result<(), Problem>,
    ) -> Result<bool, RecordError> {
        loop {
            let Some(part) = &mut self.part else {
                let Some(file) = self.parts.next() else { return Ok(false) };
                self.part = Some(Part::open(file)?);
                continue;
            };
            if part.decoded == 0 && !part.decode(&self.needed)? {
                self.before = self.before.saturating_add(part.file.bytes());
                self.part = None;
                continue;
            }
            part.decoded -= 1;
            part.taken += 1;
            for (index, values) in &mut part.columns {
                let problem = |what| RecordError::Field(*index, Problem::ColumnKind(what));
                values.next(&mut self.text).map_err(problem)?;
                // No label has a zero with a sign, whatever it was a number of.
                let is_zero = self.needed.get(*index) == Some(&Need::Label) && self.text == b"-0";
                let text = if is_zero { &b"0"[..] } else { &self.text };
                take(*index, text).map_err(|problem| RecordError::Field(*index, problem))?;
            }
            return Ok(true);
        }
    }

    fn place(&self) -> Place {
        match &self.part {
            Some(part) => Place { row: Some(part.taken), ..Place::of(part.file.shown()) },
            None => Place::of(""),
        }
    }

    fn bytes_read(&self) -> u64 {
        let here = self.part.as_ref().map_or(0, |part| {
            mul_div(part.file.bytes(), part.taken.min(part.rows()), part.rows().max(1))
        });
        self.before.saturating_add(here)
    }
}
