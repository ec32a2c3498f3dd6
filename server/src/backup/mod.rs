//! Copies a server's folder while the server runs, so that another server can go on from the copy.
//!
//! ```text
//!   sweep the blobs                       most of them, once
//!   each round:
//!     sweep blobs and uploads             those of meanwhile
//!     copy the journal                    all events up to one moment
//!     sweep again, and read the log       what the journal names was there at that moment
//!     does the copy have all that its journal names? ---no---> next round
//!   put the journal in its place; delete what it doesn't name
//! ```
//!
//! A blob is stored before the journal names it, and deleted three minutes after nothing does. So a round finds all, unless it takes
//! longer than that: then the next one does, which has less to copy. Until the new journal is in its place the folder is the backup
//! of before.
//!
//! Uploads go once they are assimilated. One that a round misses costs no more than its unit, which is trained again.

mod marker;

use crate::{
    data_folder::{DataFolder, DataFolderError},
    journal::{Journal as _, JournalError, SqliteJournal},
    shell::{ShellError, recover},
};
use marker::Marker;
use rustix::fs::syncfs;
use sojourn_blobs::{BLOBS_FOLDER, BlobError, BlobStore, FilesCount, FolderCopy, WantedFiles};
use sojourn_core::{CoreConfig, InvariantSet, JournalPosition, State, state::PastState};
use sojourn_files::{Access, Durability, if_exists};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    quantity::to_u64,
    report::Outcome,
};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

/// Rounds until it is given up that the journal names a file that isn't there.
const MAX_ROUNDS: usize = 8;
/// The journal's file in a server's folder, and the name of one that isn't in its place yet.
const JOURNAL: &str = "journal.sqlite";
const NEW_JOURNAL: &str = "new.sqlite";
/// Files at the top of a server's folder that aren't copied as they are: locks, addresses, room, and the journal with its notes.
const NOT_COPIED: [&str; 4] = ["lock", "address", "journal.reserve", marker::FILE];

/// Why a folder was not backed up, or a backup isn't whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum BackupError {
    #[error(
        "there is no `{JOURNAL}` in `{}`: name the data folder of the server by `--data DIR`; a journal in Redis is backed up by \
         Redis, and blobs in a store by that store", .0.display()
    )]
    NoJournal(PathBuf),
    #[error("`{}` isn't empty, and is no backup: name an empty folder", .0.display())]
    NotEmpty(PathBuf),
    #[error("`{}` and `{}` lie within each other: name a folder elsewhere", from.display(), to.display())]
    Within { from: PathBuf, to: PathBuf },
    #[error("`{}` is the backup of another server: name another folder", .0.display())]
    OfAnother(PathBuf),
    #[error(
        "a server has run in `{}`, so that it is no backup any more: name another folder, and serve copies of backups", .0.display()
    )]
    Served(PathBuf),
    #[error("a server or another backup uses `{}`", .0.display())]
    InUse(PathBuf),
    #[error("`{}` is no backup", .0.display())]
    NoBackup(PathBuf),
    #[error(
        "the journal names {count} blobs that aren't there or are altered, of them `{first}`. Where the server has its blobs \
         elsewhere (`serve --blobs`), back up that store; otherwise its disk has lost them"
    )]
    Missing { count: usize, first: Digest },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the state can't be brought back from the journal")]
    State(#[from] ShellError),
    #[error(transparent)]
    Blobs(#[from] BlobError),
    #[error("can't use `{}`", path.display())]
    File { path: PathBuf, source: io::Error },
}

impl BackupError {
    /// Is the call wrong, rather than something that failed?
    #[must_use]
    pub const fn is_of_call(&self) -> bool {
        matches!(
            self,
            Self::NoJournal(_)
                | Self::NotEmpty(_)
                | Self::Within { .. }
                | Self::OfAnother(_)
                | Self::Served(_)
                | Self::InUse(_)
                | Self::NoBackup(_)
        )
    }
}

/// A backup that is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackedUp {
    /// The last event in it.
    pub position: JournalPosition,
    /// Jobs in the state.
    pub jobs: usize,
    /// Hosts in the state.
    pub hosts: usize,
    /// Blobs, with their decoded bytes.
    pub blobs: FilesCount,
    /// Files that were copied this time.
    pub copied: FilesCount,
    /// Files of the backup before that nothing needs any more.
    pub deleted: FilesCount,
    /// Results whose uploads the backup lacks: their units are trained again.
    pub lost_uploads: usize,
}

