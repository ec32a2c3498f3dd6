//! The state of one upload: what has come of its file, and which request may write to it.

use crate::{
    disk::sync_folder, error::UploadError, hashed_bytes::HashedBytes, spool::Spool,
    upload_name::UploadName,
};
use bytes::Bytes;
use sojourn_protocol::{
    api::UploadState,
    digest::{BlobRef, Hasher},
};
use std::{
    fs::{self, File, OpenOptions},
    io::Read as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// The upload of one name.
pub(crate) struct Slot {
    /// Counts the requests that have claimed it. Only the last one may write.
    generation: u64,
    content: Content,
    /// Other complete files of this name. A power cut may bring back a file that was replaced, from the log or in the folder.
    /// Nothing says which of them was acknowledged last, so each counts until the upload is deleted.
    others: Vec<(BlobRef, PathBuf)>,
    /// The bytes that were reported: no others are taken until the upload is deleted.
    reported: Option<BlobRef>,
    /// When bytes came last, or the file was found after a start. It is the machine's steady clock: the times of files say
    /// nothing where the other clock was set meanwhile.
    touched: Instant,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            generation: 0,
            content: Content::Nothing,
            others: Vec::new(),
            reported: None,
            touched: Instant::now(),
        }
    }
}

#[derive(Default)]
enum Content {
    #[default]
    Nothing,
    /// Found on disk after a start, not hashed yet.
    Found {
        blob: BlobRef,
        path: PathBuf,
        bytes: u64,
    },
    Partial(Partial),
    Complete {
        blob: BlobRef,
        path: PathBuf,
    },
}

struct Partial {
    blob: BlobRef,
    path: PathBuf,
    file: File,
    hasher: Hasher,
    bytes: u64,
}

impl Slot {
    /// The upload of a file in the spool folder, as the file's name says; `None` for other files.
    pub(crate) fn from_file(path: &Path) -> Option<(UploadName, Self)> {
        Self::from_content(path, fs::metadata(path).ok()?.len())
    }

    /// The upload of a file of so many bytes.
    pub(crate) fn from_content(path: &Path, bytes: u64) -> Option<(UploadName, Self)> {
        let name = path.file_name()?.to_str()?;
        let mut words = name.split('.');
        let upload: UploadName = words.next()?.parse().ok()?;
        let sha256 = words.next()?.parse().ok()?;
        let blob = BlobRef { sha256, bytes: words.next()?.parse().ok()? };
        let path = path.to_owned();
        let content = match (words.next()?, words.next()) {
            // A truncated file isn't complete, whatever its name says.
            ("done", None) if bytes == blob.bytes => Content::Complete { blob, path },
            ("part" | "done", None) => Content::Found { blob, path, bytes },
            _ => return None,
        };
        Some((upload, Self { content, ..Self::default() }))
    }

    /// Adds another file of this name that was found at the start. Gives the file that isn't needed, if one isn't: no bytes
    /// of an incomplete upload were promised.
    pub(crate) fn add(&mut self, found: Self) -> Option<PathBuf> {
        match (&self.content, found.content) {
            (Content::Complete { .. }, Content::Complete { blob, path }) => {
                self.others.push((blob, path));
                None
            }
            (Content::Nothing, content) => {
                self.content = content;
                None
            }
            (Content::Found { path, .. }, content @ Content::Complete { .. }) => {
                let unneeded = path.clone();
                self.content = content;
                Some(unneeded)
            }
            (_, Content::Found { path, .. }) => Some(path),
            (_, Content::Nothing | Content::Partial(_) | Content::Complete { .. }) => None,
        }
    }

    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Claims this slot for a new request that sends bytes of `blob`.
    pub(crate) fn claim(
        &mut self,
        spool: &Spool,
        name: UploadName,
        blob: BlobRef,
    ) -> Result<(), UploadError> {
        self.refuse_other(name, blob)?;
        self.generation += 1;
        self.touched = Instant::now();
        self.clear_other(spool, blob)?;
        if let Content::Found { path, .. } = &self.content {
            let path = path.clone();
            let file_error = |source| UploadError::io(&path, source);
            let part = spool.path(name, blob, "part");
            if path != part {
                fs::rename(&path, &part).map_err(file_error)?;
            }
            let (hasher, bytes) = hash_file(&part).map_err(file_error)?;
            let file = OpenOptions::new().append(true).open(&part).map_err(file_error)?;
            self.content = Content::Partial(Partial { blob, path: part, file, hasher, bytes });
            // All bytes may have come before a crash that kept the file from its final name.
            self.settle(spool, name)?;
        }
        if matches!(self.content, Content::Nothing) {
            let path = spool.path(name, blob, "part");
            let file = OpenOptions::new()
                .append(true)
                .create(true)
                .open(&path)
                .and_then(|file| file.set_len(0).map(|()| file))
                .map_err(|source| UploadError::io(&path, source))?;
            let hasher = Hasher::default();
            self.content = Content::Partial(Partial { blob, path, file, hasher, bytes: 0 });
        }
        Ok(())
    }

