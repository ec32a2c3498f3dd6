//! The footer of a file: its columns and row groups.
//!
//! ```text
//! | PAR1 | pages ... | metadata, in Thrift's compact protocol | its bytes, u32 | PAR1 |
//! ```

use super::{
    begins::{ENCRYPTED, MAGIC},
    chunks::Chunks,
    guard::guarded,
    kind::Kind,
    stored::Stored,
    thrift::{Thrift, Type},
};
use crate::{
    error::{IngestError, Place, Problem},
    fields::{Names, named, once},
    source::SourceFile,
};
use parquet::{
    file::metadata::{ParquetMetaData, ParquetMetaDataReader},
    schema::types::SchemaDescriptor,
};
use std::sync::Arc;

/// Bytes behind the metadata.
const TAIL: u64 = 8;
/// Most bytes of metadata.
const MAX_METADATA: u64 = 256 << 20;
/// Groups of columns in each other.
const MAX_NESTING: usize = 64;

/// A column of a file.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    /// How its values are written; or what it holds that can't be.
    pub(super) kind: Result<Kind, &'static str>,
    /// The form of a row in a column by name; or what it holds that none can be.
    pub(super) stored: Result<Stored, &'static str>,
    /// The column's place among the columns that hold values, of which a nested one has several.
    pub(super) leaf: usize,
}

/// The description that a file has of itself.
pub(super) struct Footer {
    pub(super) chunks: Arc<Chunks>,
    pub(super) metadata: ParquetMetaData,
    pub(super) columns: Vec<Column>,
}

impl Footer {
    /// The names of the columns in order, each once. `at` is the file.
    pub(super) fn names(&self, at: &Place) -> Result<Vec<String>, IngestError> {
        let mut names = Names::default();
        for column in &self.columns {
            names.push(&column.name).map_err(|problem| at.clone().refuse(problem))?;
        }
        let names = names.finish();
        let all = named(at, &names, &[], (0..names.len()).collect())?;
        once(at, &names, all)?;
        Ok(names)
    }

    pub(super) fn read(file: &SourceFile) -> Result<Self, IngestError> {
        let damaged = |reason: &str| {
            file.refuse(Problem::Damaged { how: "Parquet", reason: reason.to_owned() })
        };
        let chunks = Chunks::open(file)?;
        let read = |start, count| chunks.read(start, count).map_err(|error| file.failed(error));
        let bytes = file.bytes();
        let tail = bytes.checked_sub(TAIL).filter(|start| *start >= TAIL / 2);
        let start = tail.ok_or_else(|| damaged("it is too short"))?;
        let tail = read(start, TAIL)?;
        let (length, magic) = tail.split_first_chunk::<4>().unwrap_or((&[0; 4], &[]));
        match magic {
            ENCRYPTED => return Err(file.refuse(Problem::Encrypted)),
            MAGIC => {}
            _ => return Err(damaged("its end is missing")),
        }
        let length = u64::from(u32::from_le_bytes(*length));
        let from = start.checked_sub(length).filter(|_| length <= MAX_METADATA);
        let from = from.ok_or_else(|| damaged("its metadata is larger than it"))?;
        let footer = read(from, length)?;
        check_schema(&footer).ok_or_else(|| damaged("its metadata can't be read"))?;
        let metadata = guarded(|| ParquetMetaDataReader::decode_metadata(&footer));
        let metadata = metadata.map_err(|reason| damaged(&reason))?;
        let columns = columns(metadata.file_metadata().schema_descr());
        Ok(Self { chunks: Arc::new(chunks), metadata, columns })
    }
}

/// The columns of the first level, in order.
fn columns(schema: &SchemaDescriptor) -> Vec<Column> {
    let mut leaves = schema.columns().iter().enumerate().peekable();
    let fields = schema.root_schema().get_fields().iter();
    let columns = fields.filter_map(|field| {
        let name = field.name().to_owned();
        let mut own = None;
        // The columns of values below it.
        while let Some((leaf, value)) =
            leaves.next_if(|(_, value)| value.path().parts().first() == Some(&name))
        {
            let kind = if value.path().parts().len() == 1 && value.max_rep_level() == 0 {
                Kind::of(value)
            } else {
                Err("lists or records")
            };
            own.get_or_insert_with(|| (leaf, kind, Stored::of(field, value)));
        }
        let (leaf, kind, stored) = own?;
        Some(Column { name, kind, stored, leaf })
    });
    columns.collect()
}

/// Whether a schema has the columns that it declares, in groups that aren't too deep: they are built by recursion, with room for
/// as many as are declared.
fn check_schema(footer: &[u8]) -> Option<()> {
    const SCHEMA: i64 = 2;
    const CHILDREN: i64 = 5;
    Thrift(footer).fields(|id, kind, thrift| {
        if (id, kind) != (SCHEMA, Type::LIST) {
            return Some(false);
        }
        let (count, kind) = thrift.list()?;
        if kind != Type::STRUCT {
            return None;
        }
        // Of each group that isn't complete, how many are to come.
        let mut open: Vec<usize> = Vec::new();
        for _ in 0..count {
            let mut children = 0;
            thrift.fields(|id, kind, thrift| {
                if (id, kind) != (CHILDREN, Type::I32) {
                    return Some(false);
                }
                children = thrift.int()?;
                Some(true)
            })?;
            let children = usize::try_from(children).ok().filter(|n| *n <= footer.len())?;
            open.push(children);
            if open.len() > MAX_NESTING {
                return None;
            }
            while open.last() == Some(&0) {
                open.pop();
                if let Some(left) = open.last_mut() {
                    *left = left.checked_sub(1)?;
                }
            }
        }
        open.is_empty().then_some(true)
    })
}
