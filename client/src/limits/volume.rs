//! The bytes of blobs that have come and gone in each calendar month, and how many more the owner allows.
//!
//! Nothing is begun that doesn't fit: a unit reserves what it has to fetch and what its result will take, so that
//! whatever is finished can also be sent. What is sent twice, because a line broke, comes on top.
//!
//! It knows no clock: whoever has one says which month it is. The counts of some months are kept, so that a clock
//! that is wrong for a while takes nothing from the month that it left.

use super::{Month, Size};
use crate::folder::write_whole;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;

/// The version of the file.
const VERSION: u32 = 1;
/// Months that are kept.
const MOST_MONTHS: usize = 12;
/// A month counts as used up where a unit doesn't fit and less than this part of the limit is left.
const REST: u64 = 20;

/// The file's content.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: u32,
    months: BTreeMap<Month, u64>,
}

/// What has come and gone.
#[derive(Debug)]
pub(crate) struct Volume {
    /// Nowhere for a volume that nobody keeps.
    path: Option<PathBuf>,
    state: Mutex<State>,
    /// May anything new be begun?
    open: watch::Sender<bool>,
    /// Is all used up?
    over: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    months: BTreeMap<Month, u64>,
    /// The current one; none before somebody has said.
    month: Option<Month>,
    limit: Option<u64>,
    /// Bytes that units in work have yet to fetch and to send.
    reserved: u64,
    /// A unit didn't fit into the little that is left.
    is_spent: bool,
    /// Is there more than the file says?
    is_new: bool,
}

impl State {
    fn used(&self) -> u64 {
        self.month.and_then(|month| self.months.get(&month)).copied().unwrap_or(0)
    }

    fn left(&self) -> u64 {
        let taken = self.used().saturating_add(self.reserved);
        self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(taken))
    }

    fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.used() >= limit)
    }

    fn is_open(&self) -> bool {
        !self.is_spent && !self.is_over()
    }
}

/// The state of the month, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonthState {
    /// Which.
    pub month: Month,
    /// Bytes of blobs that have come and gone in it.
    pub bytes: u64,
    /// The day on which work is taken again, where the month's bytes are used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_until: Option<jiff::civil::Date>,
}

impl Default for Volume {
    fn default() -> Self {
        Self::of(None, BTreeMap::new())
    }
}

impl Volume {
    /// Reads what was counted so far. A file that says nothing sensible is begun anew, which is said.
    pub(crate) fn open(path: PathBuf) -> Self {
        let months = read(&path).unwrap_or_else(|why| {
            tracing::warn!(file = %path.display(), why, "the month's bytes are counted from 0: their file is damaged");
            BTreeMap::new()
        });
        Self::of(Some(path), months)
    }

    fn of(path: Option<PathBuf>, months: BTreeMap<Month, u64>) -> Self {
        let state = Mutex::new(State { months, ..State::default() });
        Self { path, state, open: watch::Sender::new(true), over: watch::Sender::new(false) }
    }

    /// So many bytes have come or gone.
    pub(crate) fn count(&self, bytes: usize) {
        let mut state = self.lock();
        if let Some(month) = state.month {
            let count = state.months.entry(month).or_default();
            *count = count.saturating_add(bytes as u64);
            state.is_new = true;
            self.tell(&state);
        }
    }

    /// It is this month, in which so much is allowed.
    pub(crate) fn set(&self, month: Month, limit: Option<Size>) {
        let mut state = self.lock();
        let limit = limit.map(|size| size.0);
        if state.month != Some(month) || state.limit != limit {
            (state.month, state.limit, state.is_spent) = (Some(month), limit, false);
        }
        while state.months.len() > MOST_MONTHS {
            state.months.pop_first();
        }
        self.tell(&state);
    }

    /// Sets bytes aside for a unit that has so many to fetch and to send; none where they don't fit into the month.
    pub(crate) fn reserve(self: &Arc<Self>, fetch: u64, send: u64) -> Option<Reserved> {
        let mut state = self.lock();
        let bytes = fetch.saturating_add(send);
        if state.left() < bytes {
            state.is_spent |= state.limit.is_some_and(|limit| state.left() < limit / REST);
            self.tell(&state);
            return None;
        }
        state.reserved = state.reserved.saturating_add(bytes);
        Some(Reserved { volume: Arc::clone(self), fetch, send })
    }

    /// Ends when something new may be begun.
    pub(crate) async fn opened(&self) {
        // The sender lives as long as `self`.
        let _ = self.open.subscribe().wait_for(|open| *open).await;
    }

    /// May something new be begun?
    pub(crate) fn is_open(&self) -> bool {
        *self.open.borrow()
    }

