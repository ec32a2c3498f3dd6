//! Looks on while a fleet is simulated: progress, a clock, and the events' file.

use crate::cli::{
    model::atomic_file::NewFile,
    render::progress::{Meter, Unit},
    terminal::{exit::Failure, output},
};
use sojourn_core::{CoreConfig, Record, State};
use sojourn_protocol::quantity::{SaturatingFrom as _, to_u64};
use sojourn_server::shell::{make_snapshot, read_snapshot};
use sojourn_sim::fleet::Watch;
use std::{collections::BTreeSet, fs, io::Write, path::Path, time::Instant};

/// How large a journal is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct JournalSize {
    /// Bytes of all events.
    pub(super) events: u64,
    /// Of the snapshot when half the hops are done.
    pub(super) snapshot: SnapshotSize,
}

/// How large a snapshot is, and how long what others wait for takes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SnapshotSize {
    /// Bytes, as the journal keeps it.
    pub(super) bytes: u64,
    /// Nanoseconds of copying the state: nothing else is decided meanwhile.
    pub(super) copy: u64,
    /// Nanoseconds of reading it: a start or a take-over waits for that.
    pub(super) read: u64,
}

pub(super) struct Look {
    meter: Meter,
    runs: usize,
    done: usize,
    begun: Instant,
    events: Option<NewFile>,
    /// The size of this run's journal, where that is counted.
    journal: Option<JournalSize>,
    /// The first thing that went wrong with the file.
    failed: Option<String>,
    /// The remarks so far, once for all runs.
    remarked: BTreeSet<String>,
}

impl Look {
    pub(super) fn new(runs: usize, counts: bool) -> Self {
        let meter = Meter::new("simulating", Unit::Steps, number(runs) * PARTS);
        Self {
            meter,
            runs,
            done: 0,
            begun: Instant::now(),
            events: None,
            journal: counts.then(JournalSize::default),
            failed: None,
            remarked: BTreeSet::new(),
        }
    }

    /// A run begins; what the core decides goes into a file in `folder`.
    pub(super) fn begin(&mut self, folder: Option<&Path>) -> Result<(), Failure> {
        let Some(folder) = folder else { return Ok(()) };
        fs::create_dir_all(folder).map_err(|error| {
            Failure::work(format!("can't make the folder `{}`: {error}", folder.display()))
        })?;
        self.events = Some(NewFile::create(&folder.join("events.jsonl"))?);
        Ok(())
    }

    /// A run has ended; gives what its journal would be, where that is counted.
    pub(super) fn end(&mut self) -> Result<JournalSize, Failure> {
        self.done += 1;
        self.progress(0, 1);
        if let Some(error) = self.failed.take() {
            return Err(Failure::work(format!("can't write `events.jsonl`: {error}")));
        }
        self.events.take().map_or(Ok(()), NewFile::finish)?;
        Ok(self.journal.as_mut().map(std::mem::take).unwrap_or_default())
    }
}

/// Steps of the meter for each run.
const PARTS: u64 = 100;

impl Watch for Look {
    fn record(&mut self, record: &Record) {
        if let Some(journal) = &mut self.journal {
            // Without what a number that JSON hasn't would be: such an event isn't written.
            let bytes = serde_json::to_vec(record).map_or(0, |bytes| bytes.len());
            journal.events += number(bytes);
        }
        let Some(file) = &mut self.events else { return };
        let written = serde_json::to_writer(&mut *file, record).map_err(std::io::Error::from);
        if let Err(error) = written.and_then(|()| file.write_all(b"\n")) {
            self.failed.get_or_insert(error.to_string());
        }
    }

    fn halfway(&mut self, state: &State) {
        let Some(journal) = &mut self.journal else { return };
        let nanos = |since: Instant| u64::saturating_from(since.elapsed().as_nanos());
        let begun = Instant::now();
        let copied = state.clone();
        let copy = nanos(begun);
        // A state that can't be said has no size.
        let Ok(snapshot) = make_snapshot(&copied, CoreConfig::default()) else { return };
        let begun = Instant::now();
        if read_snapshot(&snapshot, CoreConfig::default()).is_ok() {
            let bytes = number(snapshot.bytes.len());
            journal.snapshot = SnapshotSize { bytes, copy, read: nanos(begun) };
        }
    }

    fn remark(&mut self, text: &str) {
        if self.remarked.insert(text.to_owned()) {
            output::remark(text);
        }
    }

    fn progress(&mut self, done: u64, of: u64) {
        let parts = done.saturating_mul(PARTS).checked_div(of).unwrap_or(0).min(PARTS);
        let message = format!("run {} of {}", (self.done + 1).min(self.runs), self.runs);
        self.meter.set(number(self.done) * PARTS + parts, number(self.runs) * PARTS, &message);
    }

    fn clock(&mut self) -> u64 {
        u64::saturating_from(self.begun.elapsed().as_nanos())
    }
}

fn number(count: usize) -> u64 {
    to_u64(count)
}
