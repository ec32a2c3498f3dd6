//! The spool folder: uploads by name, resumable across restarts, complete only when size and digest
//! are right. It never publishes anything.
//!
//! ```text
//! lease-12.<sha256>.<bytes>.part   bytes so far
//! lease-12.<sha256>.<bytes>.done   all of them, verified, synced
//! delta-12. ...                    a delta that lease 12's result is yet to be made from
//! ```

use crate::{
    disk::{Disk, RealDisk},
    error::UploadError,
    hashed_bytes::HashedBytes,
    slot::Slot,
    spool::Spool,
    upload::{Encoding, Upload},
    upload_name::UploadName,
    write_ahead_log::{SmallFile, WriteAheadLog},
};
use bytes::Bytes;
use parking_lot::Mutex;
use sojourn_files::if_exists;
use sojourn_protocol::{api::UploadState, digest::BlobRef, quantity::to_usize};
use std::{
    collections::BTreeMap,
    fmt, fs,
    io::{Read as _, Seek as _, SeekFrom},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

/// The uploads of one spool folder; cheap to clone. All calls block on the disk.
#[derive(Clone)]
pub struct Uploads {
    spool: Arc<Spool>,
    slots: Arc<Mutex<BTreeMap<UploadName, Arc<Mutex<Slot>>>>>,
}

impl fmt::Debug for Uploads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uploads").field("folder", &self.spool.folder).finish_non_exhaustive()
    }
}

impl Uploads {
    /// The uploads in a folder, which is made where it isn't there.
    ///
    /// # Errors
    /// Where the folder can't be made or read.
    pub fn open(folder: &Path) -> Result<Self, UploadError> {
        Self::with_disk(folder, Arc::new(RealDisk))
    }

    /// As [`Uploads::open`], writing through `disk`.
    ///
    /// # Errors
    /// Where the folder can't be made or read.
    pub fn with_disk(folder: &Path, disk: Arc<dyn Disk>) -> Result<Self, UploadError> {
        Self::in_spool(Spool { folder: folder.to_owned(), disk, log: None })
    }

    /// As [`Uploads::with_disk`]; small uploads that come whole become durable through a log of a folder above.
    ///
    /// # Errors
    /// Where the folder can't be made or read.
    pub fn with_log(
        folder: &Path,
        disk: Arc<dyn Disk>,
        log: WriteAheadLog,
    ) -> Result<Self, UploadError> {
        Self::in_spool(Spool { folder: folder.to_owned(), disk, log: Some(log) })
    }

    fn in_spool(spool: Spool) -> Result<Self, UploadError> {
        let folder = &*spool.folder;
        let error = |source| UploadError::io(folder, source);
        fs::create_dir_all(folder).map_err(error)?;
        let mut slots = BTreeMap::<UploadName, Slot>::new();
        // The bytes in the log are durable; a file at the same path may be torn.
        let logged = spool.log.as_ref().map(|log| log.list(folder)).unwrap_or_default();
        let logged: BTreeMap<PathBuf, u64> =
            logged.into_iter().map(|file| (file.path, file.bytes.len() as u64)).collect();
        for (path, bytes) in &logged {
            if let Some((name, slot)) = Slot::from_content(path, *bytes) {
                slots.entry(name).or_default().add(slot);
            }
        }
        for entry in fs::read_dir(folder).map_err(error)? {
            let path = entry.map_err(error)?.path();
            if path.extension().is_some_and(|ending| ending == "tmp") {
                // A killed process was writing it.
                if_exists(fs::remove_file(&path)).map_err(error)?;
            } else if !logged.contains_key(&path)
                && let Some((name, slot)) = Slot::from_file(&path)
                && let Some(unneeded) = slots.entry(name).or_default().add(slot)
            {
                if_exists(fs::remove_file(&unneeded)).map_err(error)?;
            }
        }
        let slots = slots.into_iter().map(|(name, slot)| (name, Arc::new(Mutex::new(slot))));
        let slots = Arc::new(Mutex::new(slots.collect()));
        Ok(Self { spool: Arc::new(spool), slots })
    }