/// The state of a copied journal, as far as a backup needs it.
struct Copied {
    position: JournalPosition,
    jobs: usize,
    hosts: usize,
    wanted: WantedFiles,
}

/// Copies the folder of a server, which may be running, into a folder that is empty or has a backup of it. `progress` gets the
/// bytes of blobs that were copied and those to copy.
///
/// # Errors
/// Where either folder can't be used, or has lost blobs. The backup of before stays then.
pub fn back_up(
    from: &Path,
    to: &Path,
    mut progress: impl FnMut(u64, u64),
) -> Result<BackedUp, BackupError> {
    if !from.join(JOURNAL).is_file() {
        return Err(BackupError::NoJournal(from.to_owned()));
    }
    check_apart(from, to)?;
    let _lock = take(to)?;
    let marker = prepare(from, to)?;
    let folder = FolderCopy::new(from, to);
    let mut copied = folder.sweep(&mut progress)?;
    // Where the blobs are elsewhere, another round finds no more of them.
    let most = if from.join(BLOBS_FOLDER).is_dir() { MAX_ROUNDS } else { 1 };
    let mut rounds = 0;
    let (journal, lost_uploads) = loop {
        rounds += 1;
        add(&mut copied, folder.sweep(&mut |_, _| {})?);
        copy_journal(from, to)?;
        let logged = folder.logged()?;
        add(&mut copied, folder.sweep(&mut |_, _| {})?);
        let journal = read_journal(&to.join(NEW_JOURNAL))?;
        add(&mut copied, folder.take(&logged, &journal.wanted)?);
        let WantedFiles { blobs, uploads } = folder.lacks(&journal.wanted)?;
        match blobs.first() {
            None if uploads.is_empty() || rounds >= most => break (journal, uploads.len()),
            Some(first) if rounds >= most => {
                return Err(BackupError::Missing { count: blobs.len(), first: first.sha256 });
            }
            _ => {}
        }
    };
    copy_others(from, to)?;
    put_in_place(to, &marker, journal.position)?;
    let deleted = folder.prune(&journal.wanted)?;
    let blobs = count(&journal.wanted.blobs);
    let Copied { position, jobs, hosts, .. } = journal;
    Ok(BackedUp { position, jobs, hosts, blobs, copied, deleted, lost_uploads })
}

/// Reads all of a backup: its journal's chain, and the bytes of every blob that the journal names. `progress` gets the blobs that
/// were read and all of them.
///
/// # Errors
/// Where anything is missing or altered.
pub async fn check_backup(
    folder: &Path,
    mut progress: impl FnMut(u64, u64),
) -> Result<BackedUp, BackupError> {
    let marker = Marker::read(folder)?.ok_or_else(|| BackupError::NoBackup(folder.to_owned()))?;
    if marker.positions.is_empty() || !folder.join(JOURNAL).is_file() {
        return Err(BackupError::NoBackup(folder.to_owned()));
    }
    let _lock = take(folder)?;
    let journal = read_journal(&folder.join(JOURNAL))?;
    if !marker.positions.contains(&journal.position) {
        return Err(BackupError::Served(folder.to_owned()));
    }
    let store = BlobStore::open(&folder.join(BLOBS_FOLDER))?;
    let (mut missing, all) = (Vec::new(), to_u64(journal.wanted.blobs.len()));
    for (number, blob) in (1..).zip(&journal.wanted.blobs) {
        match store.size_of_whole(blob.sha256).await {
            Ok(Some(bytes)) if bytes == blob.bytes => {}
            Ok(_)
            | Err(BlobError::Missing(_) | BlobError::Altered { .. } | BlobError::Shortened(_)) => {
                missing.push(blob.sha256);
            }
            Err(error) => return Err(error.into()),
        }
        progress(number, all);
    }
    if let Some(first) = missing.first() {
        return Err(BackupError::Missing { count: missing.len(), first: *first });
    }
    let WantedFiles { uploads, .. } = FolderCopy::new(folder, folder).lacks(&journal.wanted)?;
    let blobs = count(&journal.wanted.blobs);
    let (copied, deleted) = (FilesCount::default(), FilesCount::default());
    let (lost_uploads, Copied { position, jobs, hosts, .. }) = (uploads.len(), journal);
    Ok(BackedUp { position, jobs, hosts, blobs, copied, deleted, lost_uploads })
}

