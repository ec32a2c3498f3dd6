//! The bytes of blobs that have come and gone in each calendar month, and how many the owner allows. Whether a unit
//! fits, the agent says.
//!
//! This module knows no clock: whoever has one says which month it is. The counts of some months are kept, so that a
//! clock that is wrong for a while takes nothing from the month that it left.

use super::{Month, Size};
use crate::storage::folder::write_lasting_secret;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sojourn_client_core::OwnerEvent;
use sojourn_files::if_exists;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};
use tokio::sync::watch;

/// The version of the file.
const VERSION: u32 = 1;
/// Months that are kept.
const MAX_MONTHS: usize = 12;

/// The file's content.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: u32,
    months: BTreeMap<Month, u64>,
}

/// The bytes that have come and gone.
#[derive(Debug)]
pub(crate) struct DataUsage {
    /// Nowhere for a volume that nobody keeps.
    path: Option<PathBuf>,
    state: Mutex<State>,
    /// Is all used up?
    over: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    months: BTreeMap<Month, u64>,
    /// The current one; none before somebody has said.
    month: Option<Month>,
    limit: Option<u64>,
    /// Is there more than the file says?
    is_new: bool,
    /// Whether the file can be read.
    file: FileState,
}

/// Whether the file of the counts can be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum FileState {
    #[default]
    Readable,
    /// Damaged: it isn't known how much came and went in the present month.
    Damaged,
    /// Damaged in this month, which counts as used up where it is limited. The file stays as it is until the next one.
    DamagedIn(Month),
}

impl State {
    fn used(&self) -> u64 {
        let counted = self.month.and_then(|month| self.months.get(&month)).copied().unwrap_or(0);
        match self.limit {
            Some(limit) if self.is_unknown() => counted.max(limit),
            _ => counted,
        }
    }

    /// Is it unknown how much came and went in this month?
    fn is_unknown(&self) -> bool {
        self.month.is_some_and(|month| self.file == FileState::DamagedIn(month))
    }

    fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.used() >= limit)
    }
}

/// The state of the month, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonthState {
    /// The calendar month.
    pub month: Month,
    /// Bytes of blobs that have come and gone in it.
    pub bytes: u64,
    /// The day on which work is taken again, where the month's bytes are used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_until: Option<jiff::civil::Date>,
}

impl Default for DataUsage {
    fn default() -> Self {
        Self::of(None, BTreeMap::new())
    }
}

impl DataUsage {
    /// Reads what was counted so far. Where the file says nothing sensible, a limited month counts as used up.
    pub(crate) fn open(path: PathBuf) -> Self {
        match read(&path) {
            Ok(months) => Self::of(Some(path), months),
            Err(why) => {
                tracing::warn!(file = %path.display(), why, "the file of the month's bytes is damaged");
                let usage = Self::of(Some(path), BTreeMap::new());
                usage.state.lock().file = FileState::Damaged;
                usage
            }
        }
    }

    fn of(path: Option<PathBuf>, months: BTreeMap<Month, u64>) -> Self {
        let state = Mutex::new(State { months, ..State::default() });
        Self { path, state, over: watch::Sender::new(false) }
    }

    /// So many bytes have come or gone.
    pub(crate) fn count(&self, bytes: usize) {
        let mut state = self.state.lock();
        if let Some(month) = state.month {
            let count = state.months.entry(month).or_default();
            *count = count.saturating_add(bytes as u64);
            state.is_new = true;
            self.tell(&state);
        }
    }

    /// Sets the present month, and the bytes that it allows; none for no limit.
    pub(crate) fn set(&self, month: Month, limit: Option<Size>) {
        let mut state = self.state.lock();
        let limit = limit.map(|size| size.0);
        (state.month, state.limit) = (Some(month), limit);
        if state.file == FileState::Damaged {
            state.file = FileState::DamagedIn(month);
        }
        while state.months.len() > MAX_MONTHS {
            state.months.pop_first();
        }
        self.tell(&state);
    }

    /// Is there a limit, and isn't it known how much of it is used up?
    pub(crate) fn is_unknown(&self) -> bool {
        let state = self.state.lock();
        state.limit.is_some() && state.is_unknown()
    }

    /// The month's budget, for the agent.
    pub(crate) fn budget(&self) -> OwnerEvent {
        let state = self.state.lock();
        let period = state.month.map_or(0, Month::number);
        OwnerEvent::Budget { period, limit: state.limit, used: state.used() }
    }

    /// Hears when all is used up that the owner allows, and when it isn't any more.
    pub(crate) fn subscribe(&self) -> watch::Receiver<bool> {
        self.over.subscribe()
    }

    /// The first day of the next month; none before somebody has said which it is.
    pub(crate) fn month_end(&self) -> Option<jiff::civil::Date> {
        self.state.lock().month.map(Month::end)
    }

    /// How the month is; none before somebody has said which it is. `closed`: nothing new is begun in it.
    pub(crate) fn now(&self, closed: bool) -> Option<MonthState> {
        let state = self.state.lock();
        let month = state.month?;
        let closed_until = closed.then(|| month.end());
        Some(MonthState { month, bytes: state.used(), closed_until })
    }

