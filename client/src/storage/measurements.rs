//! Measurements of units on this machine: time per row and memory, by device and workload. Kept in the data folder,
//! so that a server hears it however often the client or the server begin anew.

use crate::storage::folder::write_whole;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sojourn_files::if_exists;
use sojourn_protocol::inventory::{Measured, Workload};
use std::{
    collections::VecDeque,
    fs, io,
    path::{Path, PathBuf},
};

/// Workloads of one device that are remembered, the latest ones.
const MAX_WORKLOADS: usize = 128;
/// A figure is news where it has moved by more than one part in so many.
const MIN_CHANGE_PART: u64 = 8;

/// All of it.
#[derive(Debug)]
pub(crate) struct Measurements {
    path: PathBuf,
    /// The latest last.
    known: Mutex<VecDeque<Entry>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    device: String,
    measured: Measured,
    /// The memory that there was for a unit, where it wasn't enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    too_little: Option<u64>,
}

/// The time and memory of one unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Took {
    /// Nanoseconds of training per row.
    pub(crate) nanos_per_row: Option<u64>,
    /// The most bytes of memory.
    pub(crate) peak_memory: Option<u64>,
    /// Bytes of memory that there were for a unit that wanted more, 0 where unknown; `None` for one that had enough.
    pub(crate) out_of_memory: Option<u64>,
}

impl Measurements {
    /// Reads what is kept in the file. What can't be read is measured anew.
    pub(crate) fn open(path: PathBuf) -> Self {
        let known = if_exists(read(&path)).unwrap_or_else(|error| {
            tracing::warn!(%error, ?path, "the measurements of units can't be read; they are taken anew");
            None
        });
        let known = known.unwrap_or_default();
        Self { path, known: Mutex::new(known) }
    }

    /// Takes in what a unit took. Figures move slowly, and are kept where they have moved.
    pub(crate) fn took(&self, device: &str, workload: Workload, took: Took) {
        let mut known = self.known.lock();
        let place = known
            .iter()
            .position(|entry| entry.device == device && entry.measured.workload == workload);
        let before = place.and_then(|place| known.remove(place));
        let before = before.map(|entry| entry.measured);
        let measured = together(before.as_ref(), workload, took);
        let news = before.as_ref() != Some(&measured);
        let too_little = took.out_of_memory;
        known.push_back(Entry { device: device.to_owned(), measured, too_little });
        let of_device = known.iter().filter(|entry| entry.device == device).count();
        if of_device > MAX_WORKLOADS
            && let Some(oldest) = known.iter().position(|entry| entry.device == device)
        {
            known.remove(oldest);
        }
        if news && let Err(error) = write(&self.path, &known) {
            tracing::debug!(%error, "what units take can't be kept");
        }
    }

    /// The measurements of a device with so many bytes for a unit. Their order stays while nothing is new.
    pub(crate) fn of(&self, device: &str, memory: Option<u64>) -> Vec<Measured> {
        let known = self.known.lock();
        let of_device = known.iter().filter(|entry| entry.device == device);
        let measured = |entry: &Entry| {
            // The owner may have raised the limit since.
            let more = memory.zip(entry.too_little).is_some_and(|(now, then)| now > then);
            let last = entry.measured.clone();
            Measured { out_of_memory: last.out_of_memory && !more, ..last }
        };
        let mut of_device: Vec<Measured> = of_device.map(measured).collect();
        of_device.sort_by(|a, b| a.workload.cmp(&b.workload));
        of_device
    }
}

/// A unit that went well says that there is memory for it; one for which there was none, nothing of its time.
fn together(before: Option<&Measured>, workload: Workload, took: Took) -> Measured {
    let (time, peak) = before.map_or((None, None), |b| (b.nanos_per_row, b.peak_memory));
    Measured {
        workload,
        nanos_per_row: moved(time, took.nanos_per_row),
        peak_memory: highest(peak, took.peak_memory),
        out_of_memory: took.out_of_memory.is_some(),
    }
}