fn add(sum: &mut FilesCount, more: FilesCount) {
    sum.files = sum.files.saturating_add(more.files);
    sum.bytes = sum.bytes.saturating_add(more.bytes);
}

fn count<'a>(blobs: impl IntoIterator<Item = &'a BlobRef>) -> FilesCount {
    blobs.into_iter().fold(FilesCount::default(), |mut sum, blob| {
        add(&mut sum, FilesCount { files: 1, bytes: blob.bytes });
        sum
    })
}

/// Locks a backup's folder, which is made where it is missing. No server can run in it meanwhile.
fn take(folder: &Path) -> Result<DataFolder, BackupError> {
    DataFolder::take(folder).map_err(|error| match error {
        DataFolderError::File { path, source } => BackupError::File { path, source },
        _ => BackupError::InUse(folder.to_owned()),
    })
}

/// Refuses folders of which one has the other.
fn check_apart(from: &Path, to: &Path) -> Result<(), BackupError> {
    let real = |path: &Path| {
        // The folder of a backup may not be there yet.
        let mut missing = Vec::new();
        let mut known = path;
        loop {
            if let Ok(real) = known.canonicalize() {
                return missing.iter().rev().fold(real, |path, name| path.join(name));
            }
            match (known.parent(), known.file_name()) {
                (Some(above), Some(name)) => {
                    missing.push(name.to_owned());
                    known = if above.as_os_str().is_empty() { Path::new(".") } else { above };
                }
                _ => return path.to_owned(),
            }
        }
    };
    let (real_from, real_to) = (real(from), real(to));
    if real_from.starts_with(&real_to) || real_to.starts_with(&real_from) {
        return Err(BackupError::Within { from: from.to_owned(), to: to.to_owned() });
    }
    Ok(())
}

/// Looks whether a folder may get the backup, and marks it as one.
fn prepare(from: &Path, to: &Path) -> Result<Marker, BackupError> {
    let store = if_exists(fs::read_to_string(from.join(BLOBS_FOLDER).join("store-id")));
    let store = store.map_err(|source| BackupError::File { path: from.to_owned(), source })?;
    let Some(marker) = Marker::read(to)? else {
        let error = |source| BackupError::File { path: to.to_owned(), source };
        for entry in fs::read_dir(to).map_err(error)? {
            if entry.map_err(error)?.file_name() != "lock" {
                return Err(BackupError::NotEmpty(to.to_owned()));
            }
        }
        let marker = Marker::new(store, Vec::new());
        marker.write(to)?;
        return Ok(marker);
    };
    if marker.store != store {
        return Err(BackupError::OfAnother(to.to_owned()));
    }
    let fits = match reached(to)? {
        Some(position) => marker.positions.contains(&position),
        // A server makes the note. A backup that was cut short may lack it.
        None => true,
    };
    // A server in the folder has a log of its own.
    if !fits || to.join("write-ahead-log").exists() {
        return Err(BackupError::Served(to.to_owned()));
    }
    Ok(marker)
}

/// The note beside a journal of how far it has come.
fn note_of(journal: &Path) -> PathBuf {
    let mut path = journal.as_os_str().to_owned();
    path.push(".reached");
    path.into()
}

/// The position that the backup's journal has reached, by the note beside it.
fn reached(folder: &Path) -> Result<Option<JournalPosition>, BackupError> {
    let path = note_of(&folder.join(JOURNAL));
    let text = if_exists(fs::read_to_string(&path));
    let text = text.map_err(|source| BackupError::File { path, source })?;
    Ok(text.and_then(|text| text.trim().parse().ok().map(JournalPosition)))
}

fn remove(path: &Path) -> Result<(), BackupError> {
    let error = |source| BackupError::File { path: path.to_owned(), source };
    if_exists(fs::remove_file(path)).map(drop).map_err(error)
}

