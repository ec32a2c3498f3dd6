//! Temporary copies of sources, in files without a name that end with the process.

use super::file::SourceFile;
use crate::{
    bounds::{Refusal, SharedBounds, Step},
    error::{FetchError, IngestError},
    progress::Progress,
};
use sojourn_protocol::quantity::to_u64;
use std::{
    fs::{self, File},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
};

const CHUNK: usize = 256 << 10;
/// Progress is reported once in so many bytes.
const PROGRESS_INTERVAL: u64 = 4 << 20;

/// Why a copy failed.
#[derive(Debug)]
pub(super) enum CopyError {
    Fetch(FetchError),
    Disk(io::Error),
    Refused(Refusal),
}

impl From<FetchError> for CopyError {
    fn from(error: FetchError) -> Self {
        CopyError::Fetch(error)
    }
}

impl From<Refusal> for CopyError {
    fn from(refusal: Refusal) -> Self {
        CopyError::Refused(refusal)
    }
}

impl CopyError {
    /// The error of a source that is called `from`, whose copy is made in this folder.
    pub(super) fn of_source(self, from: &str, folder: &Path) -> IngestError {
        match self {
            CopyError::Disk(error) => IngestError::io("write a copy in", folder)(error),
            CopyError::Fetch(source) => IngestError::Fetch { url: from.to_owned(), source },
            CopyError::Refused(refusal) => IngestError::Refused(refusal),
        }
    }
}

/// A copy that is being made in the spool folder.
pub(super) struct TemporaryCopy {
    file: File,
    folder: PathBuf,
    from: String,
    bytes: u64,
    reported: u64,
    of: Option<u64>,
    bounds: SharedBounds,
}

impl TemporaryCopy {
    /// An empty copy in the folder `spool`, of the source that is called `from`.
    pub(super) fn new(
        spool: &Path,
        from: &str,
        bounds: &SharedBounds,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Self, IngestError> {
        let failed = || IngestError::io("make a temporary file in", spool);
        fs::create_dir_all(spool).map_err(failed())?;
        let file = tempfile::tempfile_in(spool).map_err(failed())?;
        progress(Progress::Loading { from, bytes: 0, of: None });
        let (folder, from) = (spool.to_owned(), from.to_owned());
        let bounds = SharedBounds::clone(bounds);
        Ok(Self { file, folder, from, bytes: 0, reported: 0, of: None, bounds })
    }

    pub(super) const fn bounds(&self) -> &SharedBounds {
        &self.bounds
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many bytes there will be in all.
    pub(super) fn expect(&mut self, bytes: Option<u64>) {
        self.of = bytes;
    }

    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), CopyError> {
        self.bounds.admit(Step::Written(to_u64(bytes.len())))?;
        self.file.write_all(bytes).map_err(CopyError::Disk)?;
        self.bytes += to_u64(bytes.len());
        if self.bytes - self.reported >= PROGRESS_INTERVAL {
            self.reported = self.bytes;
            progress(Progress::Loading { from: &self.from, bytes: self.bytes, of: self.of });
        }
        Ok(())
    }

    /// Begins anew, with an empty copy.
    pub(super) fn restart(&mut self) -> Result<(), CopyError> {
        (self.bytes, self.reported) = (0, 0);
        self.file.rewind().and_then(|()| self.file.set_len(0)).map_err(CopyError::Disk)
    }

    /// Copies all bytes of `from`; `failed` turns its errors into those of the source.
    pub(super) fn fill(
        &mut self,
        from: &mut dyn Read,
        progress: &mut dyn FnMut(Progress<'_>),
        failed: impl Fn(io::Error) -> IngestError,
    ) -> Result<(), IngestError> {
        let mut chunk = vec![0; CHUNK];
        loop {
            let count = from.read(&mut chunk).map_err(&failed)?;
            let Some(bytes) = chunk.get(..count).filter(|bytes| !bytes.is_empty()) else {
                return Ok(());
            };
            let pushed = self.push(bytes, progress);
            pushed.map_err(|error| error.of_source(&self.from, &self.folder))?;
        }
    }

    /// The copy as a file to read.
    pub(super) fn finish(
        self,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<SourceFile, IngestError> {
        let (from, bytes) = (self.from.as_str(), self.bytes);
        progress(Progress::Loaded { from, bytes, folder: &self.folder });
        SourceFile::copied(self.file, from, &self.bounds)
    }
}