    /// Writes what is counted, where there is more than the file says. Blocks for a moment.
    pub(crate) fn save(&self) {
        let Some(path) = &self.path else { return };
        let months = {
            let mut state = self.state.lock();
            if state.is_unknown() || !std::mem::take(&mut state.is_new) {
                return;
            }
            state.months.clone()
        };
        let text = serde_json::to_vec(&Kept { version: VERSION, months });
        let written =
            text.map_err(io::Error::other).and_then(|text| write_lasting_secret(path, &text));
        if let Err(error) = written {
            tracing::warn!(%error, file = %path.display(), "the month's bytes can't be kept");
            self.state.lock().is_new = true;
        }
    }

    fn tell(&self, state: &State) {
        let over = state.is_over();
        self.over.send_if_modified(|now| std::mem::replace(now, over) != over);
    }
}

impl Drop for DataUsage {
    fn drop(&mut self) {
        self.save();
    }
}

/// The counts of the file; none where there is no file.
fn read(path: &Path) -> Result<BTreeMap<Month, u64>, String> {
    let text = if_exists(fs::read(path)).map_err(|error| error.to_string())?;
    let Some(text) = text else { return Ok(BTreeMap::new()) };
    let kept: Kept = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    if kept.version != VERSION {
        return Err(format!("it is of version {}, this program knows {VERSION}", kept.version));
    }
    Ok(kept.months)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn month(text: &str) -> Month {
        text.parse().unwrap()
    }

    fn limited(bytes: u64) -> Arc<DataUsage> {
        let usage = Arc::new(DataUsage::default());
        usage.set(month("2026-01"), Some(Size(bytes)));
        usage
    }

    #[test]
    fn both_directions_count_until_the_month_is_over() {
        let usage = limited(100);
        let over = usage.subscribe();
        usage.count(60);
        assert!(!*over.borrow());
        usage.count(40);
        let state = usage.now(true).unwrap();
        assert_eq!((state.bytes, state.closed_until), (100, Some(jiff::civil::date(2026, 2, 1))));
        assert!(*over.borrow());
        usage.set(month("2026-02"), Some(Size(100)));
        assert!(!*over.borrow());
        assert_eq!(usage.now(false).unwrap().bytes, 0);
        // The owner allows less than has been used, then more, then all.
        usage.count(10);
        for (limit, is_over) in
            [(Some(5), true), (Some(11), false), (Some(10), true), (None, false)]
        {
            usage.set(month("2026-02"), limit.map(Size));
            assert_eq!(*over.borrow(), is_over, "{limit:?}");
            let period = month("2026-02").number();
            assert_eq!(usage.budget(), OwnerEvent::Budget { period, limit, used: 10 });
        }
    }

    #[test]
    fn a_clock_that_is_wrong_for_a_while_takes_nothing_away() {
        let usage = limited(100);
        usage.count(100);
        usage.set(month("1970-01"), Some(Size(100)));
        usage.count(1);
        usage.set(month("2026-01"), Some(Size(100)));
        assert_eq!(usage.now(false).unwrap().bytes, 100);
        for year in 1990..2020 {
            usage.set(month(&format!("{year}-01")), None);
            usage.count(1);
        }
        usage.set(month("2026-01"), None);
        assert_eq!(usage.now(false).unwrap().bytes, 100, "the oldest go first");
    }

    #[test]
    fn counts_survive_a_restart_and_after_a_damaged_file_a_limited_month_is_used_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume.json");
        let open = || {
            let usage = DataUsage::open(path.clone());
            usage.set(month("2026-01"), None);
            usage
        };
        let bytes = |usage: &DataUsage| usage.now(false).unwrap().bytes;
        let usage = open();
        usage.save();
        assert!(!path.exists(), "nothing is new");
        usage.count(7);
        drop(usage);
        assert_eq!(fs::read_to_string(&path).unwrap(), r#"{"version":1,"months":{"2026-01":7}}"#);
        let usage = open();
        assert_eq!(bytes(&usage), 7);
        for damaged in
            ["", "{", r#"{"version":2,"months":{}}"#, r#"{"version":1,"months":{"x":7}}"#]
        {
            fs::write(&path, damaged).unwrap();
            let usage = open();
            assert_eq!((bytes(&usage), usage.is_unknown()), (0, false), "{damaged}");
            usage.set(month("2026-01"), Some(Size(100)));
            assert!(usage.is_unknown() && *usage.subscribe().borrow(), "{damaged}");
            assert_eq!(bytes(&usage), 100, "{damaged}");
            usage.count(5);
            usage.save();
            assert_eq!(fs::read_to_string(&path).unwrap(), damaged, "nobody knows more");
            usage.set(month("2026-02"), Some(Size(100)));
            assert!(!usage.is_unknown() && bytes(&usage) == 0, "{damaged}");
            usage.count(6);
            drop(usage);
            assert!(fs::read_to_string(&path).unwrap().contains("\"2026-02\":6"), "{damaged}");
        }
        fs::remove_file(&path).unwrap();
        usage.count(1);
        usage.save();
        assert_eq!(bytes(&open()), 8);
    }
}
