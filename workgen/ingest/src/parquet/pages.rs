//! The pages of a column, each looked at before it is decoded.

use super::{chunks::Chunks, thrift::Thrift};
use crate::bounds::{SharedBounds, Step};
use parquet::{
    basic::{Encoding, Type},
    column::page::{Page, PageMetadata, PageReader},
    errors::{ParquetError, Result},
    file::{metadata::ColumnChunkMetaData, reader::SerializedPageReader},
};
use sojourn_protocol::quantity::{to_u64, to_usize};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// Most values of a page, nulls among them: there may be any number in a few bytes, and some encodings make room for all.
const MAX_VALUES: u32 = 1 << 26;
/// Most values of the pages that are read at once where rows are lists: a row may go over any number of pages.
pub(super) const MAX_LIST_VALUES: u32 = 1 << 24;

/// How many values of lists may still be read, until it is renewed.
#[derive(Debug, Clone, Default)]
pub(super) struct PageBudget(Arc<AtomicU32>);

impl PageBudget {
    pub(super) fn renew(&self) {
        self.0.store(MAX_LIST_VALUES, Ordering::Relaxed);
    }

    /// Takes so many; `false` where there aren't as many.
    fn take(&self, values: u32) -> bool {
        let left = self.0.load(Ordering::Relaxed).checked_sub(values);
        self.0.store(left.unwrap_or_default(), Ordering::Relaxed);
        left.is_some()
    }
}

/// The pages of one column in one row group.
pub(super) struct CheckedPages {
    pages: SerializedPageReader<Chunks>,
    value: Type,
    /// Bytes of a value of a fixed length.
    length: u64,
    /// The highest level of lists, 0 where there are none, and of nulls.
    levels: [i16; 2],
    budget: PageBudget,
    /// Values of the pages to come.
    left: u64,
    /// Does no row go over the end of the page that was read last?
    ends_row: bool,
    bounds: SharedBounds,
}

impl CheckedPages {
    pub(super) fn new(
        chunks: &Arc<Chunks>,
        column: &ColumnChunkMetaData,
        rows: usize,
        budget: PageBudget,
    ) -> Result<Self> {
        let description = column.column_descr();
        Ok(Self {
            pages: SerializedPageReader::new(Arc::clone(chunks), column, rows, None)?,
            value: column.column_type(),
            length: u64::try_from(description.type_length()).unwrap_or(0),
            levels: [description.max_rep_level(), description.max_def_level()],
            budget,
            left: u64::try_from(column.num_values()).unwrap_or_default(),
            ends_row: false,
            bounds: SharedBounds::clone(chunks.bounds()),
        })
    }

    /// Least bytes of a value of a dictionary.
    fn least_bytes(&self) -> u64 {
        match self.value {
            Type::BOOLEAN => 1,
            Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 => 12,
            Type::FIXED_LEN_BYTE_ARRAY => self.length.max(1),
        }
    }

    fn check(&mut self, page: &Page) -> Result<()> {
        let (values, encoding, data) = match page {
            Page::DictionaryPage { buf, num_values, .. } => {
                let least = u64::from(*num_values).saturating_mul(self.least_bytes());
                return refuse_if(
                    least > to_u64(buf.len()),
                    "a dictionary of more values than bytes",
                );
            }
            Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding,
                rep_level_encoding,
                ..
            } => {
                let [lists, nulls] = self.levels;
                let data = without_levels(buf, *rep_level_encoding, lists, *num_values);
                let data = data
                    .and_then(|data| without_levels(data, *def_level_encoding, nulls, *num_values));
                refuse_if(data.is_none(), "a page without its levels")?;
                (*num_values, *encoding, data)
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let levels = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
                (*num_values, *encoding, buf.get(to_usize(levels)..))
            }
        };
        refuse_if(values > MAX_VALUES, "a page of too many values")?;
        self.left = self.left.saturating_sub(values.into());
        self.ends_row = self.left == 0;
        let [lists, _] = self.levels;
        refuse_if(lists > 0 && !self.budget.take(values), "a list or a page of too many values")?;
        let data = data.unwrap_or_default();
        let counts = match encoding {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => [deltas(data).map(|(count, _)| count), Some(0)],
            Encoding::DELTA_BYTE_ARRAY => {
                let prefixes = deltas(data);
                let suffixes = prefixes.and_then(|(_, rest)| deltas(rest));
                [prefixes.map(|(count, _)| count), suffixes.map(|(count, _)| count)]
            }
            Encoding::PLAIN
            | Encoding::PLAIN_DICTIONARY
            | Encoding::RLE_DICTIONARY
            | Encoding::RLE
            | Encoding::DELTA_BINARY_PACKED
            | Encoding::BYTE_STREAM_SPLIT => [Some(0); 2],
            _ => return Err(ParquetError::NYI(format!("values in the encoding {encoding}"))),
        };
        let are_in_page =
            |count: &Option<u64>| count.is_some_and(|count| count <= u64::from(values));
        refuse_if(!counts.iter().all(are_in_page), "a page of other lengths than values")
    }
}

fn refuse_if(is_bad: bool, what: &str) -> Result<()> {
    if is_bad { Err(ParquetError::General(what.to_owned())) } else { Ok(()) }
}

/// The bytes after the levels of a page, of which `most` is the highest; `None` where the length of levels is cut off.
fn without_levels(data: &[u8], encoding: Encoding, most: i16, values: u32) -> Option<&[u8]> {
    let bytes = match (most, encoding) {
        (0, _) => 0,
        (_, Encoding::RLE) => {
            let length = data.first_chunk::<4>()?;
            u64::from(u32::from_le_bytes(*length)).saturating_add(4)
        }
        // A few bits each, in an encoding of before.
        _ => {
            let bits = i16::BITS.saturating_sub(most.leading_zeros());
            u64::from(values).saturating_mul(bits.into()).div_ceil(8)
        }
    };
    // A page may have no values, and be cut off here.
    Some(data.get(to_usize(bytes)..).unwrap_or_default())
}

/// How many numbers a sequence of packed differences has, and what follows it.
///
/// ```text
/// | values of a block | parts of a block | count | first value | blocks ... |
/// block: | least difference | bits of each part's values, a byte each | values of each part ... |
/// ```
fn deltas(data: &[u8]) -> Option<(u64, &[u8])> {
    let mut rest = Thrift(data);
    let (block, parts) = (rest.varint()?, rest.varint()?);
    let (count, _) = (rest.varint()?, rest.int()?);
    let values = block.checked_div(parts).filter(|values| *values > 0)?;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        rest.int()?;
        let (widths, mut packed) = rest.0.split_at_checked(usize::try_from(parts).ok()?)?;
        for width in widths {
            if left > 0 {
                let bytes = u64::from(*width).checked_mul(values)? / 8;
                packed = packed.get(usize::try_from(bytes).ok()?..)?;
            }
            left = left.saturating_sub(values);
        }
        rest = Thrift(packed);
    }
    Some((count, rest.0))
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            let unpacked = Step::Unpacked(to_u64(page.buffer().len()));
            let refused = |refusal| ParquetError::External(Box::new(refusal));
            self.bounds.admit(unpacked).map_err(refused)?;
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    /// The crate looks at the next page's header to know it, and then begins to read behind it, where no header is to be checked.
    fn at_record_boundary(&mut self) -> Result<bool> {
        Ok(self.ends_row)
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}