    /// Takes an upload whose bytes are all here, and returns once it lasts. Only a small upload of which there is nothing
    /// yet can be taken so: gives whether it was.
    pub(crate) fn complete(
        &mut self,
        spool: &Spool,
        name: UploadName,
        blob: BlobRef,
        bytes: &[u8],
    ) -> Result<bool, UploadError> {
        let Some(log) = spool.log.as_ref().filter(|log| log.takes(blob.bytes)) else {
            return Ok(false);
        };
        if bytes.len() as u64 != blob.bytes {
            return Ok(false);
        }
        self.refuse_other(name, blob)?;
        self.clear_other(spool, blob)?;
        if !matches!(self.content, Content::Nothing) {
            return Ok(false);
        }
        self.generation += 1;
        let named = HashedBytes::of(Bytes::copy_from_slice(bytes));
        if named.blob() != blob {
            let found = named.blob().sha256;
            return Err(UploadError::DigestMismatch { declared: blob.sha256, found });
        }
        let path = spool.path(name, blob, "done");
        log.put(&path, &named).map_err(|source| UploadError::io(&path, source))?;
        self.content = Content::Complete { blob, path };
        self.touched = Instant::now();
        Ok(true)
    }

    /// Keeps a complete upload of `blob` from being replaced, as it is reported. Gives whether there is one.
    pub(crate) fn report(&mut self, blob: BlobRef) -> bool {
        let is_complete = self.complete_file(blob).is_some();
        if is_complete {
            self.reported = Some(blob);
        }
        is_complete
    }

    /// Takes the mark of a report of `blob` back.
    pub(crate) fn take_back_report(&mut self, blob: BlobRef) {
        if self.reported == Some(blob) {
            self.reported = None;
        }
    }

    /// Refuses other bytes than those that were reported.
    pub(crate) fn refuse_other(&self, name: UploadName, blob: BlobRef) -> Result<(), UploadError> {
        match self.reported {
            Some(reported) if reported != blob => Err(UploadError::Reported(name)),
            _ => Ok(()),
        }
    }

    /// Deletes the bytes of another upload than `blob`.
    fn clear_other(&mut self, spool: &Spool, blob: BlobRef) -> Result<(), UploadError> {
        if self.blob().is_none_or(|held| held == blob) {
            return Ok(());
        }
        let same = self.others.iter().position(|(held, _)| *held == blob);
        let same = same.map(|at| self.others.swap_remove(at));
        self.clear(spool)?;
        if let Some((blob, path)) = same {
            self.content = Content::Complete { blob, path };
        }
        Ok(())
    }

    pub(crate) const fn held(&self) -> u64 {
        match &self.content {
            Content::Nothing => 0,
            Content::Found { bytes, .. } => *bytes,
            Content::Partial(partial) => partial.bytes,
            Content::Complete { blob, .. } => blob.bytes,
        }
    }

    const fn blob(&self) -> Option<BlobRef> {
        match &self.content {
            Content::Nothing => None,
            Content::Found { blob, .. } | Content::Complete { blob, .. } => Some(*blob),
            Content::Partial(partial) => Some(partial.blob),
        }
    }

