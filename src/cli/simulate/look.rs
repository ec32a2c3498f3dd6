//! Looks on while a fleet is simulated: progress, a clock, and the events' file.

use crate::cli::{Failure, Meter, Unit, newfile::NewFile, output};
use sojourn_core::Record;
use sojourn_sim::fleet::Watch;
use std::{collections::BTreeSet, fs, io::Write, path::Path, time::Instant};

pub(super) struct Look {
    meter: Meter,
    runs: usize,
    done: usize,
    begun: Instant,
    events: Option<NewFile>,
    /// Bytes of the events of this run, where they are counted.
    journal: Option<u64>,
    /// The first thing that went wrong with the file.
    failed: Option<String>,
    /// What was remarked, once for all runs.
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
            journal: counts.then_some(0),
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

    /// A run has ended; gives the bytes of its events, where they are counted.
    pub(super) fn end(&mut self) -> Result<u64, Failure> {
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
            *journal += number(bytes);
        }
        let Some(file) = &mut self.events else { return };
        let written = serde_json::to_writer(&mut *file, record).map_err(std::io::Error::from);
        if let Err(error) = written.and_then(|()| file.write_all(b"\n")) {
            self.failed.get_or_insert(error.to_string());
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
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
