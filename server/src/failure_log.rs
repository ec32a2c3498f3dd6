//! Trainer errors that hosts have reported, counted by host, trial and message, with the end of the trainer's log at the last one.
//!
//! The log is for people alone: no decision rests on it, so it isn't in the journal. A file of the data folder has it, so that
//! it outlasts a restart; another server that takes the journal over begins anew.

use parking_lot::Mutex;
use sojourn_files::{Access, Durability, if_exists};
use sojourn_protocol::{
    api::MAX_LOG_CHARS,
    ids::{HostId, JobId, LeaseId, TrialId},
    report::{Failure, FailureKind},
    text::{plain_line, plain_text},
    time::UnixMillis,
    view::FailureView,
};
use std::{collections::BTreeMap, fs, io, path::PathBuf};

/// Kinds of failures that are kept: beyond them, those that were last reported longest ago are forgotten.
const MAX_KINDS: usize = 500;
/// Characters of an error's first line.
const MAX_ERROR_CHARS: usize = 300;

/// Failures that are counted together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    host: HostId,
    job: JobId,
    trial: TrialId,
    error: String,
}

/// The rest of what is known of them.
#[derive(Debug, Clone)]
struct Counted {
    kind: FailureKind,
    count: u64,
    first_at: UnixMillis,
    last_at: UnixMillis,
    lease: LeaseId,
    log: Option<String>,
}

/// One that has happened.
#[derive(Debug)]
pub(crate) struct NewFailure<'a> {
    pub(crate) host: HostId,
    pub(crate) job: JobId,
    pub(crate) trial: TrialId,
    pub(crate) lease: LeaseId,
    pub(crate) failure: &'a Failure,
    pub(crate) at: UnixMillis,
}

/// The failures that are known.
#[derive(Debug)]
pub(crate) struct FailureLog {
    known: Mutex<BTreeMap<Key, Counted>>,
    file: PathBuf,
}

impl FailureLog {
    /// The failures of a file, which need not be there yet. A file that can't be read is begun anew.
    pub(crate) fn open(file: PathBuf) -> Self {
        let read = if_exists(fs::read(&file)).and_then(|text| {
            let text = text.unwrap_or_else(|| b"[]".to_vec());
            serde_json::from_slice::<Vec<FailureView>>(&text).map_err(io::Error::other)
        });
        let read = read.unwrap_or_else(|error| {
            tracing::warn!(file = %file.display(), %error, "the failures that were counted are lost");
            Vec::new()
        });
        Self { known: Mutex::new(read.into_iter().map(split).collect()), file }
    }

    /// Counts one. The same report again counts once.
    pub(crate) fn count(&self, new: &NewFailure<'_>) {
        let (message, log) = new.failure.parts();
        let (first, rest) = message.trim().split_once('\n').unwrap_or((message.trim(), ""));
        let log = plain_text(log.unwrap_or(rest), MAX_LOG_CHARS);
        let log = Some(log.trim_end().to_owned()).filter(|log| !log.is_empty());
        let error = plain_line(first, MAX_ERROR_CHARS);
        let key = Key { host: new.host, job: new.job, trial: new.trial, error };
        let mut known = self.known.lock();
        let before = known.get(&key);
        if before.is_some_and(|before| before.lease == new.lease) {
            return;
        }
        let counted = Counted {
            kind: new.failure.kind,
            count: before.map_or(0, |before| before.count) + 1,
            first_at: before.map_or(new.at, |before| before.first_at),
            last_at: new.at,
            lease: new.lease,
            log,
        };
        known.insert(key, counted);
        while known.len() > MAX_KINDS
            && let Some(oldest) = known.iter().min_by_key(|(_, of)| of.last_at)
        {
            let oldest = oldest.0.clone();
            known.remove(&oldest);
        }
        self.save(&known);
    }

