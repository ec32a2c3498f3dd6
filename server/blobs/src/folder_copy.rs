//! A copy of the blobs and of the complete uploads of a server's folder, taken while the server writes to it.
//!
//! ```text
//!   sweep:  every file that the copy lacks; read once, and only kept where its bytes have the digest of its name
//!   logged: the small files in the write-ahead log, also those that were removed since
//!   prune:  whatever nobody wants goes from the copy
//! ```
//!
//! A file's name has its digest, so a file that the copy has is never read again. In the copy each file is at its path: it has no
//! write-ahead log. Compressed copies of blobs are left out, since a server makes them anew.

use crate::{
    error::BlobError,
    folder::is_staging,
    objects::{blob_key, index_key},
    packed::ENDING as PACKED_ENDING,
    ranged::{FOLDER as PIECES_FOLDER, piece_key},
    spool::spool_name,
    upload_name::UploadName,
    write_ahead_log,
};
use bytes::Bytes;
use sojourn_codec::ranges::Index;
use sojourn_files::{Access, AtomicFile, Durability, if_exists};
use sojourn_protocol::{
    digest::{BlobRef, Digest, Hasher},
    ids::LeaseId,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

/// The blobs' folder in a server's folder.
pub const BLOBS_FOLDER: &str = "blobs";
/// The uploads' folder in a server's folder.
pub const UPLOADS_FOLDER: &str = "uploads";

/// Bytes that are read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// Two folders of servers: one that is copied, and its copy.
#[derive(Debug, Clone)]
pub struct FolderCopy {
    from: PathBuf,
    to: PathBuf,
}

/// Files, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FilesCount {
    /// The number of files.
    pub files: u64,
    /// Bytes of them all.
    pub bytes: u64,
}

impl FilesCount {
    fn add(&mut self, bytes: u64) {
        self.files = self.files.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// The small files of a write-ahead log, by their paths in the server's folder.
#[derive(Debug, Default)]
pub struct LoggedFiles(BTreeMap<String, Bytes>);

/// The files that a copy has to have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WantedFiles {
    /// The blobs.
    pub blobs: BTreeSet<BlobRef>,
    /// The complete uploads of leases.
    pub uploads: BTreeSet<(LeaseId, BlobRef)>,
}

/// A file that the copy lacks.
struct Absent {
    /// The path in both folders.
    path: PathBuf,
    bytes: u64,
    /// The digest of its bytes, where its name has that.
    digest: Option<Digest>,
}

impl FolderCopy {
    /// A copy of the server's folder `from` in the folder `to`.
    #[must_use]
    pub fn new(from: &Path, to: &Path) -> Self {
        Self { from: from.to_owned(), to: to.to_owned() }
    }

