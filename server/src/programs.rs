//! Programs that machines fetch when they start for the first time: client and trainer, each named by its digest.
//!
//! A bought machine has nothing but an operating system and a script. The script has the digests, so that it runs the very
//! programs that the operator put there, from whomever it got them.

use sha2::{Digest as _, Sha256};
use sojourn_protocol::{digest::Digest, text::is_plain_line, view::ProgramView};
use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

/// Characters of a program's name.
const MAX_NAME_CHARS: usize = 200;
/// Programs that one server has.
const MAX_PROGRAMS: usize = 64;
/// Bytes that are read at once.
const CHUNK: usize = 1 << 20;

/// A program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// As it is listed.
    pub(crate) view: ProgramView,
    /// The program's file.
    pub(crate) path: PathBuf,
}

/// Why the programs can't be served.
#[derive(Debug, thiserror::Error)]
pub enum ProgramsError {
    /// A file or the folder can't be read.
    #[error("can't read `{}`", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    /// There are more than any server needs.
    #[error("`{}` has more than {MAX_PROGRAMS} files", .0.display())]
    TooMany(PathBuf),
}

/// The programs of a folder, by name: its files, but no folders and none whose name begins with a point.
///
/// # Errors
/// [`ProgramsError`].
pub(crate) fn programs(folder: &Path) -> Result<Vec<Program>, ProgramsError> {
    let unreadable = |error| ProgramsError::Unreadable(folder.to_owned(), error);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        let shown = |name: &String| !name.starts_with('.') && is_plain_line(name, MAX_NAME_CHARS);
        let Some(name) = name.filter(shown).filter(|_| path.is_file()) else { continue };
        if found.len() >= MAX_PROGRAMS {
            return Err(ProgramsError::TooMany(folder.to_owned()));
        }
        let (sha256, bytes) =
            digest(&path).map_err(|error| ProgramsError::Unreadable(path.clone(), error))?;
        found.push(Program { view: ProgramView { name, bytes, sha256 }, path });
    }
    found.sort_by(|a, b| a.view.name.cmp(&b.view.name));
    Ok(found)
}

fn digest(path: &Path) -> io::Result<(Digest, u64)> {
    let (mut file, mut hash, mut bytes) = (File::open(path)?, Sha256::new(), 0_u64);
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = file.read(&mut chunk)?;
        let Some(part) = chunk.get(..read).filter(|part| !part.is_empty()) else { break };
        hash.update(part);
        bytes += sojourn_protocol::quantity::to_u64(read);
    }
    Ok((Digest(hash.finalize().into()), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_listed_by_name_with_their_digests() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("folder")).unwrap();
        for (name, text) in [("b.tar.gz", "two"), ("a.tar.gz", "one"), (".hidden", "x")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let found = programs(folder.path()).unwrap();
        let views: Vec<_> = found.into_iter().map(|program| program.view).collect();
        let view = |name: &str, text: &str| ProgramView {
            name: name.into(),
            bytes: 3,
            sha256: Digest::of(text.as_bytes()),
        };
        assert_eq!(views, [view("a.tar.gz", "one"), view("b.tar.gz", "two")]);
        let missing = programs(&folder.path().join("nowhere")).unwrap_err();
        assert!(missing.to_string().contains("nowhere"));
    }
}
