//! One file of bytes, read in streams, as often as asked, and unpacked on the way.

use super::decoded::{NotInEncoding, decoded};
use crate::{
    bounds::{self, SharedBounds, Step},
    error::{IngestError, Place, Problem},
};
use sojourn_protocol::{
    quantity::{SaturatingFrom as _, to_u64},
    spec::TextEncoding,
};
use std::{
    fs::{self, File},
    io::{self, BufReader, Read, Seek, SeekFrom},
    os::unix::fs::FileExt,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

const READ_BUFFER: usize = 256 << 10;
/// Bytes by which formats are recognised.
const START: usize = 512;

/// One file, here or copied here.
#[derive(Debug, Clone)]
pub(crate) struct SourceFile {
    shown: String,
    location: Location,
    bytes: u64,
    packing: Packing,
    /// The encoding of its text, where it is text.
    encoding: TextEncoding,
    bounds: SharedBounds,
}

#[derive(Debug, Clone)]
enum Location {
    /// Opened whenever it is read: a folder may have more parts than a process may have files open.
    Path(PathBuf),
    /// A file without a name, gone with its last handle.
    Copy(Arc<File>),
}

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    None,
    Gzip,
    Zstd,
}

impl Packing {
    fn of(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, ..] => Packing::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Zstd,
            _ => Packing::None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Packing::None => "stored",
            Packing::Gzip => "gzip",
            Packing::Zstd => "zstd",
        }
    }
}

impl SourceFile {
    /// The file at `path`, which the job calls `shown`.
    pub(crate) fn at(
        path: PathBuf,
        shown: &str,
        bounds: &SharedBounds,
    ) -> Result<Self, IngestError> {
        // A pipe would be waited for, and a device may never end.
        let metadata = fs::metadata(&path).map_err(IngestError::io("look at", &path))?;
        if !metadata.is_file() {
            return Err(Place::of(shown).refuse(Problem::NoFile));
        }
        Self::new(Location::Path(path), shown, bounds)
    }

    /// A local copy of the file that the job calls `shown`.
    pub(crate) fn copied(
        file: File,
        shown: &str,
        bounds: &SharedBounds,
    ) -> Result<Self, IngestError> {
        Self::new(Location::Copy(Arc::new(file)), shown, bounds)
    }

    fn new(location: Location, shown: &str, bounds: &SharedBounds) -> Result<Self, IngestError> {
        let (shown, bounds) = (shown.to_owned(), SharedBounds::clone(bounds));
        let (packing, encoding) = (Packing::None, TextEncoding::default());
        let mut file = Self { shown, location, bytes: 0, packing, encoding, bounds };
        let mut raw = file.raw()?;
        file.bytes = raw.file.metadata().map_err(|error| file.failed(error))?.len();
        let mut start = Vec::new();
        raw.by_ref().take(4).read_to_end(&mut start).map_err(|error| file.failed(error))?;
        file.packing = Packing::of(&start);
        Ok(file)
    }

    /// The file's name, as the job writes it.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The file's size in bytes, compressed or not.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The bounds of its reading.
    pub(crate) const fn bounds(&self) -> &SharedBounds {
        &self.bounds
    }

    pub(crate) fn is_packed(&self) -> bool {
        self.packing != Packing::None
    }

    /// The file's bytes without decompression.
    pub(crate) fn raw(&self) -> Result<Raw, IngestError> {
        let file = match &self.location {
            Location::Copy(file) => Arc::clone(file),
            Location::Path(path) => {
                Arc::new(File::open(path).map_err(IngestError::io("open", path))?)
            }
        };
        let bounds = SharedBounds::clone(&self.bounds);
        Ok(Raw { file, at: 0, read: Arc::default(), bounds })
    }

    /// The same file, whose text is in this encoding.
    pub(crate) fn in_encoding(self, encoding: TextEncoding) -> Self {
        Self { encoding, ..self }
    }

    /// The encoding of its text, as it was said.
    pub(crate) const fn encoding(&self) -> TextEncoding {
        self.encoding
    }

