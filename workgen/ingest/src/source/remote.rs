//! What lies elsewhere, copied once to a file without a name.

use super::{SourceFile, http, s3};
use crate::{
    error::{FetchError, IngestError},
    progress::Progress,
};
use reqwest::Url;
use std::{
    fs::{self, File},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
    time::Duration,
};

const CHUNK: usize = 256 << 10;
/// How often progress is told, in bytes.
const TELL_EVERY: u64 = 4 << 20;

/// Something that isn't on this machine.
pub(super) struct Remote {
    url: Url,
    shown: String,
}

impl Remote {
    /// Reads the URL that `key` of the job names.
    pub(super) fn parse(key: &'static str, text: &str) -> Result<Self, IngestError> {
        let mut url = Url::parse(text).map_err(|error| IngestError::Fetch {
            url: format!("{key} = {text}"),
            source: FetchError::BadUrl(error.to_string()),
        })?;
        let whole = url.clone();
        // A name, a password and a signature are nobody's business in a log.
        let _ = url.set_password(None);
        let _ = url.set_username("");
        url.set_query(None);
        url.set_fragment(None);
        Ok(Self { url: whole, shown: url.to_string() })
    }

    /// Copies it. Blocks; inside an async runtime it must be called where blocking is allowed.
    pub(super) fn fetch(
        &self,
        spool: &Path,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<SourceFile, IngestError> {
        let mut copy = Spooled::new(spool, &self.shown, progress)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(IngestError::io("start a download to", spool))?;
        let done = runtime.block_on(async {
            match self.url.scheme() {
                "s3" => {
                    let variables = std::env::vars_os();
                    let variables = variables.filter_map(|(name, value)| {
                        name.into_string().ok().zip(value.into_string().ok())
                    });
                    s3::fetch(&self.url, variables, &mut copy, progress).await
                }
                _ => http::fetch(&self.url, Duration::from_millis(500), &mut copy, progress).await,
            }
        });
        done.map_err(|error| match error {
            Failed::Fetch(source) => IngestError::Fetch { url: self.shown.clone(), source },
            Failed::Disk(source) => IngestError::io("write a copy in", spool)(source),
        })?;
        copy.finish(progress)
    }
}

/// Why there is no copy.
#[derive(Debug)]
pub(super) enum Failed {
    Fetch(FetchError),
    Disk(io::Error),
}

impl From<FetchError> for Failed {
    fn from(error: FetchError) -> Self {
        Failed::Fetch(error)
    }
}

/// A copy that is being made in the spool folder.
pub(super) struct Spooled {
    file: File,
    folder: PathBuf,
    from: String,
    bytes: u64,
    told: u64,
    of: Option<u64>,
}

impl Spooled {
    /// An empty one in the folder `spool`, of what is called `from`.
    pub(super) fn new(
        spool: &Path,
        from: &str,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Self, IngestError> {
        let failed = || IngestError::io("make a temporary file in", spool);
        fs::create_dir_all(spool).map_err(failed())?;
        let file = tempfile::tempfile_in(spool).map_err(failed())?;
        progress(Progress::Loading { from, bytes: 0, of: None });
        let (folder, from) = (spool.to_owned(), from.to_owned());
        Ok(Self { file, folder, from, bytes: 0, told: 0, of: None })
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
    ) -> Result<(), Failed> {
        self.file.write_all(bytes).map_err(Failed::Disk)?;
        self.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if self.bytes - self.told >= TELL_EVERY {
            self.told = self.bytes;
            progress(Progress::Loading { from: &self.from, bytes: self.bytes, of: self.of });
        }
        Ok(())
    }

    /// Forgets what has come.
    pub(super) fn restart(&mut self) -> Result<(), Failed> {
        (self.bytes, self.told) = (0, 0);
        self.file.rewind().and_then(|()| self.file.set_len(0)).map_err(Failed::Disk)
    }

    /// Takes all that `from` has; `failed` says what an error of it means.
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
            self.push(bytes, progress).map_err(|error| match error {
                Failed::Disk(error) => IngestError::io("write a copy in", &self.folder)(error),
                Failed::Fetch(source) => IngestError::Fetch { url: self.from.clone(), source },
            })?;
        }
    }

    /// The copy as a file to read.
    pub(super) fn finish(
        self,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<SourceFile, IngestError> {
        let (from, bytes) = (self.from.as_str(), self.bytes);
        progress(Progress::Loaded { from, bytes, folder: &self.folder });
        SourceFile::copied(self.file, from)
    }
}
