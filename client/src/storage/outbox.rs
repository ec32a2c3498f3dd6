//! Results on disk, from before their upload until their reports have ended: of finished units, and of
//! hops that go on, whose later parts take the place of earlier ones. After a start only those count whose
//! bytes were checked again. What can't be read is not what is damaged: only the latter is deleted.
//!
//! ```text
//! 7.json              the record of lease 7
//! 7.120.safetensors   its checkpoint, which ends at step 120 of its trial
//! ```

use crate::{storage::folder::write_whole, transfer::digest_of_file};
use serde::{Deserialize, Serialize};
use sojourn_files::if_exists;
use sojourn_protocol::{
    digest::BlobRef,
    ids::LeaseId,
    report::{Outcome, Report},
    time::Millis,
};
use std::{
    ffi::OsStr,
    fs, io,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

/// How a checkpoint's name ends.
const CHECKPOINT: &str = "safetensors";
/// The format of a record that is written. In format 1 checkpoints were named by their batch.
const FORMAT: u32 = 2;
/// The formats that are read.
const READ_FORMATS: RangeInclusive<u32> = 1..=FORMAT;

/// The folder of finished results.
#[derive(Debug)]
pub(crate) struct Outbox {
    root: PathBuf,
}

/// The record of a result on disk, beside its checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    format: u32,
    report: Report,
    heartbeat_every: Millis,
}

/// A result that is safe on disk.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finished {
    pub(crate) report: Report,
    pub(crate) heartbeat_every: Millis,
    /// The checkpoint to upload before the report, and its path.
    pub(crate) checkpoint: Option<(BlobRef, PathBuf)>,
}