    /// Copies every file that the copy lacks. Files that vanish meanwhile, and those with other bytes than their names say, are passed
    /// over. `progress` gets the bytes that were copied and those to copy. The bytes aren't synced.
    ///
    /// # Errors
    /// Where a folder can't be read or written.
    pub fn sweep(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<FilesCount, BlobError> {
        let absent = self.absent()?;
        let all = absent.iter().map(|file| file.bytes).fold(0, u64::saturating_add);
        let (mut copied, mut seen) = (FilesCount::default(), 0_u64);
        for file in absent {
            let (from, to) = (self.from.join(&file.path), self.to.join(&file.path));
            if let Some(bytes) = copy(&from, &to, file.digest)? {
                copied.add(bytes);
            }
            seen = seen.saturating_add(file.bytes);
            progress(seen, all);
        }
        Ok(copied)
    }

    /// The small files that the server's write-ahead log has now.
    ///
    /// # Errors
    /// Where the log can't be read, or a newer version has written it.
    pub fn logged(&self) -> Result<LoggedFiles, BlobError> {
        let files = write_ahead_log::puts(&self.from);
        files.map(LoggedFiles).map_err(|source| BlobError::io(&self.from, source))
    }

    /// Writes those of the log's files that the copy has to have and lacks.
    ///
    /// # Errors
    /// Where the copy can't be written.
    pub fn take(
        &self,
        logged: &LoggedFiles,
        wanted: &WantedFiles,
    ) -> Result<FilesCount, BlobError> {
        let mut taken = FilesCount::default();
        let WantedFiles { blobs, uploads } = self.lacks(wanted)?;
        let blobs =
            blobs.into_iter().map(|blob| format!("{BLOBS_FOLDER}/{}", blob_key(blob.sha256)));
        let uploads = uploads.into_iter().map(|(lease, blob)| upload_path(lease, blob));
        for name in blobs.chain(uploads) {
            let Some(bytes) = logged.0.get(&name) else { continue };
            let path = self.to.join(&name);
            let written = create(&path).and_then(|mut file| {
                file.write_all(bytes)?;
                file.commit(Durability::Unsynced)
            });
            written.map_err(|source| BlobError::io(&path, source))?;
            taken.add(bytes.len() as u64);
        }
        Ok(taken)
    }

    /// The blobs and uploads that the copy has to have and lacks. Names and sizes are looked at alone.
    ///
    /// # Errors
    /// Where the copy can't be read.
    pub fn lacks(&self, wanted: &WantedFiles) -> Result<WantedFiles, BlobError> {
        let mut lacked = WantedFiles::default();
        for blob in &wanted.blobs {
            if !self.has_blob(*blob)? {
                lacked.blobs.insert(*blob);
            }
        }
        for (lease, blob) in &wanted.uploads {
            let path = self.to.join(upload_path(*lease, *blob));
            if size_of(&path)? != Some(blob.bytes) {
                lacked.uploads.insert((*lease, *blob));
            }
        }
        Ok(lacked)
    }

    fn has_blob(&self, blob: BlobRef) -> Result<bool, BlobError> {
        let blobs = self.to.join(BLOBS_FOLDER);
        if size_of(&blobs.join(blob_key(blob.sha256).as_ref()))? == Some(blob.bytes) {
            return Ok(true);
        }
        let Some(index) = self.index(blob.sha256)? else { return Ok(false) };
        for piece in index.pieces() {
            let path = blobs.join(piece_key(&piece.name).as_ref());
            if size_of(&path)? != Some(piece.packed) {
                return Ok(false);
            }
        }
        Ok(index.blob() == blob)
    }

    /// The index of a blob that is in pieces in the copy.
    fn index(&self, blob: Digest) -> Result<Option<Index>, BlobError> {
        let path = self.to.join(BLOBS_FOLDER).join(index_key(blob).as_ref());
        let read = if_exists(fs::read(&path)).map_err(|source| BlobError::io(&path, source))?;
        Ok(read.and_then(|bytes| Index::read(&bytes).ok()))
    }

    /// Deletes the blobs and uploads of the copy that nobody wants. Notes beside the blobs stay.
    ///
    /// # Errors
    /// Where the copy can't be read or changed.
    pub fn prune(&self, wanted: &WantedFiles) -> Result<FilesCount, BlobError> {
        let digests: BTreeSet<Digest> = wanted.blobs.iter().map(|blob| blob.sha256).collect();
        let mut pieces = BTreeSet::new();
        for digest in &digests {
            let index = self.index(*digest)?;
            pieces.extend(index.iter().flat_map(Index::pieces).map(|piece| piece.name.clone()));
        }
        let uploads: BTreeSet<String> =
            wanted.uploads.iter().map(|(lease, blob)| upload_path(*lease, *blob)).collect();
        let mut pruned = FilesCount::default();
        for (path, bytes) in files(&self.to, Path::new(BLOBS_FOLDER))? {
            let name = name_of(&path);
            let is_piece = path.starts_with(Path::new(BLOBS_FOLDER).join(PIECES_FOLDER));
            let is_unwanted = match digest_in(name) {
                _ if is_staging(name) => true,
                _ if is_piece => !pieces.contains(name),
                Some(digest) => !digests.contains(&digest),
                None => false,
            };
            if is_unwanted {
                self.remove(&path)?;
                pruned.add(bytes);
            }
        }
        for (path, bytes) in files(&self.to, Path::new(UPLOADS_FOLDER))? {
            if !path.to_str().is_some_and(|path| uploads.contains(path)) {
                self.remove(&path)?;
                pruned.add(bytes);
            }
        }
        Ok(pruned)
    }

    fn remove(&self, path: &Path) -> Result<(), BlobError> {
        let path = self.to.join(path);
        if_exists(fs::remove_file(&path)).map(drop).map_err(|source| BlobError::io(&path, source))
    }

    /// Whether the copy of a small file has other bytes.
    fn differs(&self, path: &Path) -> Result<bool, BlobError> {
        let read = |folder: &Path| {
            let path = folder.join(path);
            if_exists(fs::read(&path)).map_err(|source| BlobError::io(&path, source))
        };
        Ok(read(&self.from)? != read(&self.to)?)
    }

    /// The files that the copy lacks, or has in another size.
    fn absent(&self) -> Result<Vec<Absent>, BlobError> {
        let mut absent = Vec::new();
        for (path, bytes) in files(&self.from, Path::new(BLOBS_FOLDER))? {
            let name = name_of(&path);
            if is_staging(name) || name.ends_with(PACKED_ENDING) {
                continue;
            }
            // A note may change its content and keep its size.
            let is_note = path.parent() == Some(Path::new(BLOBS_FOLDER));
            if (is_note && self.differs(&path)?) || size_of(&self.to.join(&path))? != Some(bytes) {
                let digest = name.parse().ok();
                absent.push(Absent { path, bytes, digest });
            }
        }
        for (path, bytes) in files(&self.from, Path::new(UPLOADS_FOLDER))? {
            let Some(blob) = complete_upload(name_of(&path)) else { continue };
            if blob.bytes == bytes && size_of(&self.to.join(&path))? != Some(bytes) {
                absent.push(Absent { path, bytes, digest: Some(blob.sha256) });
            }
        }
        Ok(absent)
    }
}

/// Copies a file. Gives its bytes; `None` where it is gone, or hasn't the digest.
fn copy(from: &Path, to: &Path, digest: Option<Digest>) -> Result<Option<u64>, BlobError> {
    let read_error = |source| BlobError::io(from, source);
    let write_error = |source| BlobError::io(to, source);
    let Some(mut source) = if_exists(File::open(from)).map_err(read_error)? else {
        return Ok(None);
    };
    let mut target = create(to).map_err(write_error)?;
    let (mut hasher, mut bytes) = (Hasher::default(), 0_u64);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let read = source.read(&mut chunk).map_err(read_error)?;
        let Some(part) = chunk.get(..read).filter(|part| !part.is_empty()) else { break };
        if digest.is_some() {
            hasher.update(part);
        }
        target.write_all(part).map_err(write_error)?;
        bytes = bytes.saturating_add(part.len() as u64);
    }
    if let Some(digest) = digest {
        let found = hasher.finish();
        if found != digest {
            let file = from.display();
            tracing::warn!(%file, %found, "a file was altered, and isn't copied");
            return Ok(None);
        }
    }
    target.commit(Durability::Unsynced).map_err(write_error)?;
    Ok(Some(bytes))
}

/// A new file for this path, in a folder that is made.
fn create(path: &Path) -> io::Result<AtomicFile> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    AtomicFile::create(path, Access::Mask)
}

