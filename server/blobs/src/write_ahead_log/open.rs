//! The log's files: they are found and read at the start, and new ones begun.

use super::{
    Current, Entry, Shared, State,
    record::{self, FIRST_LINE, Record},
    segment::Segment,
};
use crate::disk::sync_folder;
use bytes::Bytes;
use sojourn_files::if_exists;
use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

/// The folder of the segments.
pub(super) const FOLDER: &str = "write-ahead-log";

/// The file of a segment: its number in twenty digits.
fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:020}"))
}

impl Shared {
    /// Reads all segments into memory. They stay until they are retired, which doesn't begin before the first put: those who
    /// read the folder at the start find each file in memory or at its path, and no temporary one that is being written.
    pub(super) fn recover(&self) -> io::Result<State> {
        let mut state = State::default();
        for (number, path) in segments(&self.folder)? {
            let content = fs::read(&path)?;
            let records = records_of(&content, &path)?;
            let torn = replay(number, records, &mut state.files);
            if torn > 0 {
                tracing::info!(
                    number,
                    torn,
                    "a segment ends with bytes that aren't a whole record"
                );
            }
            let file = File::open(&path)?;
            state.segments.insert(number, Arc::new(Segment::new(number, path, file)));
            state.last = number;
        }
        if !state.segments.is_empty() {
            let (segments, files) = (state.segments.len(), state.files.len());
            tracing::info!(segments, files, "small files were recovered from the write-ahead log");
        }
        Ok(state)
    }

    /// Begins a segment. Its name is durable when this returns.
    pub(super) fn begin_segment(&self, state: &mut State) -> io::Result<Current> {
        // An earlier process may have made the folder, and ended before it synced the name.
        fs::create_dir_all(&self.folder)?;
        sync_folder(&*self.disk, &self.root)?;
        let number = state.last + 1;
        let path = segment_path(&self.folder, number);
        let begun = || -> io::Result<(File, File)> {
            let mut file = File::options().append(true).create(true).open(&path)?;
            file.set_len(0)?;
            self.disk.append(&mut file, FIRST_LINE)?;
            sync_folder(&*self.disk, &self.folder)?;
            Ok((file.try_clone()?, file))
        };
        let (handle, file) = begun().inspect_err(|_| drop(fs::remove_file(&path)))?;
        state.last = number;
        state.may_retire = true;
        // Segments of an earlier process may be retired from now on.
        self.changed.notify_all();
        let segment = Arc::new(Segment::new(number, path, handle));
        state.segments.insert(number, Arc::clone(&segment));
        Ok(Current { segment, file, bytes: FIRST_LINE.len() as u64 })
    }
}

/// The files of the segments, by their numbers.
fn segments(folder: &Path) -> io::Result<BTreeMap<u64, PathBuf>> {
    let mut found = BTreeMap::new();
    for entry in if_exists(fs::read_dir(folder))?.into_iter().flatten() {
        let path = entry?.path();
        let number = path.file_name().and_then(|name| name.to_str()?.parse::<u64>().ok());
        found.extend(number.map(|number| (number, path)));
    }
    Ok(found)
}

/// The records of a segment with this content.
fn records_of<'a>(content: &'a [u8], path: &Path) -> io::Result<&'a [u8]> {
    match content.strip_prefix(FIRST_LINE) {
        Some(records) => Ok(records),
        // A power cut came before its first record was durable.
        None if FIRST_LINE.starts_with(content) || content.iter().all(|b| *b == 0) => Ok(&[]),
        None => Err(newer(path)),
    }
}

/// All small files in the log below `root`, by their paths there, also those that were removed since. Another process may write to
/// the log meanwhile.
///
/// # Errors
/// Where the disk fails, or a newer version has written the log.
pub(crate) fn puts(root: &Path) -> io::Result<BTreeMap<String, Bytes>> {
    let mut files = BTreeMap::new();
    for path in segments(&root.join(FOLDER))?.into_values() {
        // One that was retired meanwhile has its files at their paths.
        let Some(content) = if_exists(fs::read(&path))? else { continue };
        let mut read = record::read(records_of(&content, &path)?);
        for record in &mut read {
            if let Record::Put { path, bytes } = record {
                files.insert(path.to_owned(), Bytes::copy_from_slice(bytes));
            }
        }
    }
    Ok(files)
}

/// Applies the records of a segment. Gives the number of bytes at its end that aren't a record.
fn replay(number: u64, records: &[u8], files: &mut HashMap<String, Entry>) -> usize {
    let at = SystemTime::now();
    let mut read = record::read(records);
    for record in &mut read {
        match record {
            Record::Put { path, bytes } => {
                let bytes = Bytes::copy_from_slice(bytes);
                files.insert(path.to_owned(), Entry { number, bytes, at });
            }
            Record::Remove { path } => drop(files.remove(path)),
            Record::Damaged { path } => {
                tracing::error!(path, "the bytes of a file were altered in the write-ahead log");
            }
        }
    }
    read.left().len()
}

fn newer(path: &Path) -> io::Error {
    let message = format!("`{}` was written by a newer version, or is damaged", path.display());
    io::Error::new(io::ErrorKind::InvalidData, message)
}
