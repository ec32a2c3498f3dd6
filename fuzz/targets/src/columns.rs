//! Data with columns by name: parts, Parquet and text, as a job of a user's own model reads them, and as `predict` does.

use crate::{expect::is_said, files::in_folder, unpacking::unpacks_to_too_much};
use sojourn_codec::{Dtype, decode};
use sojourn_ingest::{ColumnReader, ColumnSource, IngestError, check};
use sojourn_protocol::{
    column::{Column, check_columns},
    error::error_chain,
    jobfile,
    quantity::to_u64,
    spec::{Columns, JobSpec},
};
use std::{fs, path::Path, sync::LazyLock};

/// Rows that are read of one input.
const MAX_ROWS: u64 = 20_000;
/// Bytes of the rows that are read of one input.
const MAX_BYTES: usize = 4 << 20;
/// The job whose data an input is.
const JOB: &str = "name = 'a'\n[data]\ntrain = 't.txt'\nvalid = 0.5\nshards = 1\nwindow = 2\n\
    [[model]]\narch = 'graph'\nentry = 'm.py:M'\n[training]\nepochs = 1\nbatch_size = 1\n\
    optimizer = { name = 'sgd', lr = 0.1 }\n[search]\nmethod = 'grid'\nmetric = 'valid/loss'\n";
static SPEC: LazyLock<Option<JobSpec>> = LazyLock::new(|| jobfile::parse(JOB).ok());
/// The columns of a model: name, type, shape, and whether rows differ in length. Inputs of the corpus have them.
const WANTED: &[(&str, Dtype, &[u32], bool)] = &[
    ("colors", Dtype::U8, &[3], true),
    ("count", Dtype::I64, &[], false),
    ("flag", Dtype::Bool, &[], false),
    ("half", Dtype::F16, &[], false),
    ("pixel", Dtype::U8, &[3], false),
    ("small", Dtype::I8, &[], false),
    ("text", Dtype::U8, &[], true),
    ("tokens", Dtype::I64, &[], true),
    ("x", Dtype::F32, &[], false),
];
/// A tokenizer of four words.
const TOKENIZER: &str = r#"{"version": "1.0", "added_tokens": [], "normalizer": null, "post_processor": null,
    "decoder": null, "truncation": null, "padding": null, "pre_tokenizer": {"type": "Whitespace"},
    "model": {"type": "WordLevel", "vocab": {"?": 0, "to": 1, "be": 2, "or": 300}, "unk_token": "?"}}"#;

/// A part of `sojourn.data.write`.
pub(crate) fn parts(input: &[u8]) -> bool {
    if unpacks_to_too_much(input) {
        return false;
    }
    in_folder(|folder| by_name("rows.safetensors", input, folder))
}

/// Text, as bytes and as the tokens of lines.
pub(crate) fn text(input: &[u8]) -> bool {
    if unpacks_to_too_much(input) {
        return false;
    }
    in_folder(|folder| {
        let files = [("t.txt", input), ("tokenizer.json", TOKENIZER.as_bytes())];
        for (name, bytes) in files {
            let written = fs::write(folder.join(name), bytes);
            assert!(written.is_ok(), "{written:?}");
        }
        let cut = |tokenizer: Option<&str>| {
            submits(folder, |spec| spec.data.tokenizer = tokenizer.map(str::to_owned))
        };
        let read = [cut(None), cut(Some("tokenizer.json"))];
        for error in read.iter().filter_map(|read| read.as_ref().err()) {
            is_said(&error_chain(error), input);
        }
        read.iter().all(Result::is_ok)
    })
}

/// Reads a file as `predict` does, and as `submit` does: the columns of the model, whole and joined into windows.
pub(crate) fn by_name(name: &str, input: &[u8], folder: &Path) -> bool {
    let written = fs::write(folder.join(name), input);
    assert!(written.is_ok(), "{written:?}");
    let wanted: Vec<Column> = WANTED.iter().map(column).collect();
    let found = match predicts(name, &wanted, folder) {
        Ok(Some(found)) => found,
        Ok(None) => return true,
        Err(error) => {
            is_said(&error_chain(&error), input);
            return false;
        }
    };
    let is_parquet = Path::new(name).extension().is_some_and(|end| end == "parquet");
    let submits = |window: Option<u32>, names: Vec<String>| {
        submits(folder, |spec| {
            name.clone_into(&mut spec.data.train);
            spec.data.window = window;
            spec.data.columns = is_parquet.then_some(Columns::Use(names));
        })
    };
    let first = found.first().cloned().into_iter().collect();
    let read = [submits(None, found), submits(Some(2), first)];
    for error in read.iter().filter_map(|read| read.as_ref().err()) {
        is_said(&error_chain(error), input);
    }
    read.iter().any(Result::is_ok)
}

fn column((name, dtype, shape, is_sequence): &(&str, Dtype, &'static [u32], bool)) -> Column {
    Column {
        name: (*name).to_owned(),
        dtype: *dtype,
        shape: shape.to_vec(),
        longest: is_sequence.then_some(3),
        values: None,
        classes: Vec::new(),
        windows: false,
    }
}

/// The wanted columns that are there; none where there are more rows than are read.
fn predicts(
    name: &str,
    wanted: &[Column],
    folder: &Path,
) -> Result<Option<Vec<String>>, IngestError> {
    let source = ColumnSource { data: name, tokenizer: None, base_dir: folder, spool: folder };
    let reader = ColumnReader::open(source, wanted, &mut |_| {})?;
    let mut rows = reader.rows()?;
    let (mut count, mut bytes) = (0, 0);
    while let Some((shard, read)) = rows.next_shard(3)? {
        assert!((1..=3).contains(&read), "{read} rows at once");
        assert!(decode(&shard).is_ok(), "a shard that isn't canonical");
        count += to_u64(read);
        bytes += shard.len();
        if count > MAX_ROWS || bytes > MAX_BYTES {
            return Ok(None);
        }
    }
    Ok(Some(reader.columns().into_iter().map(|column| column.name).collect()))
}

/// Reads the job's data, changed by `with`, and returns the rows of training shards.
fn submits(folder: &Path, with: impl FnOnce(&mut JobSpec)) -> Result<u64, IngestError> {
    assert!(SPEC.is_some(), "the job can't be read");
    let Some(mut spec) = SPEC.clone() else { return Ok(0) };
    with(&mut spec);
    let summary = check(&spec, folder, folder, &mut |_| {})?;
    assert!(!summary.columns.is_empty(), "rows without columns");
    assert_eq!(check_columns(&summary.columns), Ok(()));
    assert!(summary.train.iter().all(|rows| *rows > 0), "a shard without rows");
    Ok(summary.train.iter().copied().map(u64::from).sum())
}