/// All files below `folder`, by their paths below `root`, with their sizes. Those that vanish meanwhile aren't there.
fn files(root: &Path, folder: &Path) -> Result<Vec<(PathBuf, u64)>, BlobError> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let path = root.join(&folder);
        let error = |source| BlobError::io(&path, source);
        let Some(entries) = if_exists(fs::read_dir(&path)).map_err(error)? else { continue };
        for entry in entries {
            let entry = entry.map_err(error)?;
            let Some(meta) = if_exists(entry.metadata()).map_err(error)? else { continue };
            let path = folder.join(entry.file_name());
            if meta.is_dir() {
                open.push(path);
            } else if meta.is_file() {
                found.push((path, meta.len()));
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn size_of(path: &Path) -> Result<Option<u64>, BlobError> {
    let meta = if_exists(fs::metadata(path)).map_err(|source| BlobError::io(path, source))?;
    Ok(meta.map(|meta| meta.len()))
}

/// The name of a file. One that isn't UTF-8 is none of a server's.
fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// The blob that a file in the store's folder belongs to: itself, its index, its compressed copy.
fn digest_in(name: &str) -> Option<Digest> {
    name.split('.').next()?.parse().ok()
}

/// The upload of which this is the complete file, if it is a lease's.
fn complete_upload(name: &str) -> Option<BlobRef> {
    let words: Vec<&str> = name.split('.').collect();
    let [upload, sha256, bytes, "done"] = words[..] else { return None };
    let UploadName::Lease(_) = upload.parse().ok()? else { return None };
    Some(BlobRef { sha256: sha256.parse().ok()?, bytes: bytes.parse().ok()? })
}

/// The path of a lease's complete upload in a server's folder.
fn upload_path(lease: LeaseId, blob: BlobRef) -> String {
    let name = UploadName::Lease(lease);
    format!("{UPLOADS_FOLDER}/{}", spool_name(name, blob, "done"))
}
