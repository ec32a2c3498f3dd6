//! The files of data that browsers send for new jobs, until the jobs are submitted.
//!
//! ```text
//!   begin --> files, several at once --> prepared, by one at a time --> blobs and the job; the folder goes
//!                                    '-> looked at, in the same turns --> a job file; the files stay
//!     '-- abort, or nobody asks for IDLE; a start of the server --> the folder goes
//! ```
//!
//! Each upload has a folder in the data folder: `incoming/` has files that are on their way, `data/` those that have come, under
//! the names that the job file has for them, `shards/` what is made of them. It goes when the last that uses the upload drops it.

mod bounds;
mod incoming;
mod name;

pub(crate) use bounds::{ANY_BLOB, ReadingBounds};
pub(crate) use incoming::IncomingFile;
pub(crate) use name::path_below;

use crate::{
    data_folder::new_token,
    data_urls::DataUrl,
    prepare_job::{DraftedJob, ReaderLimits},
    storage_watch::StorageWatch,
};
use parking_lot::Mutex;
use sojourn_files::if_exists;
use sojourn_protocol::{
    digest::Digest,
    error::{ApiError, ErrorKind},
    ids::JobId,
    text::plain_line,
};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{runtime::Handle, sync::Semaphore};

/// Bytes of all files together that wait for their jobs, where the operator says nothing else.
pub const DEFAULT_MAX_DATA_UPLOAD_BYTES: u64 = 64 << 30;
/// Uploads at a time.
const MAX_UPLOADS: usize = 16;
/// Files of one upload.
const MAX_FILES: usize = 100_000;
/// An upload that nobody asks for is removed after this time, unless its job is being made.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// Characters of a name that a refusal repeats.
const MAX_SHOWN: usize = 200;

fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorKind::Invalid, message)
}

/// The operator's limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DataLimits {
    /// Bytes of all files together, and of what one job's data becomes.
    pub(crate) uploads: u64,
    /// Bytes of memory that reading one job's data may take.
    pub(crate) memory: u64,
}

/// All uploads. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct DataUploads {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    limits: DataLimits,
    urls: Arc<[DataUrl]>,
    storage: StorageWatch,
    /// By the hash of the secret that its browser has.
    known: Mutex<BTreeMap<Digest, Arc<DataUpload>>>,
    /// Names of folders.
    begun: AtomicU64,
    held: Arc<AtomicU64>,
    /// Data is prepared for one job at a time.
    turn: Semaphore,
}

/// The stage of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UploadStage {
    /// Files come.
    Receiving,
    /// The data of another job is being prepared.
    Waiting,
    /// The data is being read: bytes, and of how many.
    Reading(u64, u64),
    /// Shards go into the store: bytes, and of how many.
    Storing(u64, u64),
    /// Why there is no job. Files may be sent anew, and the job file again.
    Refused(Vec<String>),
    /// A job file for the files. More may be sent, and the job file.
    Drafted(Arc<DraftedJob>),
    /// The job.
    Submitted(JobId),
}

impl UploadStage {
    /// May more files come?
    const fn takes_files(&self) -> bool {
        matches!(self, Self::Receiving | Self::Refused(_) | Self::Drafted(_))
    }
}

/// The files for one job.
#[derive(Debug)]
pub(crate) struct DataUpload {
    folder: PathBuf,
    stage: Mutex<UploadStage>,
    asked: Mutex<Instant>,
    files: Mutex<BTreeMap<PathBuf, u64>>,
    incoming: AtomicU64,
    is_aborted: AtomicBool,
    held: Arc<AtomicU64>,
}

