//! The event files in a folder. Each run has one, which is appended to.
//!
//! A file whose content isn't the beginning of what is to be written, as after a trial was taken back, is replaced by one with
//! another name. Readers keep their place in a file, and would be lost in one that was changed.

use crate::cli::{model::atomic_file::NewFile, terminal::exit::Failure};
use sojourn_files::if_exists;
use sojourn_protocol::{ids::JobId, time::UnixMillis};
use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// The beginning of the names by which TensorBoard knows event files.
const PREFIX: &str = "events.out.tfevents.";
const MARK: &str = ".sojourn-job-";

/// A folder with the event files of one job.
pub(super) struct EventFolder {
    path: PathBuf,
    /// The beginning of the names of all files.
    stem: String,
    /// By run; the experiment's has no name.
    written: BTreeMap<String, Written>,
}

/// A run's file.
struct Written {
    /// How often it was replaced.
    generation: u64,
    bytes: Vec<u8>,
}

impl EventFolder {
    /// Opens the folder, which is made where it is missing. The time makes jobs of different servers differ.
    pub(super) fn open(path: &Path, job: JobId, submitted_at: UnixMillis) -> Result<Self, Failure> {
        let stem = format!("{PREFIX}{}{MARK}{job}.", submitted_at.0 / 1000);
        for name in names(path)? {
            if name.starts_with(PREFIX) && name.contains(MARK) && !name.starts_with(&stem) {
                return Err(Failure::call(format!(
                    "`{}` has the event files of another job: name another folder",
                    path.display()
                )));
            }
        }
        Ok(Self { path: path.to_owned(), stem, written: BTreeMap::new() })
    }

    /// Brings the file of a run to these bytes.
    pub(super) fn put(&mut self, run: &str, bytes: Vec<u8>) -> Result<(), Failure> {
        let folder = self.path.join(run);
        let known = match self.written.remove(run) {
            Some(known) => Some(known),
            None => find(&folder, &self.stem)?,
        };
        let generation = match &known {
            None => 0,
            Some(known) => match bytes.strip_prefix(known.bytes.as_slice()) {
                Some(rest) => {
                    append(&folder.join(self.name(known.generation)), rest)?;
                    known.generation
                }
                None => known.generation + 1,
            },
        };
        if known.as_ref().map(|known| known.generation) != Some(generation) {
            fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
            NewFile::write(&folder.join(self.name(generation)), &bytes)?;
        }
        if let Some(former) = known.filter(|known| known.generation != generation) {
            let former = folder.join(self.name(former.generation));
            if_exists(fs::remove_file(&former)).map_err(|error| failed(&former, &error))?;
        }
        self.written.insert(run.to_owned(), Written { generation, bytes });
        Ok(())
    }

    fn name(&self, generation: u64) -> String {
        format!("{}{generation:04}", self.stem)
    }
}

/// The newest file of a run that an earlier call has left.
fn find(folder: &Path, stem: &str) -> Result<Option<Written>, Failure> {
    let generations = names(folder)?.into_iter();
    let generations = generations.filter_map(|name| name.strip_prefix(stem)?.parse::<u64>().ok());
    let Some(generation) = generations.max() else { return Ok(None) };
    let path = folder.join(format!("{stem}{generation:04}"));
    let bytes = fs::read(&path).map_err(|error| failed(&path, &error))?;
    Ok(Some(Written { generation, bytes }))
}

/// The names in a folder; none of one that is missing.
fn names(folder: &Path) -> Result<Vec<String>, Failure> {
    let read = || -> io::Result<Vec<String>> {
        let Some(entries) = if_exists(fs::read_dir(folder))? else { return Ok(Vec::new()) };
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    };
    read().map_err(|error| failed(folder, &error))
}

/// Appends whole records in one call: a reader, or a later call, takes a torn one for the beginning of the whole.
fn append(path: &Path, rest: &[u8]) -> Result<(), Failure> {
    if rest.is_empty() {
        return Ok(());
    }
    let write = |mut file: File| file.write_all(rest);
    let written = OpenOptions::new().append(true).open(path).and_then(write);
    written.map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::work(format!("can't write `{}`: {error}", path.display()))
}