impl Outbox {
    /// Opens the folder, with all results that are whole; what is damaged is deleted, and what can't be
    /// read now is kept for another start. Reads every checkpoint.
    pub(crate) fn open(root: PathBuf) -> io::Result<(Self, Vec<Finished>)> {
        let outbox = Self { root };
        let mut whole = Vec::new();
        let mut kept = Vec::new();
        for file in fs::read_dir(&outbox.root)? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                match outbox.read(&path) {
                    Ok(finished) => {
                        kept.push(path);
                        kept.extend(finished.checkpoint.iter().map(|(_, path)| path.clone()));
                        whole.push(finished);
                    }
                    Err(error) if is_damage(&error) => {
                        let path = path.display();
                        tracing::warn!(%path, %error, "a finished result is damaged; it is dropped");
                    }
                    Err(error) => {
                        let shown = path.display();
                        tracing::error!(path = %shown, %error, "a finished result can't be read now; it is kept");
                        // Whichever of its checkpoints it is about.
                        kept.extend(outbox.files(&path)?);
                    }
                }
            }
        }
        for file in fs::read_dir(&outbox.root)? {
            let path = file?.path();
            if !kept.contains(&path) {
                fs::remove_file(path)?;
            }
        }
        whole.sort_by_key(|finished| finished.report.lease);
        Ok((outbox, whole))
    }

    /// Keeps a result, in place of an earlier part of the same unit. `output` is the checkpoint that the
    /// trainer wrote; it is moved in.
    pub(crate) fn store(
        &self,
        report: Report,
        heartbeat_every: Millis,
        output: &Path,
    ) -> io::Result<Finished> {
        let path = self.record(report.lease);
        let checkpoint = self.checkpoint(&report, FORMAT);
        let record = Record { format: FORMAT, report, heartbeat_every };
        let text = serde_json::to_vec(&record)?;
        fs::create_dir_all(&self.root)?;
        let earlier = self.files(&path)?;
        // The record last: where it is, the checkpoint was.
        let stored = match &checkpoint {
            Some((_, checkpoint)) => fs::rename(output, checkpoint),
            None => Ok(()),
        }
        .and_then(|()| write_whole(&path, &text));
        if let Err(error) = stored {
            // An earlier part is as good as it was.
            delete(checkpoint.iter().map(|(_, path)| path));
            return Err(error);
        }
        let now = checkpoint.as_ref().map(|(_, path)| path);
        delete(earlier.iter().filter(|file| **file != path && Some(*file) != now));
        Ok(Finished { report: record.report, heartbeat_every, checkpoint })
    }

    /// Forgets a result.
    pub(crate) fn remove(&self, lease: LeaseId) {
        let record = self.record(lease);
        // The record first: without it the checkpoint is nobody's.
        delete([&record]);
        match if_exists(self.files(&record)) {
            Ok(files) => delete(files.iter().flatten()),
            Err(error) => tracing::warn!(%lease, %error, "a result can't be deleted"),
        }
    }

    /// Is the result's checkpoint still what its report says?
    pub(crate) async fn verify(&self, finished: &Finished) -> io::Result<()> {
        let Some((blob, path)) = finished.checkpoint.clone() else { return Ok(()) };
        let checked = tokio::task::spawn_blocking(move || verify_file(blob, &path));
        checked.await.map_err(io::Error::other)?
    }

    fn read(&self, path: &Path) -> io::Result<Finished> {
        let damaged = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let Record { format, report, heartbeat_every } = serde_json::from_slice(&fs::read(path)?)?;
        if !READ_FORMATS.contains(&format) {
            return Err(damaged(format!("its format is {format}")));
        }
        if path != self.record(report.lease) {
            return Err(damaged(format!("it is about lease {}", report.lease)));
        }
        let checkpoint = self.checkpoint(&report, format);
        if let Some((blob, path)) = &checkpoint {
            verify_file(*blob, path)?;
        }
        Ok(Finished { report, heartbeat_every, checkpoint })
    }

    fn record(&self, lease: LeaseId) -> PathBuf {
        self.root.join(format!("{lease}.json"))
    }

    /// The checkpoint that a report promises, and where it lies beside a record of that format.
    fn checkpoint(&self, report: &Report, format: u32) -> Option<(BlobRef, PathBuf)> {
        let Outcome::Trained(trained) = &report.outcome else { return None };
        // Several hops of one lease have the same batches, and each step once.
        let end = if format == 1 { u64::from(trained.end.batch) } else { trained.end.step };
        let name = format!("{}.{end}.{CHECKPOINT}", report.lease);
        Some((trained.checkpoint, self.root.join(name)))
    }

    /// All files of the lease that a record is of.
    fn files(&self, record: &Path) -> io::Result<Vec<PathBuf>> {
        let lease = record.file_stem();
        let files = fs::read_dir(&self.root)?.map(|file| file.map(|file| file.path()));
        files.filter(|file| file.as_ref().map_or(true, |file| file_prefix(file) == lease)).collect()
    }
}

/// A file's name before its first dot.
fn file_prefix(file: &Path) -> Option<&OsStr> {
    let name = file.file_name()?.to_str()?;
    Some(OsStr::new(name.split_once('.').map_or(name, |(prefix, _)| prefix)))
}

/// Deletes files that may be gone.
fn delete<'a>(files: impl IntoIterator<Item = &'a PathBuf>) {
    for path in files {
        if let Err(error) = if_exists(fs::remove_file(path)) {
            tracing::warn!(path = %path.display(), %error, "a result can't be deleted");
        }
    }
}

/// Does the error say that the file's bytes are lost, rather than out of reach?
pub(crate) fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
    matches!(error.kind(), InvalidData | NotFound | UnexpectedEof)
}

