//! Data files: CSV, JSON lines, libsvm's format, TFRecord, Parquet, Excel, NPZ, NPY, IDX, HDF5 and safetensors, plain or packed by gzip or zstd; and images.

use crate::{columns::by_name, expect::is_said, files::in_folder, unpacking::unpacks_to_too_much};
use sojourn_ingest::{IngestError, ReadOptions, Reader};
use sojourn_protocol::{
    error::error_chain,
    jobfile,
    quantity::to_u64,
    spec::{Channels, Dialect, FileKind, JobSpec, Loss, Missing, SourceSpec},
};
use std::{fs, path::Path, sync::LazyLock};

/// Rows that are read of one input.
const MAX_ROWS: u64 = 20_000;
/// The job whose data an input is.
const JOB: &str = "name = 'a'\n[data]\ntrain = 't.csv'\nlabel = 'label'\nvalid = 0.5\nshards = 1\n\
    [[model]]\narch = 'mlp'\nhidden = [1]\n[training]\nepochs = 1\nbatch_size = 1\n\
    optimizer = { name = 'sgd', lr = 0.1 }\n[search]\nmethod = 'grid'\nmetric = 'valid/loss'\n";
static SPEC: LazyLock<Option<JobSpec>> = LazyLock::new(|| jobfile::parse(JOB).ok());

pub(crate) fn csv(input: &[u8]) -> bool {
    read("rows.csv", input)
}

pub(crate) fn excel(input: &[u8]) -> bool {
    read("rows.xlsx", input)
}

pub(crate) fn json_lines(input: &[u8]) -> bool {
    read("rows.jsonl", input)
}

pub(crate) fn libsvm(input: &[u8]) -> bool {
    read("rows.libsvm", input)
}

/// Frames as they are, and with the checksums that their bytes have, without which hardly any input is more than a bad checksum.
pub(crate) fn tfrecord(input: &[u8]) -> bool {
    let is_taken = read("rows.tfrecord", input);
    read("rows.tfrecord", &with_checksums(input)) || is_taken
}

fn with_checksums(input: &[u8]) -> Vec<u8> {
    let masked = |bytes: &[u8]| {
        crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
    };
    let (mut left, mut frames) = (input, Vec::new());
    while let Some((length, rest)) = left.split_first_chunk::<8>() {
        let rest = rest.get(4..).unwrap_or_default();
        let bytes = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let (record, rest) = rest.split_at(bytes.min(rest.len()));
        left = rest.get(4..).unwrap_or_default();
        frames.extend_from_slice(length);
        frames.extend(masked(length));
        frames.extend_from_slice(record);
        frames.extend(masked(record));
    }
    frames
}

pub(crate) fn hdf5(input: &[u8]) -> bool {
    read("rows.h5", input)
}

pub(crate) fn npz(input: &[u8]) -> bool {
    read("rows.npz", input)
}

pub(crate) fn npy(input: &[u8]) -> bool {
    read("rows.npy", input)
}

pub(crate) fn idx(input: &[u8]) -> bool {
    read("rows.idx", input)
}

pub(crate) fn tensor_data(input: &[u8]) -> bool {
    read("rows.safetensors", input)
}

/// A Parquet file, as a table and as columns by name. Any number of equal values may be in a few bytes, so rows are read up to a number.
pub(crate) fn parquet(input: &[u8]) -> bool {
    in_folder(|folder| {
        let written = fs::write(folder.join("rows.parquet"), input);
        assert!(written.is_ok(), "{written:?}");
        let source = SourceSpec {
            data: "rows.parquet".into(),
            features: None,
            label: Some("label".into()),
            labels: None,
        };
        let mut read = vec![predicts(&source, Channels::First, &[], folder)];
        if !matches!(read.as_slice(), [Ok(MAX_ROWS..)]) {
            read.push(submits(&source, Loss::CrossEntropy, folder));
        }
        for error in read.iter().filter_map(|read| read.as_ref().err()) {
            is_said(&error_chain(error), input);
        }
        let is_table = read.iter().any(Result::is_ok);
        by_name("rows.parquet", input, folder) || is_table
    })
}

