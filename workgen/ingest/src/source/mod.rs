//! The sources of data: local files and folders, and URLs, which are copied once.
//!
//! ```text
//! path, folder ------------------------.
//! http(s)://, s3:// -> a temporary copy +-> SourceFile -> unpacked (gzip, zstd) -> a format's reader
//! ```
//!
//! Files are read in streams, as often as needed. Copied to an unnamed temporary file are remote files, compressed NPZ files,
//! whose central directory is at the end, and compressed arrays in Fortran's order, whose rows are all over them. It knows no formats.

mod decoded;
mod file;
mod http;
#[cfg(test)]
mod loopback;
mod remote;
#[cfg(test)]
mod remote_tests;
#[cfg_attr(not(feature = "s3"), path = "s3_absent.rs")]
mod s3;
mod spool;

pub(crate) use decoded::is_utf_16;
pub(crate) use file::{Counted, Raw, SourceFile, Unpacked};

use crate::{bounds::SharedBounds, error::IngestError, progress::Progress};
use remote::Remote;
use sojourn_protocol::spec::FileKind;
use spool::TemporaryCopy;
use std::{
    collections::BTreeMap,
    env, fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// Finds the files that the job names, and copies remote ones.
pub(crate) struct Finder<'a> {
    /// The folder that paths are relative to.
    base_dir: &'a Path,
    /// Where copies are made.
    spool: PathBuf,
    bounds: SharedBounds,
    progress: &'a mut dyn FnMut(Progress<'_>),
    /// A URL that is named twice (an NPZ with all of the data) is fetched once.
    fetched: BTreeMap<String, SourceFile>,
}

impl<'a> Finder<'a> {
    pub(crate) fn new(
        base_dir: &'a Path,
        spool: &Path,
        bounds: &SharedBounds,
        progress: &'a mut dyn FnMut(Progress<'_>),
    ) -> Self {
        let (spool, bounds) = (spool.to_owned(), SharedBounds::clone(bounds));
        Self { base_dir, spool, bounds, progress, fetched: BTreeMap::new() }
    }

    /// The files that `key` of the job names: one, or the parts of a folder in name order.
    pub(crate) fn find(
        &mut self,
        key: &'static str,
        name: &str,
    ) -> Result<Vec<SourceFile>, IngestError> {
        if name.contains("://") {
            return self.fetch(key, name).map(|file| vec![file]);
        }
        let path = local_path(self.base_dir, name);
        if metadata(key, &path)?.is_dir() {
            parts(key, &path, name, &self.bounds)
        } else {
            Ok(vec![SourceFile::at(path, name, &self.bounds)?])
        }
    }

    /// The folder that `key` of the job names, where it is one and no file of data lies in it.
    pub(crate) fn folder_without_data(
        &mut self,
        key: &'static str,
        name: &str,
    ) -> Result<Option<PathBuf>, IngestError> {
        if name.contains("://") {
            return Ok(None);
        }
        let path = local_path(self.base_dir, name);
        if !metadata(key, &path)?.is_dir() || !data_files(&path, name)?.is_empty() {
            return Ok(None);
        }
        Ok(Some(path))
    }

    /// The folder that `key` of the job names, where images may be its data: no file of data lies in it, or nothing but tables, of which
    /// nobody says the label.
    pub(crate) fn folder_of_images(
        &mut self,
        key: &'static str,
        name: &str,
        label: Option<&str>,
    ) -> Result<Option<FolderOfImages>, IngestError> {
        if name.contains("://") {
            return Ok(None);
        }
        let path = local_path(self.base_dir, name);
        if !metadata(key, &path)?.is_dir() {
            return Ok(None);
        }
        let data = data_files(&path, name)?;
        let are_tables = data.iter().all(|(.., kind)| TABLES.contains(kind));
        let may_be = data.is_empty() || are_tables && label.is_none();
        Ok(may_be.then_some(FolderOfImages { path, tables: data.len() }))
    }

    /// The text files that `key` of the job names: one, or those of a folder in name order; none where there are no such.
    pub(crate) fn find_texts(
        &mut self,
        key: &'static str,
        name: &str,
    ) -> Result<Vec<SourceFile>, IngestError> {
        let path = local_path(self.base_dir, name);
        if !name.contains("://") && metadata(key, &path)?.is_dir() {
            let found = files_of(&[FileKind::Text], &path, name)?;
            return found
                .into_iter()
                .map(|(path, shown, _)| SourceFile::at(path, &shown, &self.bounds))
                .collect();
        }
        match FileKind::named(name) {
            Some(FileKind::Text) => self.find(key, name),
            _ => Ok(Vec::new()),
        }
    }

    /// An unpacked copy of a packed file.
    pub(crate) fn unpack(&mut self, packed: &SourceFile) -> Result<SourceFile, IngestError> {
        self.copy(packed.shown(), &mut packed.read()?, |error| packed.failed(error))
    }

    /// A copy of these bytes of the source that is called `name`; `failed` turns errors of reading them into those of the source.
    pub(crate) fn copy(
        &mut self,
        name: &str,
        bytes: &mut dyn Read,
        failed: impl Fn(io::Error) -> IngestError,
    ) -> Result<SourceFile, IngestError> {
        let mut copy = TemporaryCopy::new(&self.spool, name, &self.bounds, self.progress)?;
        copy.fill(bytes, self.progress, failed)?;
        copy.finish(self.progress)
    }

    /// The bounds of all reading.
    pub(crate) const fn bounds(&self) -> &SharedBounds {
        &self.bounds
    }

    /// Reports what was found.
    pub(crate) fn tell(&mut self, progress: Progress<'_>) {
        (self.progress)(progress);
    }

    fn fetch(&mut self, key: &'static str, url: &str) -> Result<SourceFile, IngestError> {
        if let Some(file) = self.fetched.get(url) {
            return Ok(file.clone());
        }
        let remote = Remote::parse(key, url)?;
        if !self.bounds.admits_url(url) {
            return Err(remote.refused());
        }
        let file = remote.fetch(&self.spool, &self.bounds, self.progress)?;
        self.fetched.insert(url.to_owned(), file.clone());
        Ok(file)
    }
}