fn verify_file(blob: BlobRef, path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.len() == blob.bytes && digest_of_file(path)? == blob.sha256 {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "the finished checkpoint has changed on disk"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::{
        digest::Digest,
        ids::Version,
        position::Position,
        report::{Failure, FailureKind, Sums, Trained},
    };

    fn trained(lease: u64, bytes: &[u8]) -> Report {
        let start =
            Position { epoch: Default::default(), shard: Default::default(), batch: 2, step: 9 };
        let checkpoint = BlobRef { sha256: Digest::of(bytes), bytes: bytes.len() as u64 };
        let outcome = Outcome::Trained(Trained {
            base: Version(3),
            checkpoint,
            end: start,
            sums: Sums { rows: 8, loss: 0.1 + 0.2, correct: Some(3), ..Sums::default() },
            train_micros: 5,
        });
        Report { lease: LeaseId(lease), outcome }
    }

    fn failed(lease: u64) -> Report {
        let failure = Failure { kind: FailureKind::Trainer, message: "no".into() };
        Report { lease: LeaseId(lease), outcome: Outcome::Failed(failure) }
    }

    fn store(outbox: &Outbox, dir: &Path, lease: u64, bytes: &[u8]) -> Finished {
        let output = dir.join("output");
        fs::write(&output, bytes).unwrap();
        outbox.store(trained(lease, bytes), Millis(5000), &output).unwrap()
    }

    #[test]
    fn results_survive_a_restart_word_for_word() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("outbox");
        fs::create_dir(&root).unwrap();
        let (outbox, none) = Outbox::open(root.clone()).unwrap();
        assert_eq!(none, []);
        let first = store(&outbox, dir.path(), 7, b"weights");
        let second = outbox.store(failed(8), Millis(1), Path::new("unused")).unwrap();
        let (outbox, found) = Outbox::open(root.clone()).unwrap();
        assert_eq!(found, [first, second.clone()]);
        outbox.remove(LeaseId(7));
        assert_eq!(Outbox::open(root.clone()).unwrap().1, [second]);
        outbox.remove(LeaseId(8));
        assert_eq!(fs::read_dir(root).unwrap().count(), 0);
    }

    #[test]
    fn damaged_results_are_deleted_and_the_others_kept() {
        let damage: [fn(&Path); 7] = [
            |root| fs::write(root.join("7.9.safetensors"), b"weighty").unwrap(),
            |root| fs::write(root.join("7.9.safetensors"), b"weigh").unwrap(),
            |root| fs::remove_file(root.join("7.9.safetensors")).unwrap(),
            |root| fs::remove_file(root.join("7.json")).unwrap(),
            |root| fs::write(root.join("7.json"), b"").unwrap(),
            |root| fs::write(root.join("7.json"), b"{\"format\":1,\"rep").unwrap(),
            |root| fs::rename(root.join("7.json"), root.join("9.json")).unwrap(),
        ];
        for (number, damage) in damage.into_iter().enumerate() {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().join("outbox");
            fs::create_dir(&root).unwrap();
            let (outbox, _) = Outbox::open(root.clone()).unwrap();
            store(&outbox, dir.path(), 7, b"weights");
            let kept = store(&outbox, dir.path(), 8, b"others");
            damage(&root);
            fs::write(root.join("10.tmp"), b"half").unwrap();
            assert_eq!(Outbox::open(root.clone()).unwrap().1, [kept], "damage {number}");
            assert_eq!(fs::read_dir(&root).unwrap().count(), 2, "damage {number}");
        }
    }

    #[test]
    fn an_unreadable_result_is_kept_for_the_next_start() {
        // A link to itself stands for a disk that gives an error: it is there, and can't be opened.
        for name in ["7.json", "7.9.safetensors"] {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().join("outbox");
            fs::create_dir(&root).unwrap();
            let (outbox, _) = Outbox::open(root.clone()).unwrap();
            let first = store(&outbox, dir.path(), 7, b"weights");
            let second = store(&outbox, dir.path(), 8, b"others");
            let aside = dir.path().join("aside");
            fs::rename(root.join(name), &aside).unwrap();
            std::os::unix::fs::symlink(name, root.join(name)).unwrap();
            assert_eq!(Outbox::open(root.clone()).unwrap().1, std::slice::from_ref(&second));
            fs::remove_file(root.join(name)).unwrap();
            fs::rename(&aside, root.join(name)).unwrap();
            assert_eq!(Outbox::open(root).unwrap().1, [first, second], "{name}");
        }
    }

    #[test]
    fn a_later_part_takes_the_place_of_an_earlier_one_or_leaves_it_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("outbox");
        fs::create_dir(&root).unwrap();
        let (outbox, _) = Outbox::open(root.clone()).unwrap();
        let other = store(&outbox, dir.path(), 71, b"others");
        let store_part = |end: u32, bytes: &[u8]| {
            let output = dir.path().join("output");
            fs::write(&output, bytes).unwrap();
            let mut report = trained(7, bytes);
            let Outcome::Trained(trained) = &mut report.outcome else { unreachable!() };
            (trained.end.batch, trained.end.step) = (end, 7 + u64::from(end));
            outbox.store(report, Millis(5000), &output)
        };
        store_part(1, b"first").unwrap();
        let second = store_part(2, b"second").unwrap();
        assert_eq!(fs::read_dir(&root).unwrap().count(), 4);
        // The third can't be renamed into its place.
        fs::create_dir(root.join("7.10.safetensors")).unwrap();
        store_part(3, b"third").unwrap_err();
        fs::remove_dir(root.join("7.10.safetensors")).unwrap();
        assert_eq!(Outbox::open(root.clone()).unwrap().1, [second, other.clone()]);
        outbox.remove(LeaseId(7));
        assert_eq!(Outbox::open(root).unwrap().1, [other]);
    }

    #[test]
    fn results_of_an_older_program_are_delivered() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("outbox");
        fs::create_dir(&root).unwrap();
        let (outbox, _) = Outbox::open(root.clone()).unwrap();
        let stored = store(&outbox, dir.path(), 7, b"weights");
        // Its records say another format, and its checkpoints are named by the batch.
        let record = fs::read_to_string(root.join("7.json")).unwrap();
        fs::write(root.join("7.json"), record.replace("\"format\":2", "\"format\":1")).unwrap();
        fs::rename(root.join("7.9.safetensors"), root.join("7.2.safetensors")).unwrap();
        let (outbox, found) = Outbox::open(root.clone()).unwrap();
        let checkpoint = stored.checkpoint.clone().map(|(blob, _)| blob);
        let path = root.join("7.2.safetensors");
        assert_eq!(found[0].checkpoint, checkpoint.map(|blob| (blob, path)));
        assert_eq!((found.len(), &found[0].report), (1, &stored.report));
        outbox.remove(LeaseId(7));
        assert_eq!(fs::read_dir(root).unwrap().count(), 0);
    }

    #[test]
    fn hops_of_one_lease_that_end_at_the_same_batch_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("outbox");
        fs::create_dir(&root).unwrap();
        let (outbox, _) = Outbox::open(root.clone()).unwrap();
        let first = store(&outbox, dir.path(), 7, b"weights");
        let output = dir.path().join("output");
        fs::write(&output, b"later").unwrap();
        let mut report = trained(7, b"later");
        let Outcome::Trained(end) = &mut report.outcome else { unreachable!() };
        (end.end.shard.0, end.end.step) = (1, 13);
        // The second can't be recorded: the first is as good as it was.
        let record = root.join("7.json");
        let before = fs::read(&record).unwrap();
        fs::remove_file(&record).unwrap();
        fs::create_dir(&record).unwrap();
        outbox.store(report.clone(), Millis(1), &output).unwrap_err();
        fs::remove_dir(&record).unwrap();
        fs::write(&record, before).unwrap();
        assert_eq!(Outbox::open(root.clone()).unwrap().1, [first]);
        fs::write(&output, b"later").unwrap();
        let second = outbox.store(report, Millis(1), &output).unwrap();
        assert_eq!(Outbox::open(root).unwrap().1, [second]);
    }

    #[test]
    fn a_result_that_cannot_be_stored_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (outbox, _) = Outbox::open(dir.path().to_owned()).unwrap();
        let missing = dir.path().join("missing");
        assert!(outbox.store(trained(7, b"weights"), Millis(1), &missing).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
