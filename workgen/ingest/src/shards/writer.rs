//! The writer of one shard's file: a buffer for the features and one for the labels.

use super::{RowLayout, Target};
use crate::{
    bounds::{SharedBounds, Step},
    error::IngestError,
    table::Element,
};
use sojourn_codec::{Dtype, Layout, TensorSpec};
use sojourn_protocol::{
    digest::{BlobRef, Hasher},
    manifest::{Labels, Shard},
    quantity::{to_u64, to_usize},
};
use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// Bytes that are read back, or written past a buffer, at once.
const CHUNK: usize = 64 << 10;

/// One shard's file.
pub(super) struct ShardWriter {
    path: PathBuf,
    rows: u32,
    element: Element,
    bytes: u64,
    hasher: Hasher,
    x: Section,
    y: Section,
    y_start: u64,
    bounds: SharedBounds,
}

/// A section of the file, which is written from its start to its end.
struct Section {
    /// Allocated once with its maximal size.
    buffer: Vec<u8>,
    /// Where the buffer's first byte belongs.
    at: u64,
}

impl Section {
    /// The section of the tensor `name`, with a buffer of at most `most` bytes.
    fn new(layout: &Layout, name: &str, most: usize) -> Self {
        let range = layout.range(name).unwrap_or_default();
        let bytes = to_usize(range.end - range.start);
        Self { buffer: Vec::with_capacity(most.min(bytes)), at: range.start }
    }

    /// Has the buffer room for so many bytes?
    fn takes(&self, bytes: usize) -> bool {
        bytes <= self.buffer.capacity() - self.buffer.len()
    }

    /// Empties the buffer into the file.
    fn flush(&mut self, file: &mut File) -> io::Result<()> {
        file.seek(SeekFrom::Start(self.at))?;
        file.write_all(&self.buffer)?;
        self.at += to_u64(self.buffer.len());
        self.buffer.clear();
        Ok(())
    }
}

impl ShardWriter {
    /// Makes the file, with two buffers of at most `buffer` bytes each; that of labels has room for
    /// one at least.
    pub(super) fn create(
        path: PathBuf,
        rows: u32,
        element: Element,
        layout: RowLayout<'_>,
        (buffer, bounds): (usize, &SharedBounds),
    ) -> Result<Self, IngestError> {
        let count = u64::from(rows);
        let numbers = match element {
            Element::Byte => Dtype::U8,
            Element::Single => Dtype::F32,
        };
        let labels = match layout.labels {
            Labels::Classes(_) => Dtype::I64,
            Labels::Number | Labels::None => Dtype::F32,
        };
        let layout = Layout::new(vec![
            TensorSpec::new("x", numbers, [count, to_u64(layout.features)]),
            TensorSpec::new("y", labels, [count]),
        ])?;
        bounds.admit(Step::Written(to_u64(layout.header().len())))?;
        let mut file = File::create_new(&path).map_err(IngestError::io("create", &path))?;
        file.write_all(layout.header()).map_err(IngestError::io("write", &path))?;
        let mut hasher = Hasher::default();
        hasher.update(layout.header());
        let x = Section::new(&layout, "x", buffer);
        let y = Section::new(&layout, "y", buffer.max(Target::MAX_LABEL_BYTES));
        let y_start = y.at;
        let (bytes, bounds) = (layout.file_bytes(), SharedBounds::clone(bounds));
        Ok(Self { path, rows, element, bytes, hasher, x, y, y_start, bounds })
    }

    pub(super) fn push(&mut self, row: &[f32], target: Target) -> Result<(), IngestError> {
        let bytes = self.element.bytes(row);
        let is_due = !self.x.takes(bytes) && !self.x.buffer.is_empty();
        if is_due || !self.y.takes(target.bytes()) {
            self.flush()?;
        }
        if self.x.takes(bytes) {
            self.element.append(row, &mut self.x.buffer);
        } else {
            self.write_through(row)?;
        }
        match target {
            Target::Class(index) => self.y.buffer.extend(index.to_le_bytes()),
            Target::Number(number) => self.y.buffer.extend(number.to_le_bytes()),
        }
        Ok(())
    }

    /// The memory of all buffers, in bytes.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.x.buffer.capacity() + self.y.buffer.capacity()
    }

    /// Writes both buffers.
    fn flush(&mut self) -> Result<(), IngestError> {
        let buffered = self.x.buffer.len().saturating_add(self.y.buffer.len());
        self.bounds.admit(Step::Written(to_u64(buffered)))?;
        self.hasher.update(&self.x.buffer);
        let write = |mut file: File| {
            self.x.flush(&mut file)?;
            self.y.flush(&mut file)
        };
        open(&self.path).and_then(write).map_err(IngestError::io("write", &self.path))
    }

    /// Writes a row that is larger than its buffer, which must be empty.
    fn write_through(&mut self, row: &[f32]) -> Result<(), IngestError> {
        self.bounds.admit(Step::Written(to_u64(self.element.bytes(row))))?;
        let mut chunk = Section { buffer: Vec::with_capacity(CHUNK), at: self.x.at };
        let write = |mut file: File| {
            for numbers in row.chunks(CHUNK / size_of::<f32>()) {
                self.element.append(numbers, &mut chunk.buffer);
                self.hasher.update(&chunk.buffer);
                chunk.flush(&mut file)?;
            }
            Ok(())
        };
        open(&self.path).and_then(write).map_err(IngestError::io("write", &self.path))?;
        self.x.at = chunk.at;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(Shard, PathBuf), IngestError> {
        self.flush()?;
        let mut hasher = std::mem::take(&mut self.hasher);
        let mut read_back = || -> io::Result<()> {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(self.y_start))?;
            let mut chunk = vec![0; CHUNK];
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

/// The file, opened whenever it is written to: there may be more shards than a process may have files
/// open.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

impl Element {
    /// Bytes of these numbers in the file.
    const fn bytes(self, numbers: &[f32]) -> usize {
        match self {
            Element::Byte => numbers.len(),
            Element::Single => size_of_val(numbers),
        }
    }

    /// Adds the bytes of these numbers, little end first.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an element is a byte where all numbers were bytes"
    )]
    fn append(self, numbers: &[f32], into: &mut Vec<u8>) {
        match self {
            Element::Byte => into.extend(numbers.iter().map(|number| *number as u8)),
            Element::Single => into.extend(numbers.iter().flat_map(|number| number.to_le_bytes())),
        }
    }
}