impl DataUploads {
    /// Uploads in a folder, of which an earlier server's are removed. Their jobs may have data at `urls`.
    pub(crate) fn open(
        folder: PathBuf,
        limits: DataLimits,
        urls: Vec<DataUrl>,
        storage: StorageWatch,
    ) -> io::Result<Self> {
        if_exists(fs::remove_dir_all(&folder))?;
        let shared = Shared {
            folder,
            limits,
            urls: urls.into(),
            storage,
            known: Mutex::default(),
            begun: AtomicU64::default(),
            held: Arc::default(),
            turn: Semaphore::new(1),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Where jobs may have data fetched from.
    pub(crate) fn urls(&self) -> Arc<[DataUrl]> {
        Arc::clone(&self.shared.urls)
    }

    /// Bytes of all files together, and of what one job's data becomes.
    pub(crate) fn limit(&self) -> u64 {
        self.shared.limits.uploads
    }

    /// The limits of the process that reads an upload's data.
    pub(crate) fn reader_limits(&self, upload: &DataUpload) -> ReaderLimits {
        let DataLimits { uploads, memory } = self.shared.limits;
        // Files that are fetched count as what may be sent.
        let fetched = if self.shared.urls.is_empty() { 0 } else { uploads };
        ReaderLimits::for_data(upload.bytes().saturating_add(fetched), uploads, memory)
    }

    pub(crate) fn storage(&self) -> &StorageWatch {
        &self.shared.storage
    }

    /// Begins an upload of so many bytes: the secret that names it. What is more than there is room for is refused before it is sent.
    pub(crate) fn begin(&self, bytes: u64) -> Result<String, ApiError> {
        self.sweep(Instant::now());
        self.hold(bytes)?;
        self.shared.held.fetch_sub(bytes, Ordering::Relaxed);
        let failed = |error: &dyn std::error::Error| {
            tracing::error!(error = %error, "no upload of data can begin");
            ApiError::new(ErrorKind::Internal, "the server failed; its log says why")
        };
        let secret = new_token().map_err(|error| failed(&error))?;
        let mut known = self.shared.known.lock();
        if known.len() >= MAX_UPLOADS {
            let message = format!("{MAX_UPLOADS} uploads of data wait for their jobs already");
            return Err(ApiError::new(ErrorKind::TooManyRequests, message));
        }
        let number = self.shared.begun.fetch_add(1, Ordering::Relaxed);
        let upload = DataUpload {
            folder: self.shared.folder.join(number.to_string()),
            stage: Mutex::new(UploadStage::Receiving),
            asked: Mutex::new(Instant::now()),
            files: Mutex::default(),
            incoming: AtomicU64::default(),
            is_aborted: AtomicBool::default(),
            held: Arc::clone(&self.shared.held),
        };
        for folder in [upload.incoming(), upload.data(), upload.shards()] {
            fs::create_dir_all(folder).map_err(|error| failed(&error))?;
        }
        known.insert(Digest::of(secret.as_bytes()), Arc::new(upload));
        Ok(secret)
    }

    /// The upload with this secret.
    pub(crate) fn get(&self, secret: &str) -> Result<Arc<DataUpload>, ApiError> {
        let known = self.shared.known.lock();
        let upload = known.get(&Digest::of(secret.as_bytes())).ok_or_else(|| {
            ApiError::new(ErrorKind::NotFound, "there is no such upload; choose the files again")
        })?;
        *upload.asked.lock() = Instant::now();
        Ok(Arc::clone(upload))
    }

    /// Ends an upload. What it has sent goes, at once or when the last that reads it has ended.
    pub(crate) fn abort(&self, secret: &str) {
        let upload = self.shared.known.lock().remove(&Digest::of(secret.as_bytes()));
        if let Some(upload) = upload {
            upload.is_aborted.store(true, Ordering::Relaxed);
        }
    }

    /// Ends all uploads, and the reading of their data.
    pub(crate) fn abort_all(&self) {
        for upload in std::mem::take(&mut *self.shared.known.lock()).into_values() {
            upload.is_aborted.store(true, Ordering::Relaxed);
        }
    }

    /// Removes what nobody has asked for in a while.
    pub(crate) fn sweep(&self, now: Instant) {
        self.shared.known.lock().retain(|_, upload| {
            let is_idle = now.saturating_duration_since(*upload.asked.lock()) > IDLE;
            let is_kept = !is_idle || upload.is_being_prepared();
            if !is_kept {
                upload.is_aborted.store(true, Ordering::Relaxed);
            }
            is_kept
        });
    }

    /// Waits until no other job's data is being prepared.
    pub(crate) async fn turn(&self) -> Option<impl Drop> {
        // It is never closed.
        self.shared.turn.acquire().await.ok()
    }

    /// Begins a file of an upload under its name in the job file. Blocks.
    pub(crate) fn begin_file(
        &self,
        upload: Arc<DataUpload>,
        name: &str,
    ) -> Result<IncomingFile, ApiError> {
        let path = path_below(name)
            .map_err(|why| invalid(format!("the name `{}` {why}", plain_line(name, MAX_SHOWN))))?;
        let files = upload.files.lock().len();
        if files >= MAX_FILES {
            return Err(invalid(format!("at most {MAX_FILES} files can be sent for a job")));
        }
        IncomingFile::begin(self.clone(), upload, path)
    }

    /// Counts bytes that are about to be written.
    fn hold(&self, bytes: u64) -> Result<(), ApiError> {
        let Shared { limits: DataLimits { uploads: limit, .. }, held, storage, .. } = &*self.shared;
        storage.admit(ANY_BLOB, crate::storage_watch::Coming { spooled: bytes, stored: 0 })?;
        let add = |held: u64| held.checked_add(bytes).filter(|all| all <= limit);
        match held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(_) => Ok(()),
            Err(_) => {
                let message = format!(
                    "files of at most {limit} bytes together are taken here (`--max-data-uploads`): `sojourn submit` sends \
                     larger ones"
                );
                Err(ApiError::new(ErrorKind::TooLarge, message))
            }
        }
    }

    /// The bytes of all files that wait.
    #[cfg(test)]
    fn held(&self) -> u64 {
        self.shared.held.load(Ordering::Relaxed)
    }
}

fn failed(error: &io::Error) -> ApiError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ApiError::new(ErrorKind::StorageFull, "the server's disk is full")
        }
        io::ErrorKind::NotADirectory
        | io::ErrorKind::AlreadyExists
        | io::ErrorKind::IsADirectory => invalid("one name is that of a file and of a folder"),
        _ => {
            tracing::error!(%error, "a file of data can't be written");
            ApiError::new(ErrorKind::Internal, "the server failed; its log says why")
        }
    }
}