    /// Continues an upload of `declared`, or begins it. An earlier request of this name fails at its next write. Bytes of
    /// another declaration are deleted.
    ///
    /// # Errors
    /// [`UploadError::WrongOffset`], or where the disk fails.
    pub fn begin(
        &self,
        name: UploadName,
        declared: BlobRef,
        offset: u64,
        encoding: Encoding,
    ) -> Result<Upload, UploadError> {
        let slot = self.slot(name, true);
        let generation = {
            let mut slot = slot.lock();
            slot.claim(&self.spool, name, declared)?;
            let held = slot.held();
            if held != offset {
                return Err(UploadError::WrongOffset { held, given: offset });
            }
            slot.generation()
        };
        Upload::new(name, slot, generation, declared, encoding, Arc::clone(&self.spool))
    }

    /// Takes the body of a request whole. As [`Uploads::begin`], [`Upload::write`] and [`Upload::finish`], but a small upload
    /// shares its sync with others that come at the same time.
    ///
    /// # Errors
    /// As these.
    pub fn receive(
        &self,
        name: UploadName,
        declared: BlobRef,
        offset: u64,
        encoding: Encoding,
        body: &[u8],
    ) -> Result<UploadState, UploadError> {
        if offset == 0 && encoding == Encoding::Identity {
            let slot = self.slot(name, true);
            if slot.lock().complete(&self.spool, name, declared, body)? {
                return Ok(UploadState { offset: declared.bytes, complete: true });
            }
        }
        let mut upload = self.begin(name, declared, offset, encoding)?;
        upload.write(body)?;
        upload.finish()
    }

    /// Stores the whole of `blob` as a complete upload, and replaces any other of this name. It is as durable and verified
    /// as one that was sent.
    ///
    /// # Errors
    /// [`UploadError::DigestMismatch`], [`UploadError::TooLarge`], [`UploadError::Full`], or where
    /// the disk fails.
    pub fn put(&self, name: UploadName, blob: BlobRef, bytes: &[u8]) -> Result<(), UploadError> {
        let slot = self.slot(name, true);
        let mut slot = slot.lock();
        if slot.complete_file(blob).is_some() {
            return Ok(());
        }
        slot.refuse_other(name, blob)?;
        slot.clear(&self.spool)?;
        if slot.complete(&self.spool, name, blob, bytes)? {
            return Ok(());
        }
        slot.claim(&self.spool, name, blob)?;
        slot.append(&self.spool, bytes)?;
        slot.settle(&self.spool, name)?;
        let path = slot.complete_file(blob);
        path.map(drop).ok_or(UploadError::NotComplete { name, blob: blob.sha256 })
    }

    /// How far an upload is, and of what; `None` where there is none.
    #[must_use]
    pub fn state(&self, name: UploadName) -> Option<(BlobRef, UploadState)> {
        self.slot(name, false).lock().state()
    }

    /// Whether there is a complete upload of `blob`.
    #[must_use]
    pub fn is_complete(&self, name: UploadName, blob: BlobRef) -> bool {
        self.slot(name, false).lock().complete_file(blob).is_some()
    }

    /// Keeps a complete upload of `blob` from being replaced until it is removed, as it is about to be reported. Gives whether
    /// there is one. Requests that were allowed to send other bytes before fail from now on.
    #[must_use]
    pub fn report(&self, name: UploadName, blob: BlobRef) -> bool {
        self.slot(name, false).lock().report(blob)
    }

    /// Takes a report back: nobody has acknowledged it. Other bytes are taken again.
    pub fn take_back_report(&self, name: UploadName, blob: BlobRef) {
        self.slot(name, false).lock().take_back_report(blob);
    }

    /// The names of all uploads, and what they are of.
    #[must_use]
    pub fn list(&self) -> Vec<(UploadName, BlobRef)> {
        let slots: Vec<_> =
            self.slots.lock().iter().map(|(name, slot)| (*name, Arc::clone(slot))).collect();
        let blob = |(name, slot): (UploadName, Arc<Mutex<Slot>>)| {
            slot.lock().state().map(|(blob, _)| (name, blob))
        };
        slots.into_iter().filter_map(blob).collect()
    }

    /// The file of a complete upload of `blob`. Its bytes were verified when it was completed. A publish hashes them again.
    /// [`Uploads::read`] needs no file of a small upload.
    ///
    /// # Errors
    /// [`UploadError::NotComplete`], or where the disk fails.
    pub fn complete(&self, name: UploadName, blob: BlobRef) -> Result<PathBuf, UploadError> {
        let path = self.complete_path(name, blob)?;
        self.spool.write_out(&path)?;
        Ok(path)
    }