/// The path that a job file writes as `name`: `~/` is the user's home folder, other paths are relative to `base_dir`.
#[must_use]
pub fn local_path(base_dir: &Path, name: &str) -> PathBuf {
    let home = env::var_os("HOME").filter(|home| !home.is_empty());
    in_home(home.map(PathBuf::from), name).unwrap_or_else(|| base_dir.join(name))
}

/// The path below the home folder, where `name` means one.
fn in_home(home: Option<PathBuf>, name: &str) -> Option<PathBuf> {
    let rest = name.strip_prefix("~/")?;
    Some(home?.join(rest.trim_start_matches('/')))
}

fn metadata(key: &'static str, path: &Path) -> Result<fs::Metadata, IngestError> {
    fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => IngestError::NotFound { key, path: path.to_owned() },
        _ => IngestError::io("look at", path)(error),
    })
}

/// The kinds of files that may be parts of a source.
const PARTS: [FileKind; 9] = [
    FileKind::Csv,
    FileKind::JsonLines,
    FileKind::Libsvm,
    FileKind::TfRecord,
    FileKind::Parquet,
    FileKind::Excel,
    FileKind::Npz,
    FileKind::Hdf5,
    FileKind::Safetensors,
];

/// Of these, tables of which a job always says the label.
const TABLES: [FileKind; 5] =
    [FileKind::Csv, FileKind::JsonLines, FileKind::Libsvm, FileKind::TfRecord, FileKind::Excel];

/// A folder that may be one of images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FolderOfImages {
    pub(crate) path: PathBuf,
    /// The tables that lie in it.
    pub(crate) tables: usize,
}

/// A file of data: where it lies, what the job calls it, and of which kind its name says it is.
type DataFile = (PathBuf, String, FileKind);

/// The files in a folder that may be parts of a source, in name order. Text is none: many folders have some that is about
/// their data.
fn data_files(folder: &Path, shown: &str) -> Result<Vec<DataFile>, IngestError> {
    files_of(&PARTS, folder, shown)
}

/// The files in a folder that are of these kinds by their names, in name order.
fn files_of(kinds: &[FileKind], folder: &Path, shown: &str) -> Result<Vec<DataFile>, IngestError> {
    let mut found: Vec<DataFile> = Vec::new();
    for entry in fs::read_dir(folder).map_err(IngestError::io("list", folder))? {
        let path = entry.map_err(IngestError::io("list", folder))?.path();
        let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else {
            continue;
        };
        let kind = FileKind::named(&name).filter(|kind| kinds.contains(kind));
        // Excel locks a workbook that is open by a file beside it.
        let is_hidden = name.starts_with('.') || name.starts_with("~$");
        let Some(kind) = kind.filter(|_| !is_hidden) else { continue };
        let metadata = fs::metadata(&path).map_err(IngestError::io("look at", &path))?;
        if metadata.is_file() {
            found.push((path, format!("{}/{name}", shown.trim_end_matches('/')), kind));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

/// A folder's data files in name order, which must all be of one kind.
fn parts(
    key: &'static str,
    folder: &Path,
    shown: &str,
    bounds: &SharedBounds,
) -> Result<Vec<SourceFile>, IngestError> {
    let found = data_files(folder, shown)?;
    let Some((_, first, kind)) = found.first() else {
        return Err(IngestError::NoParts { key, path: folder.to_owned() });
    };
    if let Some((_, other, _)) = found.iter().find(|(.., of)| of != kind) {
        let files = Box::new((first.clone(), other.clone()));
        return Err(IngestError::MixedParts { key, path: folder.to_owned(), files });
    }
    found.into_iter().map(|(path, shown, _)| SourceFile::at(path, &shown, bounds)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tilde_is_the_home_folder() {
        let home = || Some(PathBuf::from("/home/ada"));
        assert_eq!(in_home(home(), "~/data/t.csv"), Some("/home/ada/data/t.csv".into()));
        assert_eq!(in_home(home(), "~//t.csv"), Some("/home/ada/t.csv".into()));
        assert_eq!(in_home(home(), "a/~/t.csv"), None);
        assert_eq!(in_home(home(), "~t.csv"), None);
        assert_eq!(in_home(None, "~/t.csv"), None);
    }
}
