//! One upload: the slot that owns its file, and the request that writes to it.

use crate::{disk::Disk, error::UploadError, upload_name::UploadName};
use parking_lot::Mutex;
use sojourn_files::{if_exists, sync_folder};
use sojourn_protocol::{
    api::UploadState,
    digest::{BlobRef, Hasher},
};
use std::{
    fs::{self, File, OpenOptions},
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation as _, OutBuffer};

/// The largest decoder window that a body may ask for, as a power of two: 8 MiB. zstd's levels up to 19 need no more.
const MAX_WINDOW_LOG: u32 = 23;

/// How the bytes of one request are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As they are.
    Identity,
    /// zstd; every request is a stream of its own.
    Zstd,
}

/// The upload of one name.
#[derive(Default)]
pub(crate) struct Slot {
    /// Counts the requests that have claimed it. Only the last one may write.
    generation: u64,
    content: Content,
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
        let name = path.file_name()?.to_str()?;
        let mut words = name.split('.');
        let upload: UploadName = words.next()?.parse().ok()?;
        let sha256 = words.next()?.parse().ok()?;
        let blob = BlobRef { sha256, bytes: words.next()?.parse().ok()? };
        let bytes = fs::metadata(path).ok()?.len();
        let path = path.to_owned();
        let content = match words.next()? {
            // A truncated file isn't complete, whatever its name says.
            "done" if bytes == blob.bytes => Content::Complete { blob, path },
            "part" | "done" => Content::Found { blob, path, bytes },
            _ => return None,
        };
        Some((upload, Self { generation: 0, content }))
    }

    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Claims this slot for a new request that sends bytes of `blob`.
    pub(crate) fn claim(
        &mut self,
        folder: &Path,
        name: UploadName,
        blob: BlobRef,
        disk: &dyn Disk,
    ) -> Result<(), UploadError> {
        self.generation += 1;
        if self.blob().is_some_and(|held| held != blob) {
            self.clear()?;
        }
        if let Content::Found { path, .. } = &self.content {
            let path = path.clone();
            let file_error = |source| UploadError::io(&path, source);
            let part = folder.join(format!("{name}.{}.{}.part", blob.sha256, blob.bytes));
            if path != part {
                fs::rename(&path, &part).map_err(file_error)?;
            }
            let (hasher, bytes) = hash_file(&part).map_err(file_error)?;
            let file = OpenOptions::new().append(true).open(&part).map_err(file_error)?;
            self.content = Content::Partial(Partial { blob, path: part, file, hasher, bytes });
            // All bytes may have come before a crash that kept the file from its final name.
            self.settle(name, disk)?;
        }
        if matches!(self.content, Content::Nothing) {
            let path = folder.join(format!("{name}.{}.{}.part", blob.sha256, blob.bytes));
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
            _ => None,
        }
    }

    /// Deletes the upload. A request that still writes fails.
    pub(crate) fn clear(&mut self) -> Result<(), UploadError> {
        self.generation += 1;
        let (Content::Found { path, .. }
        | Content::Partial(Partial { path, .. })
        | Content::Complete { path, .. }) = std::mem::take(&mut self.content)
        else {
            return Ok(());
        };
        if_exists(fs::remove_file(&path)).map_err(|source| UploadError::io(&path, source))?;
        Ok(())
    }

    pub(crate) fn untouched_since(&self, now: SystemTime, age: Duration) -> bool {
        let path = match &self.content {
            Content::Found { path, .. }
            | Content::Partial(Partial { path, .. })
            | Content::Complete { path, .. } => path,
            Content::Nothing => return false,
        };
        let touched = fs::metadata(path).and_then(|meta| meta.modified());
        touched.is_ok_and(|touched| now.duration_since(touched).is_ok_and(|past| past >= age))
    }

    pub(crate) fn append(&mut self, bytes: &[u8], disk: &dyn Disk) -> Result<(), UploadError> {
        let Content::Partial(partial) = &mut self.content else {
            // A complete upload takes no more bytes.
            let declared = self.held();
            return if bytes.is_empty() { Ok(()) } else { Err(UploadError::TooLarge { declared }) };
        };
        let declared = partial.blob.bytes;
        if bytes.len() as u64 > declared - partial.bytes {
            self.clear()?;
            return Err(UploadError::TooLarge { declared });
        }
        if let Err(source) = disk.append(&mut partial.file, bytes) {
            let error = UploadError::io(&partial.path, source);
            // Bytes that were written in part aren't hashed, so they are cut off. Where that fails, the file isn't
            // trusted.
            if partial.file.set_len(partial.bytes).is_err() {
                self.clear()?;
            }
            return Err(error);
        }
        partial.hasher.update(bytes);
        partial.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Completes the upload if all bytes are there.
    pub(crate) fn settle(&mut self, name: UploadName, disk: &dyn Disk) -> Result<(), UploadError> {
        let Content::Partial(partial) = &mut self.content else { return Ok(()) };
        let blob = partial.blob;
        if partial.bytes < blob.bytes {
            return Ok(());
        }
        let found = partial.hasher.clone().finish();
        if found != blob.sha256 || partial.bytes != blob.bytes {
            self.clear()?;
            return Err(UploadError::DigestMismatch { declared: blob.sha256, found });
        }
        let error = |source| UploadError::io(&partial.path, source);
        disk.sync(&partial.file).map_err(error)?;
        let folder = partial.path.parent().unwrap_or(Path::new("."));
        let path = folder.join(format!("{name}.{}.{}.done", blob.sha256, blob.bytes));
        fs::rename(&partial.path, &path).map_err(error)?;
        sync_folder(folder).map_err(error)?;
        self.content = Content::Complete { blob, path };
        Ok(())
    }
}