    pub(crate) fn state(&self) -> Option<(BlobRef, UploadState)> {
        let complete = matches!(self.content, Content::Complete { .. });
        self.blob().map(|blob| (blob, UploadState { offset: self.held(), complete }))
    }

    pub(crate) fn complete_file(&self, wanted: BlobRef) -> Option<PathBuf> {
        match &self.content {
            Content::Complete { blob, path } if *blob == wanted => Some(path.clone()),
            _ => {
                let other = self.others.iter().find(|(blob, _)| *blob == wanted);
                other.map(|(_, path)| path.clone())
            }
        }
    }

    /// Deletes the upload. A request that still writes fails.
    pub(crate) fn clear(&mut self, spool: &Spool) -> Result<(), UploadError> {
        self.generation += 1;
        self.reported = None;
        for (_, path) in std::mem::take(&mut self.others) {
            spool.remove(&path)?;
        }
        let (Content::Found { path, .. }
        | Content::Partial(Partial { path, .. })
        | Content::Complete { path, .. }) = std::mem::take(&mut self.content)
        else {
            return Ok(());
        };
        spool.remove(&path)
    }

    /// Whether there are bytes that no report has named, and that have been as they are for so long.
    pub(crate) fn is_old(&self, now: Instant, age: Duration) -> bool {
        self.reported.is_none()
            && self.blob().is_some()
            && now.saturating_duration_since(self.touched) >= age
    }

    pub(crate) fn append(&mut self, spool: &Spool, bytes: &[u8]) -> Result<(), UploadError> {
        let Content::Partial(partial) = &mut self.content else {
            // A complete upload takes no more bytes.
            let declared = self.held();
            return if bytes.is_empty() { Ok(()) } else { Err(UploadError::TooLarge { declared }) };
        };
        let declared = partial.blob.bytes;
        if bytes.len() as u64 > declared - partial.bytes {
            self.clear(spool)?;
            return Err(UploadError::TooLarge { declared });
        }
        if let Err(source) = spool.disk.append(&mut partial.file, bytes) {
            let error = UploadError::io(&partial.path, source);
            // Bytes that were written in part aren't hashed, so they are cut off. Where that fails, the file isn't
            // trusted.
            if partial.file.set_len(partial.bytes).is_err() {
                self.clear(spool)?;
            }
            return Err(error);
        }
        partial.hasher.update(bytes);
        partial.bytes += bytes.len() as u64;
        self.touched = Instant::now();
        Ok(())
    }

    /// Completes the upload if all bytes are there.
    pub(crate) fn settle(&mut self, spool: &Spool, name: UploadName) -> Result<(), UploadError> {
        let Content::Partial(partial) = &mut self.content else { return Ok(()) };
        let blob = partial.blob;
        if partial.bytes < blob.bytes {
            return Ok(());
        }
        let found = partial.hasher.clone().finish();
        if found != blob.sha256 || partial.bytes != blob.bytes {
            self.clear(spool)?;
            return Err(UploadError::DigestMismatch { declared: blob.sha256, found });
        }
        let path = spool.path(name, blob, "done");
        let error = |source| UploadError::io(&path, source);
        spool.disk.sync(&partial.file).map_err(error)?;
        fs::rename(&partial.path, &path).map_err(error)?;
        // Where the folder can't be synchronised now, whoever asks again finds it here.
        partial.path.clone_from(&path);
        sync_folder(&*spool.disk, &spool.folder).map_err(error)?;
        self.content = Content::Complete { blob, path };
        Ok(())
    }
}

/// Hashes a file. Gives its size too.
fn hash_file(path: &Path) -> std::io::Result<(Hasher, u64)> {
    let mut file = fs::File::open(path)?;
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; 256 << 10];
    let mut bytes = 0;
    loop {
        let got = file.read(&mut buffer)?;
        let Some(read) = buffer.get(..got).filter(|read| !read.is_empty()) else {
            return Ok((hasher, bytes));
        };
        hasher.update(read);
        bytes += read.len() as u64;
    }
}
