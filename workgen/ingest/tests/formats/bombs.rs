//! A few packed bytes that become many: whoever bounds the reading is asked on the way, and ends it with nothing left.

use super::{
    folder, images, job, parquet,
    write::{gzip, npy, npz, zstd},
};
use sojourn_ingest::{Bounds, Cut, IngestError, Refusal, Step, survey_within};
use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use zip::CompressionMethod::Deflated;

/// Most bytes of one step.
const MAX_STEP: u64 = 5 << 20;
const MB: u64 = 1 << 20;

#[derive(Debug)]
struct Budget {
    unpacked: u64,
    decoded: u64,
    written: u64,
    /// Questions until reading is ended.
    questions: u64,
    counted: [AtomicU64; 4],
}

impl Budget {
    fn new(unpacked: u64, decoded: u64, written: u64, questions: u64) -> Arc<Self> {
        Arc::new(Self { unpacked, decoded, written, questions, counted: Default::default() })
    }

    fn counted(&self) -> [u64; 4] {
        self.counted.each_ref().map(|count| count.load(Relaxed))
    }
}

impl Bounds for Budget {
    fn admit(&self, step: Step) -> Result<(), Refusal> {
        let [unpacked, decoded, written, questions] = &self.counted;
        let (counted, bytes, most) = match step {
            Step::Read(_) => (unpacked, 0, u64::MAX),
            Step::Unpacked(bytes) => (unpacked, bytes, self.unpacked),
            Step::Decoded(bytes) => (decoded, bytes, self.decoded),
            Step::Written(bytes) => (written, bytes, self.written),
        };
        let asked = questions.fetch_add(1, Relaxed);
        if counted.load(Relaxed) + bytes > most || asked >= self.questions {
            return Err(Refusal("no more".to_owned()));
        }
        counted.fetch_add(bytes, Relaxed);
        Ok(())
    }

    fn admits_url(&self, _: &str) -> bool {
        false
    }
}

/// Files of a few kilobytes that unpack to four megabytes and more, and the job's `[data]`.
fn bombs() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let csv = format!("a,y\n{}", "0,0\n0,1\n".repeat(500_000)).into_bytes();
    let rows = 600_000;
    let zeros = npy("<i8", &[rows, 1], &vec![0; rows * 8]);
    let labels: Vec<u8> = (0..rows).map(|row| (row % 2) as u8).collect();
    let arrays = npz(&[("x.npy", zeros), ("y.npy", npy("|u1", &[rows], &labels))], Deflated);
    let table = "label = \"y\"\ntrain = ";
    vec![
        (table, "t.csv.gz", gzip(&csv)),
        (table, "t.csv.zst", zstd(&csv)),
        ("train = ", "t.npz", arrays),
        (table, "t.parquet", parquet::equal_rows(rows)),
    ]
}

fn made(data: &str, base: &Path, out: &Path, budget: &Arc<Budget>) -> Result<(), IngestError> {
    let spec = job(data);
    let bounds: Arc<dyn Bounds> = Arc::clone(budget) as Arc<dyn Bounds>;
    let surveyed = survey_within(&spec, base, out, bounds, &mut |_| {})?;
    surveyed.ingest(&Cut::Equal(2), out, &mut |_| {}).map(drop)
}

#[test]
fn packed_files_end_at_the_bound_of_what_they_unpack_decode_or_write() {
    for (keys, name, bytes) in bombs() {
        assert!(bytes.len() < 40_000, "{name}: {}", bytes.len());
        let base = folder(&[(name, bytes)]);
        let data = format!("{keys}\"{name}\"");
        let out = folder(&[]);
        let free = Budget::new(u64::MAX, u64::MAX, u64::MAX, u64::MAX);
        made(&data, base.path(), out.path(), &free).unwrap();
        let [unpacked, decoded, written, questions] = free.counted();
        assert!(decoded > 4 * MB && written > 4 * MB, "{name}: {:?}", free.counted());
        assert!(name == "t.parquet" || unpacked > 4 * MB, "{name}: {unpacked}");
        let budgets = [
            Budget::new(u64::MAX, MB, u64::MAX, u64::MAX),
            Budget::new(u64::MAX, u64::MAX, MB, u64::MAX),
            Budget::new(u64::MAX, u64::MAX, u64::MAX, questions / 2),
            Budget::new(unpacked / 3, u64::MAX, u64::MAX, u64::MAX),
        ];
        for budget in budgets {
            let out = folder(&[]);
            let refused = made(&data, base.path(), out.path(), &budget).unwrap_err();
            assert!(refused.to_string().contains("no more"), "{name}: {refused}");
            assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0, "{name}");
            let [_, _, _, asked] = budget.counted();
            // Nobody goes on after a refusal.
            assert!(asked <= questions.max(2), "{name}: {asked} of {questions}");
        }
    }
}

#[test]
fn whoever_bounds_the_reading_is_asked_at_least_once_in_a_few_megabytes() {
    for (keys, name, bytes) in bombs() {
        let base = folder(&[(name, bytes)]);
        let out = folder(&[]);
        let free = Budget::new(u64::MAX, u64::MAX, u64::MAX, u64::MAX);
        made(&format!("{keys}\"{name}\""), base.path(), out.path(), &free).unwrap();
        let [unpacked, decoded, written, questions] = free.counted();
        let least = (unpacked + decoded + written) / MAX_STEP;
        assert!(questions >= least, "{name}: {questions} of {least}");
    }
}

#[test]
fn pixels_of_an_image_count() {
    let image = images::black(2_000);
    assert!(image.len() < 40_000, "{}", image.len());
    let names = ["i/a/1.png", "i/a/2.png", "i/b/1.png", "i/b/2.png"];
    let base = folder(&names.map(|name| (name, image.clone())));
    let data = "train = \"i/\"\nshape = [1, 2, 2]\nvalid = 0.5";
    let budget = Budget::new(5 * MB, u64::MAX, u64::MAX, u64::MAX);
    let out = folder(&[]);
    let refused = made(data, base.path(), out.path(), &budget).unwrap_err();
    assert_eq!(refused.to_string(), "no more");
    assert_eq!(budget.counted()[0], 4_000_000);
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
}