/// One request that writes to the spool. Dropping it keeps the bytes that were written.
pub struct Upload {
    name: UploadName,
    slot: Arc<Mutex<Slot>>,
    generation: u64,
    declared: BlobRef,
    decoder: Option<Decoder<'static>>,
    disk: Arc<dyn Disk>,
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upload").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Upload {
    pub(crate) fn new(
        name: UploadName,
        slot: Arc<Mutex<Slot>>,
        generation: u64,
        declared: BlobRef,
        encoding: Encoding,
        disk: Arc<dyn Disk>,
    ) -> Result<Self, UploadError> {
        let decoder = match encoding {
            Encoding::Identity => None,
            Encoding::Zstd => {
                let mut decoder = Decoder::new().map_err(UploadError::Undecodable)?;
                let window = DParameter::WindowLogMax(MAX_WINDOW_LOG);
                decoder.set_parameter(window).map_err(UploadError::Undecodable)?;
                Some(decoder)
            }
        };
        Ok(Self { name, slot, generation, declared, decoder, disk })
    }

    /// Takes the next bytes of the body, decoding and hashing them. No more than the declared size
    /// is ever decoded or written.
    ///
    /// # Errors
    /// [`UploadError::TooLarge`], [`UploadError::Undecodable`], [`UploadError::TakenOver`],
    /// [`UploadError::Full`], or where the disk fails.
    pub fn write(&mut self, body: &[u8]) -> Result<(), UploadError> {
        let Some(decoder) = &mut self.decoder else {
            return Self::append(&self.slot, self.generation, self.name, &*self.disk, body);
        };
        let mut decoded = vec![0; 128 << 10];
        let mut input = InBuffer::around(body);
        loop {
            let mut output = OutBuffer::around(decoded.as_mut_slice());
            let before = input.pos();
            decoder.run(&mut input, &mut output).map_err(UploadError::Undecodable)?;
            let bytes = output.as_slice();
            let (made, whole) = (bytes.len(), bytes.len() == 128 << 10);
            Self::append(&self.slot, self.generation, self.name, &*self.disk, bytes)?;
            let idle = made == 0 && input.pos() == before;
            if idle || (input.pos() == body.len() && !whole) {
                return Ok(());
            }
        }
    }

    /// The body has ended. Where all declared bytes are there they are compared with the digest,
    /// and once this returns a complete upload lasts.
    ///
    /// # Errors
    /// [`UploadError::DigestMismatch`], [`UploadError::TakenOver`], or where the disk fails.
    pub fn finish(self) -> Result<UploadState, UploadError> {
        let mut slot = self.slot.lock();
        if slot.generation() != self.generation {
            return Err(UploadError::TakenOver(self.name));
        }
        slot.settle(self.name, &*self.disk)?;
        let nothing = UploadState { offset: 0, complete: false };
        Ok(slot.state().map_or(nothing, |(_, state)| state))
    }

    /// The declared digest and size.
    #[must_use]
    pub const fn declared(&self) -> BlobRef {
        self.declared
    }

    fn append(
        slot: &Mutex<Slot>,
        generation: u64,
        name: UploadName,
        disk: &dyn Disk,
        bytes: &[u8],
    ) -> Result<(), UploadError> {
        let mut slot = slot.lock();
        if slot.generation() != generation {
            return Err(UploadError::TakenOver(name));
        }
        slot.append(bytes, disk)
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
