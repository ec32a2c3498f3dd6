//! A file whose name never stands for half of it: written beside, and renamed at its end.

use super::failure::Failure;
use std::{
    fs,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;

/// The file while it is being written; gone where it is dropped before [`NewFile::finish`].
pub(crate) struct NewFile {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl NewFile {
    /// Begins a file that will lie at `path`, in the place of one that is there.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if path.is_dir() {
            return Err(Failure::call(format!(
                "`{}` is a folder; a file is wanted",
                path.display()
            )));
        }
        if !folder.is_dir() {
            return Err(Failure::call(format!("there is no folder `{}`", folder.display())));
        }
        let mut file = tempfile::Builder::new();
        #[cfg(unix)]
        {
            // Others may read it, as with any file that a person makes; the process's mask still holds.
            use std::os::unix::fs::PermissionsExt as _;
            file.permissions(fs::Permissions::from_mode(0o666));
        }
        let file = file.prefix(".sojourn-").tempfile_in(folder);
        let file = BufWriter::new(file.map_err(|error| failed(path, &error))?);
        Ok(Self { file, path: path.to_owned() })
    }

    /// Writes a whole file.
    pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
        let mut file = Self::create(path)?;
        file.write_all(bytes).map_err(|error| failed(path, &error))?;
        file.finish()
    }

    /// Makes it durable and gives it its name.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let Self { file, path } = self;
        let file = file.into_inner().map_err(|error| failed(&path, error.error()))?;
        file.as_file().sync_all().map_err(|error| failed(&path, &error))?;
        file.persist(&path).map_err(|error| failed(&path, &error.error))?;
        Ok(())
    }
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::work(format!("can't write `{}`: {error}", path.display()))
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
