//! The file that a command writes: replaced whole, by a rename. A path that is no file (a pipe, a device) is written
//! through.

use crate::cli::terminal::exit::Failure;
use sojourn_files::{Access, AtomicFile, Durability};
use std::{
    fs::{File, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

/// The file while it is being written. Dropped before [`NewFile::finish`], it leaves nothing.
pub(crate) struct NewFile {
    to: To,
    path: PathBuf,
}

enum To {
    /// A new file, which is renamed at its end.
    Beside(BufWriter<AtomicFile>),
    /// The pipe or device that has the name already.
    Through(BufWriter<File>),
}

impl NewFile {
    /// Begins a file that will lie at `path`, in the place of one that is there.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        // A link stays, and what it leads to is replaced.
        let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
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
        if path.exists() && !path.is_file() {
            let file = OpenOptions::new().write(true).open(path);
            let file = BufWriter::new(file.map_err(|error| failed(path, &error))?);
            return Ok(Self { to: To::Through(file), path: path.clone() });
        }
        // Others may read it, as with any file that a person makes.
        let file = AtomicFile::create_unique(path, Access::Mask);
        let file = BufWriter::new(file.map_err(|error| failed(path, &error))?);
        Ok(Self { to: To::Beside(file), path: path.clone() })
    }

    /// Writes a whole file.
    pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
        let mut file = Self::create(path)?;
        file.write_all(bytes).map_err(|error| failed(path, &error))?;
        file.finish()
    }

    /// Makes it durable and gives it its name.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let Self { to, path } = self;
        let file = match to {
            To::Beside(file) => file,
            To::Through(mut file) => return file.flush().map_err(|error| failed(&path, &error)),
        };
        let file = file.into_inner().map_err(|error| failed(&path, error.error()))?;
        file.commit(Durability::Synced).map_err(|error| failed(&path, &error))
    }
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::work(format!("can't write `{}`: {error}", path.display()))
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            To::Beside(file) => file.write(bytes),
            To::Through(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Beside(file) => file.flush(),
            To::Through(file) => file.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    #[cfg(unix)]
    fn a_link_stays_and_what_it_leads_to_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        NewFile::write(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }

    #[test]
    #[cfg(unix)]
    fn a_path_that_is_no_file_is_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let refused = NewFile::write(&socket, b"new").unwrap_err();
        assert!(refused.messages()[0].contains("can't write"), "{refused:?}");
        assert!(
            socket.exists() && !socket.is_file(),
            "a socket can't be opened, and is still there"
        );
        NewFile::write(Path::new("/dev/null"), b"new").unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }
}
