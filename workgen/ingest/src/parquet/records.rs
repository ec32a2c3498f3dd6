//! A pass over the rows of a Parquet source, parts in name order.

use super::{Parquet, column::Values, kind::Kind, part::Part};
use crate::{
    error::{IngestError, Place, Problem},
    fields::{Need, RecordError, Records},
    source::SourceFile,
};
use sojourn_protocol::quantity::{to_u64, to_usize};

/// Values that are decoded at once, of all columns together.
const BATCH_VALUES: usize = 1 << 18;
/// Rows that are decoded at once.
const MAX_BATCH: usize = 1024;

/// A pass over the rows.
pub(crate) struct ParquetRecords<'a> {
    needed: Vec<Need>,
    /// Parts that haven't been opened.
    parts: std::slice::Iter<'a, SourceFile>,
    open: Option<OpenPart<'a>>,
    /// Bytes of the parts that are done.
    before: u64,
    text: Vec<u8>,
}

/// A part that is being read.
struct OpenPart<'a> {
    part: Part<'a>,
    /// The needed columns of the row group, in order.
    columns: Vec<(usize, Kind, Values)>,
    /// Rows of the row group that aren't decoded.
    undecoded: u64,
    /// Rows that are decoded and weren't taken.
    decoded: usize,
}

impl<'a> ParquetRecords<'a> {
    pub(super) fn new(parquet: &'a Parquet, needed: Vec<Need>) -> Self {
        let parts = parquet.parts.iter();
        Self { needed, parts, open: None, before: 0, text: Vec::new() }
    }
}

impl<'a> OpenPart<'a> {
    fn open(file: &'a SourceFile) -> Result<Self, IngestError> {
        let part = Part::open(file)?;
        Ok(Self { part, columns: Vec::new(), undecoded: 0, decoded: 0 })
    }

    /// Opens the next row group; `false` after the last.
    fn open_group(&mut self, needed: &[Need]) -> Result<bool, IngestError> {
        self.columns.clear();
        let Some(group) = self.part.next_group()? else { return Ok(false) };
        for (index, (column, need)) in self.part.footer.columns.iter().zip(needed).enumerate() {
            if *need == Need::Nothing {
                continue;
            }
            let kind = column
                .kind
                .map_err(|what| self.part.column(&column.name).refuse(Problem::ColumnKind(what)))?;
            self.columns.push((index, kind, self.part.values(group, &column.name, column.leaf)?));
        }
        self.undecoded = group.rows;
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
        for (index, _, values) in &mut self.columns {
            values.read(to_usize(rows)).map_err(|reason| {
                let column = self.part.footer.columns.get(*index);
                self.part.damaged(column.map(|column| column.name.as_str()), reason)
            })?;
        }
        self.undecoded -= rows;
        self.decoded = to_usize(rows);
        Ok(true)
    }
}

impl Records for ParquetRecords<'_> {
    fn advance(
        &mut self,
        mut take: impl FnMut(usize, &[u8]) -> Result<(), Problem>,
    ) -> Result<bool, RecordError> {
        loop {
            let Some(open) = &mut self.open else {
                let Some(file) = self.parts.next() else { return Ok(false) };
                self.open = Some(OpenPart::open(file)?);
                continue;
            };
            if open.decoded == 0 && !open.decode(&self.needed)? {
                self.before = self.before.saturating_add(open.part.file.bytes());
                self.open = None;
                continue;
            }
            open.decoded -= 1;
            open.part.taken += 1;
            for (index, kind, values) in &mut open.columns {
                let problem = |what| RecordError::Field(*index, Problem::ColumnKind(what));
                values.next(*kind, &mut self.text).map_err(problem)?;
                // No label has a zero with a sign, whatever it was a number of.
                let is_zero = self.needed.get(*index) == Some(&Need::Label) && self.text == b"-0";
                let text = if is_zero { &b"0"[..] } else { &self.text };
                take(*index, text).map_err(|problem| RecordError::Field(*index, problem))?;
            }
            return Ok(true);
        }
    }

    fn place(&self) -> Place {
        self.open.as_ref().map_or_else(|| Place::of(""), |open| open.part.row())
    }

    fn bytes_read(&self) -> u64 {
        let here = self.open.as_ref().map_or(0, |open| open.part.bytes_read());
        self.before.saturating_add(here)
    }
}
