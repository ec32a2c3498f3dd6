//! Writers of shard blobs: many at once, in bounded memory, without holding files open.
//!
//! Where each number of a shard's file lies is known before the first row comes, because the plan has
//! counted the rows:
//!
//! ```text
//! | header | x: row after row ................ | y: label after label ... |
//!          ^ x_at                              ^ y_at       (both move on with each flush)
//! ```
//!
//! The digest is over the file in order: the header, `x` as it is flushed, `y` read back at the end.

use crate::{error::IngestError, plan::Plan};
use sojourn_codec::{Dtype, Layout, TensorSpec};
use sojourn_protocol::{
    digest::{BlobRef, Digest, Hasher},
    manifest::{Labels, Shard},
};
use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// What all write buffers have together.
pub(crate) const BUFFER_BYTES: usize = 64 << 20;
/// No buffer gets more: larger ones save nothing.
const MAX_BUFFER: usize = 1 << 20;
const READ_BACK: usize = 64 << 10;

/// A row's label.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    Class(i64),
    Number(f32),
}

/// All shards of a plan, being written.
pub(crate) struct ShardSet {
    folder: TempDir,
    buffer: usize,
    writers: Vec<ShardWriter>,
    blobs: Vec<(BlobRef, PathBuf)>,
}

impl ShardSet {
    /// Makes a file for each shard, in a temporary folder inside `out_dir`.
    pub(crate) fn create(
        out_dir: &Path,
        plan: &Plan,
        features: usize,
        labels: &Labels,
    ) -> Result<Self, IngestError> {
        fs::create_dir_all(out_dir).map_err(IngestError::io("create", out_dir))?;
        let folder = tempfile::Builder::new()
            .prefix(".ingest-")
            .tempdir_in(out_dir)
            .map_err(IngestError::io("create a folder in", out_dir))?;
        let features = u64::try_from(features).unwrap_or(u64::MAX);
        let writers = plan.shards().enumerate().map(|(index, (_, rows))| {
            let path = folder.path().join(index.to_string());
            ShardWriter::create(path, rows, features, labels)
        });
        let writers = writers.collect::<Result<Vec<_>, _>>()?;
        // Each writer has two buffers.
        let buffer = (BUFFER_BYTES / 2 / writers.len().max(1)).min(MAX_BUFFER);
        Ok(Self { folder, buffer, writers, blobs: Vec::new() })
    }

    /// Appends a row to a shard.
    pub(crate) fn push(
        &mut self,
        shard: usize,
        row: &[f32],
        target: Target,
    ) -> Result<(), IngestError> {
        match self.writers.get_mut(shard) {
            Some(writer) => writer.push(row, target, self.buffer),
            None => Ok(()),
        }
    }

    /// Adds a blob of other content, whole.
    pub(crate) fn add_blob(&mut self, bytes: &[u8]) -> Result<BlobRef, IngestError> {
        let sha256 = Digest::of(bytes);
        let path = self.folder.path().join(sha256.to_string());
        fs::write(&path, bytes).map_err(IngestError::io("write", &path))?;
        let blob = BlobRef { sha256, bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX) };
        self.blobs.push((blob, path));
        Ok(blob)
    }

    /// Ends all shards and moves every blob to its name in `out_dir`: all of them or none.
    pub(crate) fn publish(
        mut self,
        out_dir: &Path,
    ) -> Result<(Vec<Shard>, BTreeMap<Digest, PathBuf>), IngestError> {
        let mut shards = Vec::with_capacity(self.writers.len());
        for writer in self.writers.drain(..) {
            let (shard, path) = writer.finish()?;
            self.blobs.push((shard.blob, path));
            shards.push(shard);
        }
        let mut files: BTreeMap<Digest, PathBuf> = BTreeMap::new();
        let mut made: Vec<PathBuf> = Vec::new();
        for (blob, path) in &self.blobs {
            let name = out_dir.join(blob.sha256.to_string());
            // An equal blob may lie there already, from this run or one before: it is the same bytes.
            let is_new = !name.exists();
            if let Err(error) = fs::rename(path, &name) {
                for path in made {
                    // Best effort: the error that is returned says more than one from here.
                    let _ = fs::remove_file(path);
                }
                return Err(IngestError::io("write", &name)(error));
            }
            if is_new {
                made.push(name.clone());
            }
            files.insert(blob.sha256, name);
        }
        Ok((shards, files))
    }
}

/// One shard's file.
struct ShardWriter {
    path: PathBuf,
    rows: u32,
    bytes: u64,
    hasher: Hasher,
    x: Vec<u8>,
    x_at: u64,
    y: Vec<u8>,
    y_at: u64,
    y_start: u64,
}

impl ShardWriter {
    fn create(
        path: PathBuf,
        rows: u32,
        features: u64,
        labels: &Labels,
    ) -> Result<Self, IngestError> {
        let count = u64::from(rows);
        let dtype = match labels {
            Labels::Classes(_) => Dtype::I64,
            Labels::Number => Dtype::F32,
        };
        let layout = Layout::new(vec![
            TensorSpec::new("x", Dtype::F32, [count, features]),
            TensorSpec::new("y", dtype, [count]),
        ])?;
        let start = |name| layout.range(name).map_or(0, |range| range.start);
        let mut file = File::create_new(&path).map_err(IngestError::io("create", &path))?;
        file.write_all(layout.header()).map_err(IngestError::io("write", &path))?;
        let mut hasher = Hasher::default();
        hasher.update(layout.header());
        Ok(Self {
            rows,
            bytes: layout.file_bytes(),
            hasher,
            x: Vec::new(),
            x_at: start("x"),
            y: Vec::new(),
            y_at: start("y"),
            y_start: start("y"),
            path,
        })
    }

    fn push(&mut self, row: &[f32], target: Target, buffer: usize) -> Result<(), IngestError> {
        self.x.extend(row.iter().flat_map(|value| value.to_le_bytes()));
        match target {
            Target::Class(index) => self.y.extend(index.to_le_bytes()),
            Target::Number(number) => self.y.extend(number.to_le_bytes()),
        }
        if self.x.len() >= buffer || self.y.len() >= buffer {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes both buffers. The file is opened for it each time: there may be more shards than a
    /// process may have files open.
    fn flush(&mut self) -> Result<(), IngestError> {
        self.hasher.update(&self.x);
        let write = || -> std::io::Result<()> {
            let mut file = OpenOptions::new().write(true).open(&self.path)?;
            for (bytes, at) in [(&self.x, self.x_at), (&self.y, self.y_at)] {
                file.seek(SeekFrom::Start(at))?;
                file.write_all(bytes)?;
            }
            Ok(())
        };
        write().map_err(IngestError::io("write", &self.path))?;
        for (bytes, at) in [(&mut self.x, &mut self.x_at), (&mut self.y, &mut self.y_at)] {
            *at += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            bytes.clear();
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(Shard, PathBuf), IngestError> {
        self.flush()?;
        let mut hasher = std::mem::take(&mut self.hasher);
        let mut read_back = || -> std::io::Result<()> {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(self.y_start))?;
            let mut chunk = vec![0; READ_BACK];
            loop {
                let read = file.read(&mut chunk)?;
                match chunk.get(..read) {
                    Some([]) | None => return Ok(()),
                    Some(bytes) => hasher.update(bytes),
                }
            }
        };
        read_back().map_err(IngestError::io("read", &self.path))?;
        let blob = BlobRef { sha256: hasher.finish(), bytes: self.bytes };
        Ok((Shard { blob, rows: self.rows }, self.path))
    }
}
