//! Writers of shards that hold columns by name.
//!
//! How long a column of sequences gets is known only at the end, so each column of each shard is a file of its own until
//! then; the shard is those files one behind another.

use super::{BUFFER_BYTES, MAX_BUFFER, publish::publish};
use crate::{
    bounds::{self, SharedBounds, Step},
    error::IngestError,
    plan::Plan,
};
use sojourn_codec::{Dtype, Layout, TensorSpec};
use sojourn_protocol::{
    column::Column,
    digest::{BlobRef, Digest, Hasher},
    manifest::Shard,
    quantity::to_u64,
};
use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// Bytes that are copied at once.
const CHUNK: usize = 64 << 10;

/// All shards of a plan, being written.
pub(crate) struct ColumnShards {
    folder: TempDir,
    columns: Vec<Column>,
    writers: Vec<Writer>,
}

/// One shard.
struct Writer {
    rows: u32,
    columns: Vec<ColumnWriter>,
}

/// One column of a shard.
struct ColumnWriter {
    elements: Piece,
    /// Elements so far.
    count: u64,
    /// Where each row ends, for a column of sequences.
    ends: Option<Piece>,
}

/// Bytes that are appended to a file.
struct Piece {
    path: PathBuf,
    buffer: Vec<u8>,
    most: usize,
    bounds: SharedBounds,
}

impl Piece {
    fn append(&mut self, bytes: &[u8]) -> Result<(), IngestError> {
        if self.buffer.len() + bytes.len() > self.most {
            self.write(&[])?;
        }
        if bytes.len() > self.most {
            return self.write(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends the buffer and these bytes to the file.
    fn write(&mut self, bytes: &[u8]) -> Result<(), IngestError> {
        let written = self.buffer.len().saturating_add(bytes.len());
        self.bounds.admit(Step::Written(to_u64(written)))?;
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
            file.write_all(&self.buffer)?;
            file.write_all(bytes)
        };
        write().map_err(IngestError::io("write", &self.path))?;
        self.buffer.clear();
        Ok(())
    }

    /// Copies all bytes behind those of a file, and leaves nothing of its own.
    fn copy_into(mut self, to: &mut File, hasher: &mut Hasher) -> Result<(), IngestError> {
        self.write(&[])?;
        let bounds = SharedBounds::clone(&self.bounds);
        let mut copy = || -> io::Result<()> {
            let mut from = File::open(&self.path)?;
            let mut chunk = vec![0; CHUNK];
            loop {
                let count = from.read(&mut chunk)?;
                let Some(read) = chunk.get(..count).filter(|read| !read.is_empty()) else {
                    return fs::remove_file(&self.path);
                };
                bounds.admit(Step::Written(to_u64(count))).map_err(io::Error::other)?;
                hasher.update(read);
                to.write_all(read)?;
            }
        };
        copy().map_err(|error| match bounds::refusal(error) {
            Ok(refused) => refused,
            Err(error) => IngestError::io("write", &self.path)(error),
        })
    }
}

impl ColumnShards {
    /// Makes a temporary folder inside `out_dir` for the shards of a plan.
    pub(crate) fn create(
        out_dir: &Path,
        plan: &Plan,
        columns: &[Column],
        bounds: &SharedBounds,
    ) -> Result<Self, IngestError> {
        fs::create_dir_all(out_dir).map_err(IngestError::io("create", out_dir))?;
        let folder = tempfile::Builder::new()
            .prefix(".ingest-")
            .tempdir_in(out_dir)
            .map_err(IngestError::io("create a folder in", out_dir))?;
        let pieces = plan.shards().count().saturating_mul(columns.len() * 2);
        let most = (BUFFER_BYTES / pieces.max(1)).min(MAX_BUFFER);
        let piece = |name: String| {
            let (path, buffer) = (folder.path().join(name), Vec::new());
            Piece { path, buffer, most, bounds: SharedBounds::clone(bounds) }
        };
        let shards = plan.shards().enumerate().map(|(shard, (_, rows))| {
            let columns = columns.iter().enumerate().map(|(at, column)| ColumnWriter {
                elements: piece(format!("{shard}.{at}")),
                count: 0,
                ends: column.longest.map(|_| piece(format!("{shard}.{at}.ends"))),
            });
            Writer { rows, columns: columns.collect() }
        });
        let writers = shards.collect();
        Ok(Self { folder, columns: columns.to_vec(), writers })
    }

    /// Appends a row to a shard: what it has in each column.
    pub(crate) fn push<'a>(
        &mut self,
        shard: usize,
        row: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), IngestError> {
        let Some(writer) = self.writers.get_mut(shard) else { return Ok(()) };
        for ((bytes, column), of) in row.zip(&mut writer.columns).zip(&self.columns) {
            column.elements.append(bytes)?;
            column.count += to_u64(bytes.len()) / of.element_bytes().max(1);
            if let Some(ends) = &mut column.ends {
                ends.append(&column.count.to_le_bytes())?;
            }
        }
        Ok(())
    }

    /// Ends all shards and moves every blob to its name in `out_dir`: all of them or none.
    pub(crate) fn publish(
        self,
        out_dir: &Path,
    ) -> Result<(Vec<Shard>, BTreeMap<Digest, PathBuf>), IngestError> {
        let mut shards = Vec::with_capacity(self.writers.len());
        let mut blobs = Vec::with_capacity(self.writers.len());
        for (index, writer) in self.writers.into_iter().enumerate() {
            let path = self.folder.path().join(index.to_string());
            let blob = writer.finish(&self.columns, &path)?;
            shards.push((blob.0, blob.1));
            blobs.push((blob.0, path));
        }
        let files = publish(&blobs, out_dir)?;
        Ok((shards.into_iter().map(|(blob, rows)| Shard { blob, rows }).collect(), files))
    }
}

impl Writer {
    /// Writes the shard's file; gives its blob and rows.
    fn finish(self, columns: &[Column], path: &Path) -> Result<(BlobRef, u32), IngestError> {
        let mut pieces: Vec<(TensorSpec, Piece)> = Vec::new();
        for (writer, column) in self.columns.into_iter().zip(columns) {
            let sides = column.shape.iter().map(|side| u64::from(*side));
            let shape: Vec<u64> = std::iter::once(writer.count).chain(sides).collect();
            pieces.push((TensorSpec::new(&column.name, column.dtype, shape), writer.elements));
            if let Some(ends) = writer.ends {
                let name = format!("{}.ends", column.name);
                pieces.push((TensorSpec::new(name, Dtype::I64, [u64::from(self.rows)]), ends));
            }
        }
        pieces.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        let layout = Layout::new(pieces.iter().map(|(spec, _)| spec.clone()).collect())?;
        let mut file = File::create_new(path).map_err(IngestError::io("create", path))?;
        file.write_all(layout.header()).map_err(IngestError::io("write", path))?;
        let mut hasher = Hasher::default();
        hasher.update(layout.header());
        for (_, piece) in pieces {
            piece.copy_into(&mut file, &mut hasher)?;
        }
        Ok((BlobRef { sha256: hasher.finish(), bytes: layout.file_bytes() }, self.rows))
    }
}