/// The files of a journal beside its own.
fn beside(journal: &Path) -> [PathBuf; 3] {
    ["-wal", "-shm", "-journal"].map(|ending| {
        let mut path = journal.as_os_str().to_owned();
        path.push(ending);
        path.into()
    })
}

/// Copies the journal as it is at one moment.
fn copy_journal(from: &Path, to: &Path) -> Result<(), BackupError> {
    let new = to.join(NEW_JOURNAL);
    beside(&new).iter().chain([&new, &note_of(&new)]).try_for_each(|path| remove(path))?;
    Ok(SqliteJournal::copy(&from.join(JOURNAL), &new)?)
}

/// Verifies a journal, and reads what its state wants.
fn read_journal(path: &Path) -> Result<Copied, BackupError> {
    let mut journal = SqliteJournal::open(path)?;
    let position = journal.tail();
    // A state that breaks an invariant isn't served, but it may be copied.
    let recovered = recover(&mut journal, CoreConfig::default(), InvariantSet::ALL)?;
    let state = recovered.core.state();
    Ok(Copied { position, jobs: state.jobs.len(), hosts: state.hosts.len(), wanted: wanted(state) })
}

/// The blobs and uploads that a state names.
fn wanted(state: &State) -> WantedFiles {
    let uploads = state.past.iter().filter_map(|(lease, past)| match &past.state {
        PastState::Acknowledged(outcome) => match &**outcome {
            Outcome::Trained(trained) => Some((*lease, trained.checkpoint)),
            Outcome::Evaluated(_) | Outcome::Failed(_) => None,
        },
        PastState::Closed(_) | PastState::Failed(_) | PastState::Ended(_) => None,
    });
    WantedFiles { blobs: state.blobs.all_published().collect(), uploads: uploads.collect() }
}

/// Copies tokens, sessions and the like, and removes those that the server has no more.
fn copy_others(from: &Path, to: &Path) -> Result<(), BackupError> {
    let names = |folder: &Path| -> Result<Vec<PathBuf>, BackupError> {
        let error = |source| BackupError::File { path: folder.to_owned(), source };
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).map_err(error)? {
            let entry = entry.map_err(error)?;
            let name = entry.file_name();
            let text = name.to_string_lossy();
            let is_kept = NOT_COPIED.contains(&&*text)
                || text.starts_with(JOURNAL)
                || text.starts_with(NEW_JOURNAL)
                || text.ends_with(".tmp");
            if !is_kept && entry.file_type().map_err(error)?.is_file() {
                names.push(PathBuf::from(name));
            }
        }
        Ok(names)
    };
    let copied = names(from)?;
    for name in &copied {
        let (path, target) = (from.join(name), to.join(name));
        let read = if_exists(fs::read(&path));
        let Some(bytes) = read.map_err(|source| BackupError::File { path, source })? else {
            continue;
        };
        sojourn_files::write(&target, &bytes, Access::Owner, Durability::Unsynced)
            .map_err(|source| BackupError::File { path: target, source })?;
    }
    for name in names(to)? {
        if !copied.contains(&name) {
            remove(&to.join(name))?;
        }
    }
    Ok(())
}

/// Makes all that was copied last, and then the new journal the backup's.
fn put_in_place(
    folder: &Path,
    marker: &Marker,
    position: JournalPosition,
) -> Result<(), BackupError> {
    let error = |source| BackupError::File { path: folder.to_owned(), source };
    let sync = || -> Result<(), BackupError> {
        let synced = File::open(folder).and_then(|folder| Ok(syncfs(folder)?));
        synced.map_err(error)
    };
    sync()?;
    let store = marker.store.clone();
    let both = marker.positions.iter().copied().chain([position]).collect();
    Marker::new(store.clone(), both).write(folder)?;
    let (new, journal) = (folder.join(NEW_JOURNAL), folder.join(JOURNAL));
    beside(&journal).iter().try_for_each(|path| remove(path))?;
    fs::rename(&new, &journal).map_err(error)?;
    fs::rename(note_of(&new), note_of(&journal)).map_err(error)?;
    sync()?;
    Marker::new(store, vec![position]).write(folder)
}
