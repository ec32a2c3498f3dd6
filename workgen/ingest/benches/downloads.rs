//! The bytes of shards on their way to a machine, beside the bytes of the shards: a JSON line for each data set. The digits lie in
//! `examples/digits`. MNIST and CIFAR-10 are measured where `SOJOURN_BENCH_DATA` names a folder that has
//! `t10k-images-idx3-ubyte.gz` (with its labels), or NPZ files whose names begin with `cifar10`.

#![expect(clippy::unwrap_used, reason = "a benchmark ends at what it did not expect")]

use sojourn_codec::packed::pack;
use sojourn_ingest::ingest;
use sojourn_protocol::{jobfile, spec::JobSpec};
use std::path::{Path, PathBuf};

fn main() {
    let examples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"));
    let digits = std::fs::read_to_string(examples.join("digits/job.toml")).unwrap();
    measure("digits", &jobfile::parse(&digits).unwrap(), &examples.join("digits"));
    let Some(folder) = std::env::var_os("SOJOURN_BENCH_DATA").map(PathBuf::from) else {
        eprintln!("neither MNIST nor CIFAR-10: SOJOURN_BENCH_DATA names no folder");
        return;
    };
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .filter_map(|file| file.unwrap().file_name().into_string().ok())
        .collect();
    names.sort();
    for name in names {
        if name == "t10k-images-idx3-ubyte.gz" {
            measure("MNIST's test images", &job(&name), &folder);
        } else if name.starts_with("cifar10") && name.ends_with(".npz") {
            measure(&format!("CIFAR-10, `{name}`"), &job(&name), &folder);
        }
    }
}

/// A job with the data of a file of images.
fn job(name: &str) -> JobSpec {
    jobfile::parse(&format!(
        "name = \"bench\"\n[data]\ntrain = \"{name}\"\nscale = \"standard\"\nshards = 8\n\
         [[model]]\narch = \"mlp\"\nhidden = []\n[training]\nepochs = 1\n",
    ))
    .unwrap()
}

/// Measures the bytes that a machine downloads that trains on all shards, and evaluates.
fn measure(kind: &str, job: &JobSpec, folder: &Path) {
    let out = tempfile::tempdir().unwrap();
    let made = ingest(job, folder, out.path(), &mut |_| {}).unwrap();
    let (mut travel, mut raw) = (0u64, 0u64);
    for file in made.files.values() {
        let bytes = std::fs::read(file).unwrap();
        let packed = pack(&bytes).map_or(bytes.len(), |packed| packed.len());
        (raw, travel) = (raw + bytes.len() as u64, travel + packed as u64);
    }
    #[expect(clippy::cast_precision_loss, reason = "some megabytes")]
    let ratio = travel as f64 / raw as f64;
    println!(
        "{{\"name\":\"bytes downloaded of {kind}, beside the shards'\",\"value\":{travel},\"unit\":\"B\",\"anchor\":{raw},\
         \"ratio\":{ratio:.3}}}"
    );
}
