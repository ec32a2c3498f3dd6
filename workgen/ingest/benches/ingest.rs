//! How fast data is cut into shards, into how many bytes, and in how much memory: a JSON line for each kind of data,
//! and one for the memory at the end. The anchor of a speed is reading and hashing the same file; that of
//! the memory is the size of the largest file.
//!
//! `--gigabytes N` makes files of N GB instead of 0.2, to see that memory doesn't grow with them.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a benchmark ends at what it did not expect, and makes small numbers"
)]

#[path = "../../../benches/size.rs"]
mod size;

use sojourn_ingest::ingest;
use sojourn_protocol::{digest::Hasher, jobfile, spec::JobSpec};
use std::{
    fs::File,
    io::{BufWriter, Read, Write},
    path::Path,
    time::Instant,
};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

const COLUMNS: u32 = 64;
/// Bytes of noise that images are made of.
const NOISE: usize = 3 << 19;

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--gigabytes");
    let gigabytes: f64 =
        arguments.nth(1).map_or(size::of(0.2, 0.004), |number| number.parse().unwrap());
    let bytes = gigabytes * 1e9;
    // Pixels: small whole numbers. Measurements: eight digits with a point.
    run("pixels as CSV", "t.csv", 16, |path| {
        write(path, bytes, |value| format!("{}", value % 256))
    });
    run("measurements as CSV", "t.csv", 16, |path| {
        write(path, bytes, |value| format!("{}.{:06}", value % 10, value % 1_000_000))
    });
    run("measurements as JSON lines", "t.jsonl", 16, |path| {
        write(path, bytes, |value| format!("{}.{:06}", value % 10, value % 1_000_000))
    });
    run("images as NPZ", "t.npz", 16, |path| write_npz(path, bytes, 32, CompressionMethod::Stored));
    run("images as NPZ, deflated", "t.npz", 16, |path| {
        write_npz(path, bytes, 32, CompressionMethod::Deflated)
    });
    cifar();
    // Rows that are larger than the buffers of so many shards.
    run("large images as NPZ", "t.npz", size::of(200, 8), |path| {
        write_npz(path, bytes, 256, CompressionMethod::Stored)
    });
    let peak = peak_memory().unwrap_or(f64::NAN) / 1e3;
    line("ingest, peak memory", peak, "MB", bytes / 1e6);
}

/// Bytes that a job of images like CIFAR-10's uploads, beside those of the array.
fn cifar() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = write_npz(&folder.path().join("t.npz"), 15e6, 32, CompressionMethod::Stored);
    let out = folder.path().join("out");
    let made = ingest(&job("t.npz", 16), folder.path(), &out, &mut |_| {}).unwrap();
    #[expect(clippy::cast_precision_loss, reason = "some megabytes")]
    let uploaded = made.manifest.blobs().map(|blob| blob.bytes).sum::<u64>() as f64;
    line("bytes uploaded for images like CIFAR's, beside the array's", uploaded, "B", bytes);
}

/// A job with the data of this file.
fn job(name: &str, shards: u32) -> JobSpec {
    jobfile::parse(&format!(
        "name = \"bench\"\n[data]\ntrain = \"{name}\"\nlabel = \"y\"\nscale = \"standard\"\nshards = {shards}\n\
         [[model]]\narch = \"mlp\"\nhidden = []\n[training]\nepochs = 1\n",
    ))
    .unwrap()
}

/// Prints a figure beside its anchor.
fn line(name: &str, value: f64, unit: &str, anchor: f64) {
    let ratio = value / anchor;
    println!(
        "{{\"name\":\"{name}\",\"value\":{value:.0},\"unit\":\"{unit}\",\"anchor\":{anchor:.0},\
         \"ratio\":{ratio:.3}}}"
    );
}

/// Cuts the file that `write` makes, of so many bytes as rows, into shards, and says how many of them a
/// second.
fn run(kind: &str, name: &str, shards: u32, write: impl FnOnce(&Path) -> f64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let bytes = write(&path);
    let job = job(name, shards);
    // Of text both passes read all; of arrays the first reads labels alone. The keys of objects take a pass of their own.
    let passes = match name {
        "t.csv" => 2.0,
        "t.jsonl" => 3.0,
        _ => 1.0,
    };
    let start = Instant::now();
    let made = ingest(&job, folder.path(), &folder.path().join("out"), &mut |_| {}).unwrap();
    let megabytes_a_second = passes * bytes / 1e6 / start.elapsed().as_secs_f64();
    assert!(made.manifest.train_rows() > 0);
    line(&format!("ingest of {kind}, a pass"), megabytes_a_second, "MB/s", hashing(&path));
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
    let is_json = path.extension().is_some_and(|ending| ending == "jsonl");
    let header: String = (0..COLUMNS).map(|column| format!("c{column},")).collect();
    let mut state = 1u64;
    // A few thousand different rows are as good as millions, and sooner made.
    let rows: String = (0..4096)
        .map(|index| {
            let fields: String = (0..COLUMNS)
                .map(|column| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let value = text(state >> 33);
                    if is_json { format!("\"c{column}\":{value},") } else { value + "," }
                })
                .collect();
            let label = index % 10;
            if is_json {
                format!("{{{fields}\"y\":{label}}}\n")
            } else {
                format!("{fields}{label}\n")
            }
        })
        .collect();
    let mut file = BufWriter::new(File::create(path).unwrap());
    if !is_json {
        writeln!(file, "{header}y").unwrap();
    }
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

/// Images of noise in an archive, 3 x `side` x `side` each; their bytes.
fn write_npz(path: &Path, wanted: f64, side: usize, method: CompressionMethod) -> f64 {
    let mut state = 1u64;
    // Noise of sixteen values, so that there is something to deflate.
    let noise: Vec<u8> = (0..NOISE)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 60) as u8
        })
        .collect();
    let rounds = (wanted / NOISE as f64).ceil() as usize;
    let rows = rounds * (NOISE / (3 * side * side));
    let header = |shape: String| {
        let text = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n");
        let length = u16::try_from(text.len()).unwrap().to_le_bytes();
        [b"\x93NUMPY\x01\x00", length.as_slice(), text.as_bytes()].concat()
    };
    let mut archive = ZipWriter::new(File::create(path).unwrap());
    let options = SimpleFileOptions::default().compression_method(method).large_file(true);
    archive.start_file("x.npy", options).unwrap();
    archive.write_all(&header(format!("({rows}, 3, {side}, {side})"))).unwrap();
    for _ in 0..rounds {
        archive.write_all(&noise).unwrap();
    }
    archive.start_file("y.npy", options).unwrap();
    archive.write_all(&header(format!("({rows},)"))).unwrap();
    let labels: Vec<u8> = (0..rows).map(|row| (row % 10) as u8).collect();
    archive.write_all(&labels).unwrap();
    archive.finish().unwrap();
    (rounds * NOISE) as f64
}

/// Kilobytes of the most memory that the process ever held, where the system says it.
fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}
