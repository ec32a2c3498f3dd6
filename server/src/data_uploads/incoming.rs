//! A file that is on its way.

use super::{ANY_BLOB, DataUpload, DataUploads, failed};
use crate::storage_watch::{Coming, LOOK_INTERVAL};
use futures::future::{Either, select};
use sojourn_protocol::{
    error::{ApiError, ErrorKind},
    quantity::to_u64,
};
use std::{
    fs::{self, File},
    io::Write as _,
    path::PathBuf,
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

/// A file that is on its way. One that doesn't come whole is removed.
#[derive(Debug)]
pub(crate) struct IncomingFile {
    uploads: DataUploads,
    upload: Arc<DataUpload>,
    file: File,
    at: PathBuf,
    path: PathBuf,
    bytes: u64,
    has_come: bool,
}

impl IncomingFile {
    /// Begins one that is to get this path below the data of its upload. Blocks.
    pub(super) fn begin(
        uploads: DataUploads,
        upload: Arc<DataUpload>,
        path: PathBuf,
    ) -> Result<Self, ApiError> {
        let number = upload.incoming.fetch_add(1, Ordering::Relaxed);
        let at = upload.incoming().join(number.to_string());
        let file = File::create_new(&at).map_err(|error| failed(&error))?;
        Ok(Self { uploads, upload, file, at, path, bytes: 0, has_come: false })
    }

    /// Waits for its next bytes. While none come, it is asked by time whether they are still wanted, once for each look at the disk:
    /// what was sent goes when it was ended, or when the disk has no room.
    pub(crate) async fn wait_for<T>(&self, next: impl Future<Output = T>) -> Result<T, ApiError> {
        let refused = async {
            loop {
                tokio::time::sleep(LOOK_INTERVAL).await;
                if let Err(refused) = self.may_go_on() {
                    return refused;
                }
            }
        };
        match select(pin!(next), pin!(refused)).await {
            Either::Left((next, _)) => Ok(next),
            Either::Right((refused, _)) => Err(refused),
        }
    }

    fn may_go_on(&self) -> Result<(), ApiError> {
        self.is_wanted()?;
        self.uploads.storage().admit(ANY_BLOB, Coming { spooled: 0, stored: 0 })
    }

    fn is_wanted(&self) -> Result<(), ApiError> {
        match self.upload.is_aborted() {
            true => Err(ApiError::new(ErrorKind::Conflict, "the upload was ended")),
            false => Ok(()),
        }
    }

    /// Writes more of it. Blocks.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), ApiError> {
        self.is_wanted()?;
        *self.upload.asked.lock() = Instant::now();
        self.uploads.hold(to_u64(bytes.len()))?;
        self.bytes = self.bytes.saturating_add(to_u64(bytes.len()));
        self.file.write_all(bytes).map_err(|error| failed(&error))
    }

    /// Gives it its name, in place of one that had that before. Blocks.
    pub(crate) fn finish(mut self) -> Result<(), ApiError> {
        let stage = self.upload.stage.lock();
        if !stage.takes_files() {
            return Err(ApiError::new(ErrorKind::Conflict, "its job is being made already"));
        }
        let path = self.upload.data().join(&self.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| failed(&error))?;
        }
        fs::rename(&self.at, &path).map_err(|error| failed(&error))?;
        drop(stage);
        let former = self.upload.files.lock().insert(self.path.clone(), self.bytes);
        self.upload.held.fetch_sub(former.unwrap_or(0), Ordering::Relaxed);
        self.has_come = true;
        Ok(())
    }
}

impl Drop for IncomingFile {
    fn drop(&mut self) {
        if !self.has_come {
            self.upload.held.fetch_sub(self.bytes, Ordering::Relaxed);
            let _ = fs::remove_file(&self.at);
        }
    }
}