/// A quarter of the way, where that is news.
fn moved(before: Option<u64>, now: Option<u64>) -> Option<u64> {
    match (before, now) {
        (Some(before), Some(now)) => {
            let between = before.saturating_mul(3).saturating_add(now) / 4;
            Some(if between.abs_diff(before) > before / MIN_CHANGE_PART { between } else { before })
        }
        (before, now) => now.or(before),
    }
}

fn highest(before: Option<u64>, now: Option<u64>) -> Option<u64> {
    match (before, now) {
        (Some(before), Some(now)) if now > before.saturating_add(before / MIN_CHANGE_PART) => {
            Some(now)
        }
        (before, now) => before.or(now),
    }
}

fn read(path: &Path) -> io::Result<VecDeque<Entry>> {
    serde_json::from_slice(&fs::read(path)?).map_err(io::Error::other)
}

/// Not synced: where a power cut damages the file, all is measured anew.
fn write(path: &Path, known: &VecDeque<Entry>) -> io::Result<()> {
    write_whole(path, &serde_json::to_vec(known)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::spec::{Architecture, Mlp, OptimizerName, Precision};

    fn workload(batch_size: u32) -> Workload {
        Workload {
            model: Architecture::Mlp(Mlp::default()),
            shape: vec![4],
            outputs: 2,
            batch_size,
            precision: Precision::F32,
            optimizer: OptimizerName::Sgd,
        }
    }

    fn took(nanos_per_row: u64, peak_memory: u64) -> Took {
        let (nanos_per_row, peak_memory) = (Some(nanos_per_row), Some(peak_memory));
        Took { nanos_per_row, peak_memory, out_of_memory: None }
    }

    #[test]
    fn figures_survive_a_restart_and_move_only_where_that_is_news() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("measured.json");
        let measurements = Measurements::open(path.clone());
        measurements.took("cpu", workload(8), took(1000, 500));
        measurements.took("cpu", workload(4), took(10, 5));
        measurements.took("L4", workload(8), took(7, 7));
        let first = measurements.of("cpu", None);
        let figures = |of: &Measured| (of.workload.batch_size, of.nanos_per_row, of.peak_memory);
        assert_eq!(
            first.iter().map(figures).collect::<Vec<_>>(),
            [(4, Some(10), Some(5)), (8, Some(1000), Some(500))]
        );
        measurements.took("cpu", workload(8), took(1100, 510));
        assert_eq!(measurements.of("cpu", None), first, "no news");
        measurements.took("cpu", workload(8), took(3000, 600));
        let later = Measurements::open(path.clone()).of("cpu", None);
        assert_eq!(figures(&later[1]), (8, Some(1500), Some(600)));
        fs::write(&path, "[{").unwrap();
        assert_eq!(Measurements::open(path).of("cpu", None), []);
    }

    #[test]
    fn a_unit_that_ran_out_of_memory_is_remembered_until_there_is_more() {
        let folder = tempfile::tempdir().unwrap();
        let measurements = Measurements::open(folder.path().join("measured.json"));
        let no_memory = Took { out_of_memory: Some(900), ..Took::default() };
        measurements.took("cpu", workload(8), took(1000, 500));
        measurements.took("cpu", workload(8), no_memory);
        let of = measurements.of("cpu", None);
        assert_eq!((of[0].out_of_memory, of[0].nanos_per_row), (true, Some(1000)));
        assert!(measurements.of("cpu", Some(900))[0].out_of_memory);
        assert!(!measurements.of("cpu", Some(901))[0].out_of_memory, "its owner lends more");
        measurements.took("cpu", workload(8), took(1000, 500));
        assert!(!measurements.of("cpu", None)[0].out_of_memory);
    }

    #[test]
    fn only_the_latest_workloads_of_a_device_are_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let measurements = Measurements::open(folder.path().join("measured.json"));
        measurements.took("L4", workload(0), took(1, 1));
        let most = u32::try_from(MAX_WORKLOADS).unwrap();
        for size in 0..=most {
            measurements.took("cpu", workload(size), took(1, 1));
        }
        let sizes: Vec<u32> =
            measurements.of("cpu", None).iter().map(|of| of.workload.batch_size).collect();
        assert_eq!(sizes, (1..=most).collect::<Vec<_>>());
        assert_eq!(measurements.of("L4", None).len(), 1);
    }
}