impl DataUpload {
    fn incoming(&self) -> PathBuf {
        self.folder.join("incoming")
    }

    /// The folder of the files that have come.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The folder of the shards that are made of them.
    pub(crate) fn shards(&self) -> PathBuf {
        self.folder.join("shards")
    }

    /// Bytes of the files that have come.
    fn bytes(&self) -> u64 {
        self.files.lock().values().sum()
    }

    /// The upload's present stage.
    pub(crate) fn stage(&self) -> UploadStage {
        self.stage.lock().clone()
    }

    pub(crate) fn set_stage(&self, stage: UploadStage) {
        *self.stage.lock() = stage;
    }

    /// Has somebody ended it?
    pub(crate) fn is_aborted(&self) -> bool {
        self.is_aborted.load(Ordering::Relaxed)
    }

    fn is_being_prepared(&self) -> bool {
        use UploadStage::{Reading, Storing, Waiting};
        matches!(self.stage(), Waiting | Reading(..) | Storing(..))
    }

    /// From now on its job, or a job file, is made, by one alone.
    pub(crate) fn begin_job(&self) -> Result<(), ApiError> {
        let mut stage = self.stage.lock();
        match *stage {
            UploadStage::Receiving | UploadStage::Refused(_) | UploadStage::Drafted(_) => {
                *stage = UploadStage::Waiting;
                Ok(())
            }
            UploadStage::Waiting | UploadStage::Reading(..) | UploadStage::Storing(..) => {
                Err(ApiError::new(ErrorKind::Conflict, "its job is being made already"))
            }
            UploadStage::Submitted(job) => {
                Err(ApiError::new(ErrorKind::Conflict, format!("it is job {job} already")))
            }
        }
    }

    /// Removes its files, which nobody needs any more. Blocks.
    pub(crate) fn clear(&self) {
        let bytes: u64 = std::mem::take(&mut *self.files.lock()).into_values().sum();
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        remove(&self.folder);
    }
}

impl Drop for DataUpload {
    fn drop(&mut self) {
        let bytes: u64 = self.files.lock().values().sum();
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        let folder = std::mem::take(&mut self.folder);
        match Handle::try_current() {
            // Many files take a while.
            Ok(runtime) => drop(runtime.spawn_blocking(move || remove(&folder))),
            Err(_) => remove(&folder),
        }
    }
}

fn remove(folder: &Path) {
    if let Err(error) = if_exists(fs::remove_dir_all(folder)) {
        tracing::warn!(folder = %folder.display(), %error, "files of data stay until the next start");
    }
}

#[cfg(test)]
mod tests;
