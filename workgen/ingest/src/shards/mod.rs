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

mod columns;
mod publish;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use columns::ColumnShards;

use crate::{
    bounds::SharedBounds,
    error::IngestError,
    plan::{Part, Plan},
    table::Element,
};
use publish::publish;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    manifest::{Labels, Shard},
    quantity::to_u64,
};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};
use tempfile::TempDir;
use writer::ShardWriter;

/// The size of all write buffers together.
pub(crate) const BUFFER_BYTES: usize = 64 << 20;
/// No buffer gets more: larger ones save nothing.
const MAX_BUFFER: usize = 1 << 20;

/// A row's label.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    Class(i64),
    Number(f32),
}

impl Target {
    /// Bytes in the file, at most.
    const MAX_LABEL_BYTES: usize = size_of::<i64>();

    /// Bytes in the file.
    const fn bytes(self) -> usize {
        match self {
            Target::Class(index) => size_of_val(&index),
            Target::Number(number) => size_of_val(&number),
        }
    }
}

/// The layout of rows: numbers, elements and labels.
#[derive(Clone, Copy)]
pub(crate) struct RowLayout<'a> {
    /// Numbers in a row.
    pub(crate) features: usize,
    /// How the rows are kept that come from the file for a part.
    pub(crate) element_of: &'a dyn Fn(Part) -> Element,
    /// The kind of labels.
    pub(crate) labels: &'a Labels,
}

/// All shards of a plan, being written.
pub(crate) struct ShardSet {
    folder: TempDir,
    writers: Vec<ShardWriter>,
    blobs: Vec<(BlobRef, PathBuf)>,
}

impl ShardSet {
    /// Makes a file for each shard, in a temporary folder inside `out_dir`.
    pub(crate) fn create(
        out_dir: &Path,
        plan: &Plan,
        rows: RowLayout<'_>,
        bounds: &SharedBounds,
    ) -> Result<Self, IngestError> {
        Self::buffered(out_dir, plan, rows, (BUFFER_BYTES, bounds))
    }

    /// The same with write buffers of so many bytes together, within these bounds.
    fn buffered(
        out_dir: &Path,
        plan: &Plan,
        layout: RowLayout<'_>,
        (budget, bounds): (usize, &SharedBounds),
    ) -> Result<Self, IngestError> {
        fs::create_dir_all(out_dir).map_err(IngestError::io("create", out_dir))?;
        let folder = tempfile::Builder::new()
            .prefix(".ingest-")
            .tempdir_in(out_dir)
            .map_err(IngestError::io("create a folder in", out_dir))?;
        // Each writer has two buffers.
        let buffer = (budget / 2 / plan.shards().count().max(1)).min(MAX_BUFFER);
        let shards = plan.shards().zip(plan.sources()).enumerate();
        let writers = shards.map(|(index, ((_, rows), from))| {
            let path = folder.path().join(index.to_string());
            let element = (layout.element_of)(from);
            ShardWriter::create(path, rows, element, layout, (buffer, bounds))
        });
        let writers = writers.collect::<Result<Vec<_>, _>>()?;
        Ok(Self { folder, writers, blobs: Vec::new() })
    }

    /// Appends a row to a shard.
    pub(crate) fn push(
        &mut self,
        shard: usize,
        row: &[f32],
        target: Target,
    ) -> Result<(), IngestError> {
        match self.writers.get_mut(shard) {
            Some(writer) => writer.push(row, target),
            None => Ok(()),
        }
    }

    /// Adds a blob of other content, whole.
    pub(crate) fn add_blob(&mut self, bytes: &[u8]) -> Result<BlobRef, IngestError> {
        let sha256 = Digest::of(bytes);
        let path = self.folder.path().join(sha256.to_string());
        fs::write(&path, bytes).map_err(IngestError::io("write", &path))?;
        let blob = BlobRef { sha256, bytes: to_u64(bytes.len()) };
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
        let files = publish(&self.blobs, out_dir)?;
        Ok((shards, files))
    }
}
