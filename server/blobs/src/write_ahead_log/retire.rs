//! Retires segments in the background: their files are written to their paths and synced, and the segments deleted.

use super::{Retirement, Shared, State, THREAD_NAME, segment::Segment};
use crate::disk::sync_folder;
use bytes::Bytes;
use parking_lot::MutexGuard;
use sojourn_files::if_exists;
use std::{collections::BTreeSet, fs, io, path::Path, sync::Arc, thread, time::Duration};

/// After a failure it is tried again when the next segment is full, or after so long.
const RETRY_PAUSE: Duration = Duration::from_secs(10);

impl Retirement {
    pub(super) fn start(shared: Arc<Shared>) -> io::Result<Self> {
        let ending = Ending(Arc::clone(&shared));
        let run = move || ending.0.retire_segments();
        let thread = thread::Builder::new().name(THREAD_NAME.to_owned()).spawn(run)?;
        Ok(Self { shared, thread: Some(thread) })
    }
}

/// Tells those who wait for the thread that it has ended, even if it panicked.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        (state.is_ending, state.is_retiring) = (true, false);
        self.0.changed.notify_all();
    }
}

impl Drop for Retirement {
    /// Segments stay: the next start reads them.
    fn drop(&mut self) {
        self.shared.state.lock().is_ending = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the write-ahead log's thread panicked");
        }
    }
}

impl State {
    /// The oldest segment, if it can be retired. Only the oldest: a younger one may have the removal of a file that an
    /// older one would bring back.
    pub(super) fn to_retire(&self) -> Option<Arc<Segment>> {
        let (_, oldest) = self.segments.first_key_value()?;
        let is_done = !self.is_current(oldest) && oldest.is_quiet();
        let is_ready = is_done && self.may_retire && self.failure.is_none();
        is_ready.then(|| Arc::clone(oldest))
    }
}

impl Shared {
    /// Runs until the log ends.
    fn retire_segments(&self) {
        let mut state = self.state.lock();
        while !state.is_ending {
            let Some(segment) = state.to_retire() else {
                if state.failure.is_none() {
                    self.changed.wait(&mut state);
                } else if self.changed.wait_for(&mut state, RETRY_PAUSE).timed_out() {
                    state.failure = None;
                }
                continue;
            };
            let files = state.files.iter().filter(|(_, entry)| entry.number == segment.number);
            let files: Vec<(String, Bytes)> =
                files.map(|(name, entry)| (name.clone(), entry.bytes.clone())).collect();
            state.is_retiring = true;
            let retired =
                MutexGuard::unlocked(&mut state, || self.retire_segment(&segment, &files));
            state.is_retiring = false;
            match retired {
                Ok(()) => {
                    state.files.retain(|_, entry| entry.number != segment.number);
                    state.segments.remove(&segment.number);
                }
                Err(error) => {
                    tracing::error!(%error, "the write-ahead log can't be shortened");
                    state.failure = Some(error);
                }
            }
            self.changed.notify_all();
        }
    }

    fn retire_segment(&self, segment: &Segment, files: &[(String, Bytes)]) -> io::Result<()> {
        let mut folders = BTreeSet::new();
        for (name, bytes) in files {
            let file = self.write(&self.root.join(name), bytes)?;
            self.disk.sync(file.file())?;
            if self.commit_if(file, name, |entry| entry.number == segment.number)? {
                folders.extend(Path::new(name).ancestors().skip(1));
            }
        }
        // The deepest first, so that a folder's content is durable before its name.
        for folder in folders.into_iter().rev() {
            sync_folder(&*self.disk, &self.root.join(folder))?;
        }
        if_exists(fs::remove_file(&segment.path)).map(drop)
    }
}