    /// The file's text in UTF-8, unpacked.
    pub(crate) fn text(&self) -> Result<Unpacked, IngestError> {
        let Unpacked { stream, read } = self.read()?;
        let stream = decoded(stream, self.encoding).map_err(|error| self.failed(error))?;
        Ok(Unpacked { stream, read })
    }

    /// The file's bytes, unpacked.
    pub(crate) fn read(&self) -> Result<Unpacked, IngestError> {
        self.read_from(0)
    }

    /// The file's bytes, unpacked, without the first `skip`.
    pub(crate) fn read_from(&self, skip: u64) -> Result<Unpacked, IngestError> {
        let mut raw = self.raw()?;
        let read = Arc::clone(&raw.read);
        let stream: Box<dyn Read + Send> = match self.packing {
            Packing::None => {
                raw.at = skip;
                return Ok(Unpacked { stream: Box::new(raw), read });
            }
            Packing::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(
                BufReader::with_capacity(READ_BUFFER, raw),
            )),
            Packing::Zstd => {
                let buffered = BufReader::with_capacity(READ_BUFFER, raw);
                let decoder = zstd::stream::read::Decoder::with_buffer(buffered);
                Box::new(decoder.map_err(|error| self.failed(error))?)
            }
        };
        let bounds = SharedBounds::clone(&self.bounds);
        let mut stream: Box<dyn Read + Send> = Box::new(Counted { stream, bounds });
        let mut skipped = stream.by_ref().take(skip);
        io::copy(&mut skipped, &mut io::sink()).map_err(|error| self.failed(error))?;
        Ok(Unpacked { stream, read })
    }

    /// The file's first unpacked bytes, by which formats are recognised.
    pub(crate) fn start(&self) -> Result<Vec<u8>, IngestError> {
        let mut start = Vec::new();
        let limit = u64::saturating_from(START);
        self.read()?.take(limit).read_to_end(&mut start).map_err(|error| self.failed(error))?;
        Ok(start)
    }

    /// The error of a failed read: the disk's fault, or the data's.
    pub(crate) fn failed(&self, error: io::Error) -> IngestError {
        let error = match bounds::refusal(error) {
            Ok(refused) => return refused,
            Err(error) => error,
        };
        if let (Some(_), Location::Path(path)) = (error.raw_os_error(), &self.location) {
            return IngestError::io("read", path)(error);
        }
        if let Some(NotInEncoding(encoding)) =
            error.get_ref().and_then(|error| error.downcast_ref())
        {
            return self.refuse(Problem::NotInEncoding(encoding.text()));
        }
        let how = self.packing.name();
        self.refuse(Problem::Damaged { how, reason: error.to_string() })
    }

    /// A problem of the whole file.
    pub(crate) fn refuse(&self, problem: Problem) -> IngestError {
        Place::of(&self.shown).refuse(problem)
    }
}

/// A file's bytes without decompression. Each handle has its own position.
#[derive(Debug)]
pub(crate) struct Raw {
    file: Arc<File>,
    at: u64,
    read: Arc<AtomicU64>,
    bounds: SharedBounds,
}

impl Raw {
    /// Another handle of the same file, at another position.
    pub(crate) fn at(&self, start: u64) -> Self {
        let (file, read) = (Arc::clone(&self.file), Arc::clone(&self.read));
        Self { file, at: start, read, bounds: SharedBounds::clone(&self.bounds) }
    }
}

impl Read for Raw {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.at)?;
        let moved = to_u64(count);
        self.at = self.at.saturating_add(moved);
        self.read.fetch_add(moved, Ordering::Relaxed);
        self.bounds.admit(Step::Read(moved)).map_err(io::Error::other)?;
        Ok(count)
    }
}

impl Seek for Raw {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        self.at = target.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

/// A decoder whose bytes are counted.
pub(crate) struct Counted<R> {
    pub(crate) stream: R,
    pub(crate) bounds: SharedBounds,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        bounds::admit_unpacked(&self.bounds, to_u64(count))?;
        Ok(count)
    }
}

/// A file's bytes, unpacked.
pub(crate) struct Unpacked {
    stream: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
}

impl Unpacked {
    /// How many bytes of the file have been read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

impl Read for Unpacked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }
}
