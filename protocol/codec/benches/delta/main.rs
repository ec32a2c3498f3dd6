//! How small deltas of checkpoints are, and how fast: JSON lines, for each optimiser and epoch.
//!
//! The checkpoints are real: [`train`] trains the demo's convolutional network on the digits, a shard at
//! a time, and each delta is against the checkpoint of the shard before. The anchor of a ratio (bytes
//! over those of the file) is plain zstd's; that of a speed is hashing the same bytes.
//!
//! `--checkpoints FOLDER...` measures files of one's own instead: those of a folder in name order, each
//! against the one before, grouped by what follows the first `-` in their names.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a benchmark ends at what it did not expect, counts megabytes, and takes the time"
)]

#[path = "../../../../benches/size.rs"]
mod size;
mod train;

use sha2::{Digest as _, Sha256};
use sojourn_codec::{
    Tensor, TensorView, decode, delta,
    delta::{Encoded, Named},
    encode,
};
use std::{collections::BTreeMap, path::Path, time::Instant};
use train::Optimizer;

/// zstd's own default.
const PLAIN_LEVEL: i32 = 3;

/// A checkpoint, and the group whose figures it counts in.
type Checkpoint = (String, Vec<u8>);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--checkpoints") {
        // Cargo adds a flag of its own.
        for folder in arguments[at + 1..].iter().take_while(|folder| *folder != "--bench") {
            let folder = Path::new(folder);
            let checkpoints = read(folder);
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            ratios(&name, &checkpoints);
            let (_, base) = &checkpoints[checkpoints.len() - 2];
            let (_, new) = &checkpoints[checkpoints.len() - 1];
            speeds(&name, base, new);
        }
        return;
    }
    for optimizer in [Optimizer::Momentum, Optimizer::Adam, Optimizer::Adamw] {
        let checkpoints = train::train(optimizer, size::of(4, 1));
        let name = format!("digits cnn, {}", optimizer.name());
        ratios(&name, &checkpoints);
        // One of these is too small to take the time of: all of them side by side.
        let base = together(&checkpoints[..checkpoints.len() - 1]);
        let new = together(&checkpoints[1..]);
        speeds(&name, &base, &new);
    }
}

/// The folder's checkpoints in name order.
fn read(folder: &Path) -> Vec<Checkpoint> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let group = |path: &Path| {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        stem.split_once('-').map_or(stem.clone(), |(_, group)| group.to_owned())
    };
    paths.iter().map(|path| (group(path), std::fs::read(path).unwrap())).collect()
}

/// The tensors of all these checkpoints in one file.
fn together(checkpoints: &[Checkpoint]) -> Vec<u8> {
    let mut tensors = Vec::new();
    for (at, (_, file)) in checkpoints.iter().enumerate() {
        for tensor in decode(file).unwrap().iter().map(TensorView::to_tensor) {
            tensors.push(Tensor { name: format!("{at:02}.{}", tensor.name), ..tensor });
        }
    }
    encode(&tensors).unwrap()
}

fn named(bytes: &[u8]) -> Named<'_> {
    Named { digest: Sha256::digest(bytes).into(), bytes }
}

/// Prints the ratio of each group of checkpoints, and that each comes back.
fn ratios(name: &str, checkpoints: &[Checkpoint]) {
    let mut groups: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for pair in checkpoints.windows(2) {
        let [(_, base), (group, new)] = pair else { unreachable!("pairs") };
        let chosen = delta::choose(Some(named(base)), named(new)).unwrap();
        if let Encoded::Delta(delta) = &chosen {
            assert!(delta::decode(named(base), delta, new.len() as u64).unwrap() == *new);
        }
        let plain = zstd::bulk::compress(new, PLAIN_LEVEL).unwrap().len();
        let sums = groups.entry(group).or_default();
        for (sum, bytes) in sums.iter_mut().zip([new.len(), plain, chosen.bytes().len()]) {
            *sum += bytes;
        }
    }
    for (group, sums) in groups {
        let [whole, plain, chosen] = sums.map(|bytes| bytes as f64);
        line(&format!("delta, {name}, {group}"), chosen / whole, "of whole", plain / whole);
    }
}

/// Prints the speeds of a pair.
fn speeds(name: &str, base: &[u8], new: &[u8]) {
    let (base, new) = (named(base), named(new));
    let megabytes = new.bytes.len() as f64 / 1e6;
    let hashing = megabytes / median(|| named(new.bytes).digest);
    let delta = delta::encode(base, new).unwrap();
    let limit = new.bytes.len() as u64;
    let encoding = megabytes / median(|| delta::encode(base, new).unwrap());
    let decoding = megabytes / median(|| delta::decode(base, &delta, limit).unwrap());
    let choosing = megabytes / median(|| delta::choose(Some(base), new).unwrap());
    line(&format!("delta, {name}, encoding"), encoding, "MB/s", hashing);
    line(&format!("delta, {name}, encoding both ways to choose"), choosing, "MB/s", hashing);
    line(&format!("delta, {name}, decoding"), decoding, "MB/s", hashing);
}

/// Seconds that the work takes, the median of many times.
fn median<T>(mut work: impl FnMut() -> T) -> f64 {
    let begun = Instant::now();
    let mut seconds = Vec::new();
    while seconds.len() < size::of(5, 1) || begun.elapsed().as_secs_f64() < size::of(0.2, 0.0) {
        let start = Instant::now();
        std::hint::black_box(work());
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// Prints a figure beside its anchor.
fn line(name: &str, value: f64, unit: &str, anchor: f64) {
    let ratio = value / anchor;
    let digits = if anchor < 10.0 { 4 } else { 0 };
    println!(
        "{{\"name\":\"{name}\",\"value\":{value:.digits$},\"unit\":\"{unit}\",\
         \"anchor\":{anchor:.digits$},\"ratio\":{ratio:.3}}}"
    );
}