    /// Hears when that changes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<bool> {
        self.open.subscribe()
    }

    /// Is all used up that the owner allows, or more? What is left then isn't reserved either.
    pub(crate) fn is_over(&self) -> bool {
        self.lock().is_over()
    }

    /// Ends when it is.
    pub(crate) async fn over(&self) {
        // The sender lives as long as `self`.
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }

    /// How the month is; none before somebody has said which it is.
    pub(crate) fn now(&self) -> Option<MonthState> {
        let state = self.lock();
        let month = state.month?;
        let closed_until = (!state.is_open()).then(|| month.end());
        Some(MonthState { month, bytes: state.used(), closed_until })
    }

    /// Writes what is counted, where there is more than the file says. Blocks for a moment.
    pub(crate) fn save(&self) {
        let Some(path) = &self.path else { return };
        let months = {
            let mut state = self.lock();
            if !std::mem::take(&mut state.is_new) {
                return;
            }
            state.months.clone()
        };
        let text = serde_json::to_vec(&Kept { version: VERSION, months });
        let written = text.map_err(io::Error::other).and_then(|text| write_whole(path, &text));
        if let Err(error) = written {
            tracing::warn!(%error, file = %path.display(), "the month's bytes can't be kept");
            self.lock().is_new = true;
        }
    }

    fn tell(&self, state: &State) {
        for (sender, says) in [(&self.open, state.is_open()), (&self.over, state.is_over())] {
            sender.send_if_modified(|now| std::mem::replace(now, says) != says);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        self.save();
    }
}

/// What is counted in the file; nothing where there is none.
fn read(path: &Path) -> Result<BTreeMap<Month, u64>, String> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error.to_string()),
    };
    let kept: Kept = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    if kept.version != VERSION {
        return Err(format!("it is of version {}, this program knows {VERSION}", kept.version));
    }
    Ok(kept.months)
}

/// Bytes that are set aside for a unit, until this is dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    volume: Arc<Volume>,
    fetch: u64,
    send: u64,
}

impl Reserved {
    /// All is here that had to come.
    pub(crate) fn fetched(&mut self) {
        let fetch = std::mem::take(&mut self.fetch);
        self.release(fetch);
    }

    fn release(&self, bytes: u64) {
        let mut state = self.volume.lock();
        state.reserved = state.reserved.saturating_sub(bytes);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.release(self.fetch.saturating_add(self.send));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn month(text: &str) -> Month {
        text.parse().unwrap()
    }

    fn limited(bytes: u64) -> Arc<Volume> {
        let volume = Arc::new(Volume::default());
        volume.set(month("2026-01"), Some(Size(bytes)));
        volume
    }

    #[test]
    fn both_directions_count_until_the_month_is_over() {
        let volume = limited(100);
        volume.count(60);
        assert!(volume.is_open());
        volume.count(40);
        let state = volume.now().unwrap();
        assert_eq!((state.bytes, state.closed_until), (100, Some(jiff::civil::date(2026, 2, 1))));
        assert!(!volume.is_open());
        volume.set(month("2026-02"), Some(Size(100)));
        assert!(volume.is_open());
        assert_eq!(volume.now().unwrap().bytes, 0);
        // The owner allows less than has been used, then more, then all.
        volume.count(10);
        for (limit, open) in [(Some(5), false), (Some(11), true), (Some(10), false), (None, true)] {
            volume.set(month("2026-02"), limit.map(Size));
            assert_eq!(volume.is_open(), open, "{limit:?}");
        }
    }

    #[test]
    fn a_clock_that_is_wrong_for_a_while_takes_nothing_away() {
        let volume = limited(100);
        volume.count(100);
        volume.set(month("1970-01"), Some(Size(100)));
        volume.count(1);
        volume.set(month("2026-01"), Some(Size(100)));
        assert_eq!(volume.now().unwrap().bytes, 100);
        for year in 1990..2020 {
            volume.set(month(&format!("{year}-01")), None);
            volume.count(1);
        }
        volume.set(month("2026-01"), None);
        assert_eq!(volume.now().unwrap().bytes, 100, "the oldest go first");
    }

    #[test]
    fn what_does_not_fit_is_not_begun() {
        let volume = limited(1000);
        let mut first = volume.reserve(500, 100).unwrap();
        assert!(volume.reserve(400, 1).is_none());
        assert!(volume.is_open(), "a smaller one may fit");
        volume.count(500);
        first.fetched();
        assert!(volume.reserve(401, 0).is_none());
        let second = volume.reserve(0, 390).unwrap();
        assert!(volume.reserve(11, 0).is_none());
        assert!(!volume.is_open(), "hardly anything is left");
        drop((first, second));
        volume.set(month("2026-01"), Some(Size(2000)));
        assert!(volume.is_open() && volume.reserve(1500, 0).is_some());
        let free = Arc::new(Volume::default());
        assert!(free.reserve(u64::MAX, u64::MAX).is_some() && free.is_open());
    }

    #[test]
    fn counts_survive_a_restart_and_a_damaged_file_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume.json");
        let open = || {
            let volume = Volume::open(path.clone());
            volume.set(month("2026-01"), None);
            volume
        };
        let bytes = |volume: &Volume| volume.now().unwrap().bytes;
        let volume = open();
        volume.save();
        assert!(!path.exists(), "nothing is new");
        volume.count(7);
        drop(volume);
        assert_eq!(fs::read_to_string(&path).unwrap(), r#"{"version":1,"months":{"2026-01":7}}"#);
        let volume = open();
        assert_eq!(bytes(&volume), 7);
        for damaged in
            ["", "{", r#"{"version":2,"months":{}}"#, r#"{"version":1,"months":{"x":7}}"#]
        {
            fs::write(&path, damaged).unwrap();
            assert_eq!(bytes(&open()), 0, "{damaged}");
        }
        fs::remove_file(&path).unwrap();
        volume.count(1);
        volume.save();
        assert_eq!(bytes(&open()), 8);
    }
}