    /// All of them of jobs that are there, the last ones first. Those of deleted jobs are forgotten.
    pub(crate) fn all(&self, is_there: impl Fn(JobId) -> bool) -> Vec<FailureView> {
        let mut known = self.known.lock();
        let before = known.len();
        known.retain(|key, _| is_there(key.job));
        if known.len() < before {
            self.save(&known);
        }
        let mut all: Vec<FailureView> = known.iter().map(view).collect();
        drop(known);
        all.sort_by_key(|failure| std::cmp::Reverse(failure.last_at));
        all
    }

    fn save(&self, known: &BTreeMap<Key, Counted>) {
        let all: Vec<FailureView> = known.iter().map(view).collect();
        let text = serde_json::to_vec(&all).map_err(io::Error::other);
        let written = text.and_then(|text| {
            sojourn_files::write(&self.file, &text, Access::Owner, Durability::Unsynced)
        });
        if let Err(error) = written {
            tracing::warn!(file = %self.file.display(), %error, "the failures can't be written");
        }
    }
}

fn view((key, of): (&Key, &Counted)) -> FailureView {
    FailureView {
        host: key.host,
        job: key.job,
        trial: key.trial,
        kind: of.kind,
        error: key.error.clone(),
        count: of.count,
        first_at: of.first_at,
        last_at: of.last_at,
        lease: of.lease,
        log: of.log.clone(),
    }
}

fn split(view: FailureView) -> (Key, Counted) {
    let FailureView { host, job, trial, kind, error, count, first_at, last_at, lease, log } = view;
    (Key { host, job, trial, error }, Counted { kind, count, first_at, last_at, lease, log })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(message: &str) -> Failure {
        Failure { kind: FailureKind::Trainer, message: message.to_owned() }
    }

    fn new(failure: &Failure, lease: u64) -> NewFailure<'_> {
        let (host, job, trial) = (HostId(3), JobId(1), TrialId(4));
        NewFailure { host, job, trial, lease: LeaseId(lease), failure, at: UnixMillis(lease) }
    }

    #[test]
    fn failures_with_the_same_first_line_are_counted_together_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let open = || FailureLog::open(folder.path().join("failures"));
        let log = open();
        let first = failure("the loss is NaN\n  in batch 3\u{1b}[31m");
        log.count(&new(&first, 7));
        log.count(&new(&first, 7));
        let second = failure("the loss is NaN\n  in batch 4");
        log.count(&new(&second, 9));
        log.count(&new(&failure("no space").with_log("line 1\nline 2\n"), 10));
        for log in [log, open()] {
            let all = log.all(|_| true);
            let [space, nan] = &all[..] else { panic!("{all:?}") };
            assert_eq!(
                (nan.count, nan.first_at.0, nan.last_at.0),
                (2, 7, 9),
                "a repeated report counts once"
            );
            assert_eq!(nan.log.as_deref(), Some("  in batch 4"));
            assert_eq!(space.log.as_deref(), Some("line 1\nline 2"));
        }
        fs::write(folder.path().join("failures"), "damaged").unwrap();
        assert!(open().all(|_| true).is_empty());
    }

    #[test]
    fn texts_and_kinds_are_bounded_and_deleted_jobs_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let log = FailureLog::open(folder.path().join("failures"));
        for number in 0..600 {
            let failure = failure(&format!("{number} {}", "x".repeat(20_000)));
            log.count(&new(&failure.with_log(&"y".repeat(20_000)), number));
        }
        let all = log.all(|_| true);
        assert_eq!((all.len(), all[0].last_at.0, all[499].last_at.0), (500, 599, 100));
        assert_eq!(all[0].error.len(), MAX_ERROR_CHARS);
        assert_eq!(all[0].log.as_ref().unwrap().len(), MAX_LOG_CHARS);
        assert!(log.all(|job| job != JobId(1)).is_empty());
        assert!(FailureLog::open(folder.path().join("failures")).all(|_| true).is_empty());
    }
}
