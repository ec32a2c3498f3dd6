//! One suite for every format and every way to a file: equal rows give equal blobs.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

mod bad_rows;
mod beside;
mod bombs;
mod bounds;
mod contract;
mod dates;
mod dialects;
mod excel;
mod faults;
mod hdf5;
mod images;
mod json_documents;
mod json_lines;
mod libsvm;
mod parquet;
mod rows;
mod tables;
mod tfrecord;
mod words;
mod write;

use sojourn_codec::decode;
use sojourn_ingest::{IngestError, Ingested, check, ingest};
use sojourn_protocol::{jobfile, spec::JobSpec};
use std::{error::Error, fs, path::Path};
use tempfile::TempDir;

/// A job whose `[data]` begins with these lines.
fn job(data: &str) -> JobSpec {
    let text = format!(
        "name = \"t\"\nseed = 7\n[data]\n{data}\n\
         [[model]]\narch = \"mlp\"\nhidden = [4]\n[training]\nepochs = 1\n"
    );
    jobfile::parse(&text).unwrap()
}

/// A folder with files.
fn folder(files: &[(&str, Vec<u8>)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    for (name, bytes) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    dir
}

fn made(data: &str, base: &Path) -> Result<Ingested, IngestError> {
    let out = TempDir::new().unwrap();
    ingest(&job(data), base, out.path(), &mut |_| {})
}

/// The numbers of all rows.
fn numbers(made: &Ingested, width: usize) -> Vec<Vec<f32>> {
    let mut rows = Vec::new();
    for shard in made.manifest.train.iter().chain(&made.manifest.valid) {
        let bytes = fs::read(made.files.get(&shard.blob.sha256).unwrap()).unwrap();
        let tensors = decode(&bytes).unwrap();
        let x = tensors.iter().find(|tensor| tensor.name == "x").unwrap();
        let x: Vec<f32> = x.f32s().unwrap().collect();
        rows.extend(x.chunks_exact(width).map(<[f32]>::to_vec));
    }
    rows.sort_by(|a, b| a.partial_cmp(b).unwrap());
    rows
}

/// The message on bad data; `check` must say the same as `ingest`.
fn refused(data: &str, files: &[(&str, Vec<u8>)]) -> String {
    let dir = folder(files);
    let said = told(&made(data, dir.path()).expect_err("the data is bad"));
    let checked = check(&job(data), dir.path(), dir.path(), &mut |_| {});
    assert_eq!(told(&checked.unwrap_err()), said);
    said.replace(&format!("{}/", dir.path().display()), "")
}

fn told(error: &dyn Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", told(source)),
        None => error.to_string(),
    }
}