    /// Where the file of a complete upload lies, unless it is in memory only.
    fn complete_path(&self, name: UploadName, blob: BlobRef) -> Result<PathBuf, UploadError> {
        let path = self.slot(name, false).lock().complete_file(blob);
        path.ok_or(UploadError::NotComplete { name, blob: blob.sha256 })
    }

    /// The bytes of a complete upload, hashed as they are read: those of `blob`.
    ///
    /// # Errors
    /// [`UploadError::NotComplete`], [`UploadError::DigestMismatch`] where the file was altered.
    pub fn read(&self, name: UploadName, blob: BlobRef) -> Result<HashedBytes, UploadError> {
        let path = self.complete_path(name, blob)?;
        let bytes = match self.spool.in_memory(&path) {
            Some(file) => Ok(file.bytes),
            None => fs::read(&path).map(Bytes::from),
        };
        let named = HashedBytes::of(bytes.map_err(|source| UploadError::io(&path, source))?);
        if named.blob() == blob {
            Ok(named)
        } else {
            let found = named.blob().sha256;
            Err(UploadError::DigestMismatch { declared: blob.sha256, found })
        }
    }

    /// The bytes `range` of a complete upload. They aren't verified: the caller knows a digest of them.
    ///
    /// # Errors
    /// As [`Uploads::complete`], and where the file can't be read.
    pub fn read_range(
        &self,
        name: UploadName,
        blob: BlobRef,
        range: Range<u64>,
    ) -> Result<Bytes, UploadError> {
        let path = self.complete_path(name, blob)?;
        if let Some(SmallFile { bytes, .. }) = self.spool.in_memory(&path) {
            let (start, end) = (to_usize(range.start), to_usize(range.end));
            if start <= end && end <= bytes.len() {
                return Ok(bytes.slice(start..end));
            }
        }
        let bytes = to_usize(range.end.saturating_sub(range.start));
        let mut all = vec![0; bytes];
        let read = fs::File::open(&path).and_then(|mut file| {
            file.seek(SeekFrom::Start(range.start))?;
            file.read_exact(&mut all)
        });
        read.map_err(|source| UploadError::io(&path, source))?;
        Ok(all.into())
    }

    /// Deletes an upload. A missing one is no error.
    ///
    /// # Errors
    /// Where the disk fails.
    pub fn remove(&self, name: UploadName) -> Result<(), UploadError> {
        self.slot(name, false).lock().clear(&self.spool)?;
        self.forget_empty(name);
        Ok(())
    }

    fn forget_empty(&self, name: UploadName) {
        let mut slots = self.slots.lock();
        // A request that began it anew meanwhile holds the slot, and goes on with it.
        let is_left =
            |slot: &Arc<Mutex<Slot>>| Arc::strong_count(slot) == 1 && slot.lock().state().is_none();
        if slots.get(&name).is_some_and(is_left) {
            slots.remove(&name);
        }
    }

    /// Deletes each upload of which no bytes have come for as long as `keep` says, nor since this was opened. `None` keeps it,
    /// however old it is. One that is reported ([`Uploads::report`]) is kept, whatever `keep` says: what `keep` knows may be older
    /// than the report.
    ///
    /// # Errors
    /// Where the disk fails.
    pub fn sweep(
        &self,
        now: Instant,
        keep: impl Fn(UploadName, UploadState) -> Option<Duration>,
    ) -> Result<u64, UploadError> {
        let mut swept = 0;
        let names: Vec<UploadName> = self.slots.lock().keys().copied().collect();
        for name in names {
            let slot = self.slot(name, false);
            {
                // A report can't come between the decision and the removal.
                let mut slot = slot.lock();
                let age = slot.state().and_then(|(_, state)| keep(name, state));
                if !age.is_some_and(|age| slot.is_old(now, age)) {
                    continue;
                }
                slot.clear(&self.spool)?;
            }
            drop(slot);
            self.forget_empty(name);
            swept += 1;
        }
        Ok(swept)
    }

    /// The slot of a name; the map isn't held while somebody waits for a slot.
    fn slot(&self, name: UploadName, keep: bool) -> Arc<Mutex<Slot>> {
        let mut slots = self.slots.lock();
        if keep {
            Arc::clone(slots.entry(name).or_default())
        } else {
            slots.get(&name).map(Arc::clone).unwrap_or_default()
        }
    }
}

#[cfg(test)]
#[path = "uploads_tests.rs"]
mod tests;
