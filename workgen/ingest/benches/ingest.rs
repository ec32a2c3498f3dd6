//! How fast data is cut into shards, and in how much memory: one JSON line for each kind of data. The
//! anchor is reading and hashing the same file.
//!
//! `--gigabytes N` makes files of N GB instead of 0.2, to see that memory doesn't grow with them.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark ends at what it did not expect"
)]

use sojourn_ingest::ingest;
use sojourn_protocol::{digest::Hasher, jobfile};
use std::{
    fs::File,
    io::{BufWriter, Read, Write},
    path::Path,
    time::Instant,
};

const COLUMNS: u32 = 64;

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--gigabytes");
    let gigabytes: f64 = arguments.nth(1).map_or(0.2, |number| number.parse().unwrap());
    // Pixels: small whole numbers. Measurements: eight digits with a point.
    run("pixels", gigabytes, |value| format!("{}", value % 256));
    run("measurements", gigabytes, |value| format!("{}.{:06}", value % 10, value % 1_000_000));
}

fn run(kind: &str, gigabytes: f64, text: impl Fn(u64) -> String) {
    let folder = tempfile::tempdir().unwrap();
    let bytes = write(&folder.path().join("t.csv"), gigabytes * 1e9, text);
    let job = jobfile::parse(
        "name = \"bench\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nscale = \"standard\"\nshards = 16\n\
         [[model]]\narch = \"mlp\"\nhidden = []\n[training]\nepochs = 1\n",
    )
    .unwrap();
    let start = Instant::now();
    let made = ingest(&job, folder.path(), &folder.path().join("out"), &mut |_| {}).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    let megabytes_a_second = 2.0 * bytes / 1e6 / seconds;
    let anchor = hashing(&folder.path().join("t.csv"));
    println!(
        "{{\"name\":\"ingest of {kind}, a pass\",\"value\":{megabytes_a_second:.0},\"unit\":\"MB/s\",\
         \"anchor\":{anchor:.0},\"ratio\":{:.3},\"rows\":{},\"peak_memory_kilobytes\":{}}}",
        megabytes_a_second / anchor,
        made.manifest.train_rows(),
        peak_memory().map_or_else(|| "null".to_owned(), |kilobytes| kilobytes.to_string()),
    );
}

/// The anchor: megabytes a second of reading and hashing the same file.
fn hashing(path: &Path) -> f64 {
    let start = Instant::now();
    let mut file = File::open(path).unwrap();
    let (mut hasher, mut buffer, mut bytes) = (Hasher::default(), vec![0; 1 << 20], 0.0);
    loop {
        let count = file.read(&mut buffer).unwrap();
        if count == 0 {
            return bytes / 1e6 / start.elapsed().as_secs_f64();
        }
        hasher.update(&buffer[..count]);
        bytes += f64::from(u32::try_from(count).unwrap());
    }
}

/// Rows of numbers by a fixed recurrence, and a label; the file's size.
fn write(path: &Path, wanted: f64, text: impl Fn(u64) -> String) -> f64 {
    let header: String = (0..COLUMNS).map(|column| format!("c{column},")).collect();
    let mut state = 1u64;
    // A few thousand different rows are as good as millions, and sooner made.
    let rows: String = (0..4096)
        .map(|index| {
            let fields: String = (0..COLUMNS)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    text(state >> 33) + ","
                })
                .collect();
            format!("{fields}{}\n", index % 10)
        })
        .collect();
    let mut file = BufWriter::new(File::create(path).unwrap());
    writeln!(file, "{header}y").unwrap();
    let mut bytes = 0.0;
    while bytes < wanted {
        file.write_all(rows.as_bytes()).unwrap();
        #[expect(clippy::cast_precision_loss, reason = "a few megabytes")]
        let written = rows.len() as f64;
        bytes += written;
    }
    file.flush().unwrap();
    bytes
}

/// The most memory that the process ever held, where the system says it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}