/// An image as a row of another size, in color and in gray, as `predict` reads it.
pub(crate) fn images(input: &[u8]) -> bool {
    in_folder(|folder| {
        let written = fs::write(folder.join("image.png"), input);
        assert!(written.is_ok(), "{written:?}");
        let source =
            SourceSpec { data: "image.png".into(), features: None, label: None, labels: None };
        let read =
            [&[3, 5, 4], &[1, 4, 5]].map(|shape| predicts(&source, Channels::First, shape, folder));
        for error in read.iter().filter_map(|read| read.as_ref().err()) {
            is_said(&error_chain(error), input);
        }
        read.iter().all(Result::is_ok)
    })
}

/// Reads a file as `predict` does, and as `submit` does.
fn read(name: &str, input: &[u8]) -> bool {
    if unpacks_to_too_much(input) {
        return false;
    }
    in_folder(|folder| {
        let written = fs::write(folder.join(name), input);
        assert!(written.is_ok(), "{written:?}");
        let is_table = FileKind::named(name).is_some_and(FileKind::is_table);
        let source = SourceSpec {
            data: name.to_owned(),
            features: None,
            label: Some(if is_table { "label" } else { "y" }.to_owned()),
            // The same file: an array of one dimension is rows and labels.
            labels: Some(name.to_owned()).filter(|_| !is_table),
        };
        let mut read = vec![predicts(&source, Channels::First, &[], folder)];
        if !is_table {
            read.push(predicts(&source, Channels::Last, &[], folder));
        }
        let submitted = [Loss::CrossEntropy, Loss::Mse].map(|loss| submits(&source, loss, folder));
        let taken = submitted.iter().any(Result::is_ok);
        read.extend(submitted);
        for error in read.iter().filter_map(|read| read.as_ref().err()) {
            is_said(&error_chain(error), input);
        }
        taken
    })
}

fn predicts(
    source: &SourceSpec,
    channels: Channels,
    in_order: &[u32],
    folder: &Path,
) -> Result<u64, IngestError> {
    let options = ReadOptions {
        features: &[],
        channels,
        in_order,
        categories: &[],
        missing: Missing::Zero,
        fill: &[],
        dialect: &Dialect::default(),
        base_dir: folder,
        spool: folder,
    };
    let reader = Reader::open(source, &options, &mut |_| {})?;
    let width: u64 = reader.shape().iter().copied().map(u64::from).product();
    let (mut rows, _) = (reader.rows()?, reader.bytes());
    let mut count = 0;
    while let Some(row) = rows.next_row()?
        && count < MAX_ROWS
    {
        count += 1;
        assert_eq!(to_u64(row.numbers.len()), width, "a row has another shape");
        assert!(row.numbers.iter().all(|number| number.is_finite()), "{:?}", row.numbers);
        assert_eq!(row.label.is_some(), reader.has_labels());
    }
    Ok(count)
}

/// Returns the rows of training shards.
fn submits(source: &SourceSpec, loss: Loss, folder: &Path) -> Result<u64, IngestError> {
    assert!(SPEC.is_some(), "the job can't be read");
    let Some(mut spec) = SPEC.clone() else { return Ok(0) };
    spec.training.loss = loss;
    spec.data.train.clone_from(&source.data);
    spec.data.label = source.label.clone();
    spec.data.labels.clone_from(&source.labels);
    let summary = sojourn_ingest::check(&spec, folder, folder, &mut |_| {})?;
    let width: u64 = summary.shape.iter().copied().map(u64::from).product();
    assert_eq!(to_u64(summary.width), width, "a width that isn't the shape's");
    assert!(summary.train.iter().all(|rows| *rows > 0), "a shard without rows");
    Ok(summary.train.iter().copied().map(u64::from).sum())
}
