//! Sparse rows in libsvm's format: equal rows are those of a CSV file, zeros written or not.

use super::{folder, job, made, refused, told, write::gzip};
use proptest::prelude::*;
use sojourn_ingest::{
    Ingested, Progress, ReadOptions, Reader, Reason, Unbounded, check, ingest, profile,
};
use sojourn_protocol::{
    digest::Digest,
    manifest::{DataManifest, Labels},
    spec::{Channels, Dialect, FileKind, Missing, SourceSpec},
};
use std::{fmt::Write as _, path::Path, sync::Arc};
use tempfile::TempDir;

const REST: &str = "\nshards = 2\nvalid = 0.25\nscale = \"standard\"";

fn blobs(made: &Ingested) -> (Vec<Digest>, &DataManifest) {
    (made.files.keys().copied().collect(), &made.manifest)
}

/// A row: its label, its five numbers, and whether zeros are written.
type Row = (bool, [f32; 5], bool);

fn row() -> impl Strategy<Value = Row> {
    let number = prop_oneof![2 => Just(0.0), 1 => prop::num::f32::NORMAL];
    (any::<bool>(), prop::array::uniform5(number), any::<bool>())
}

fn csv(rows: &[Row], first: usize) -> Vec<u8> {
    let names: Vec<String> = (first..first + 5).map(|index| index.to_string()).collect();
    let mut text = format!("label,{}\n", names.join(","));
    for (label, numbers, _) in rows {
        let numbers: Vec<String> = numbers.iter().map(f32::to_string).collect();
        writeln!(text, "{},{}", if *label { "1" } else { "-1" }, numbers.join(",")).unwrap();
    }
    text.into_bytes()
}

fn sparse(rows: &[Row], first: usize, end: &str) -> Vec<u8> {
    let mut text = String::new();
    for (label, numbers, are_zeros_written) in rows {
        text += if *label { "+1 qid:3" } else { "-1" };
        for (index, number) in (first..).zip(numbers) {
            if *number != 0.0 || *are_zeros_written {
                write!(text, " {index}:{number}").unwrap();
            }
        }
        text += end;
    }
    text.into_bytes()
}

/// Rows that have each index.
fn whole() -> Vec<Row> {
    (0..8u8).map(|n| (n.is_multiple_of(2), [1.0, 0.0, f32::from(n), -2.5, 3.0], n < 2)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn equal_rows_are_equal_shards_whether_or_not_zeros_are_written(
        more in prop::collection::vec(row(), 0..20),
        end in prop::sample::select(vec!["\n", "\r\n", " \n\n", " # of 7:1\n# note\n"]),
        first in 0..2usize,
        name in prop::sample::select(vec!["t.libsvm", "t.svm.gz", "t.svmlight", "t.unknown"]),
        has_mark in any::<bool>(),
    ) {
        let rows: Vec<Row> = whole().into_iter().chain(more).collect();
        let mut text = if has_mark { b"\xef\xbb\xbf".to_vec() } else { Vec::new() };
        text.extend(sparse(&rows, first, end));
        let text = if name.ends_with("gz") { gzip(&text) } else { text };
        let dir = folder(&[("t.csv", csv(&rows, first)), (name, text)]);
        let of = |file: &str| {
            let data = format!("train = \"{file}\"\nlabel = \"label\"{REST}");
            made(&data, dir.path()).map_err(|error| told(&error))
        };
        let (csv, sparse) = (of("t.csv"), of(name));
        prop_assert!(sparse.is_ok(), "{sparse:?}");
        let (csv, sparse) = (csv.unwrap(), sparse.unwrap());
        prop_assert_eq!(blobs(&sparse), blobs(&csv));
    }
}

#[test]
fn the_label_needs_no_key_and_may_be_a_number() {
    let rows: String = (0..8).map(|n| format!("{n}.5 1:{n} 3:1\n")).collect();
    let dir = folder(&[("t.svm", rows.into())]);
    let mut spec = job(&format!("train = \"t.svm\"{REST}"));
    spec.training.loss = sojourn_protocol::spec::Loss::Mse;
    let out = TempDir::new().unwrap();
    let made = ingest(&spec, dir.path(), out.path(), &mut |_| {}).unwrap();
    assert_eq!(made.manifest.labels, Labels::Number);
    assert_eq!(made.manifest.features, ["1", "2", "3"]);
}

#[test]
fn parts_and_validation_data_have_the_columns_of_the_training_data() {
    let dir = folder(&[
        ("train/1.svm", b"1 1:1\n2 2:1\n1 1:2\n".to_vec()),
        ("train/2.svm", b"2 5:1\n1\n2 3:4\n".to_vec()),
        ("valid.svm", b"1 2:1\n2\n".to_vec()),
        ("wide.svm", b"1 2:1\n2 9:1\n".to_vec()),
    ]);
    let data = |valid: &str| format!("train = \"train\"\nvalid = \"{valid}\"\nshards = 1");
    let made = made(&data("valid.svm"), dir.path()).map_err(|error| told(&error)).unwrap();
    assert_eq!(made.manifest.features, ["1", "2", "3", "4", "5"]);
    assert_eq!(made.manifest.train.iter().map(|shard| shard.rows).sum::<u32>(), 6);
    assert_eq!(made.manifest.valid.iter().map(|shard| shard.rows).sum::<u32>(), 2);
    let wide = super::made(&data("wide.svm"), dir.path()).unwrap_err();
    assert_eq!(
        told(&wide),
        "wide.svm:2: the index 9 isn't among those of the training data, 1 to 5; to make room for it, end a row of the training \
         data with ` 9:0`"
    );
    // As the message says.
    std::fs::write(dir.path().join("train/2.svm"), "2 5:1 9:0\n1\n2 3:4\n").unwrap();
    assert!(super::made(&data("wide.svm"), dir.path()).is_ok());
}

#[test]
fn rows_to_predict_have_the_columns_of_the_model() {
    let dir = folder(&[("t.svm", b"0 2:7\n0 9:1\n".to_vec())]);
    let names: Vec<String> = ["0", "1", "2", "3"].map(str::to_owned).to_vec();
    let source = SourceSpec { data: "t.svm".into(), features: None, label: None, labels: None };
    let options = ReadOptions {
        features: &names,
        channels: Channels::First,
        in_order: &[],
        categories: &[],
        missing: Missing::Refuse,
        fill: &[],
        dialect: &Dialect::default(),
        base_dir: dir.path(),
        spool: dir.path(),
    };
    let reader = Reader::open(&source, &options, &mut |_| {}).unwrap();
    let mut rows = reader.rows().unwrap();
    assert_eq!(rows.next_row().unwrap().unwrap().numbers, [0.0, 0.0, 7.0, 0.0]);
    assert_eq!(rows.next_row().unwrap().unwrap().numbers, [0.0; 4]);
    assert!(rows.next_row().unwrap().is_none());
}

#[test]
fn lines_that_are_no_rows_are_refused_by_their_place_or_left_out() {
    let good: String = (0..8).map(|n| format!("{} 1:{n} 4:1\n", n % 2)).collect();
    let data = format!("train = \"t.svm\"{REST}");
    for (line, message) in [
        ("2:1 3:1", "the row begins with `2:1`, and a label is wanted there, such as `1 2:1`"),
        ("1,2 3:1", "the row has several labels, `1,2`; one is wanted"),
        ("1 3", "`3` is no pair of an index and a value, such as `3:0.5`"),
        ("1 3:", "`3:` is no pair of an index and a value, such as `3:0.5`"),
        ("1 -1:2", "`-1` is no index, a whole number from 0"),
        ("1 x:2", "`x` is no index, a whole number from 0"),
        ("1 2:2 qid:1", "`qid` is no index, a whole number from 0"),
        ("1 3:1 3:2", "the index 3 is there twice"),
        ("1 3:1 2:2", "the index 2 comes behind 3; indices must grow from left to right"),
        (
            "1 4000000000:1",
            "the index of `4000000000:1` is too large; rows are made dense, and 1048575 is the most",
        ),
        (
            "1 99999999999999999999999:1",
            "the index of `99999999999999999999999:1` is too large; rows are made dense, and 1048575 is the most",
        ),
    ] {
        let bad = format!("{good}{line}\n");
        assert_eq!(
            refused(&data, &[("t.svm", bad.into())]),
            format!("t.svm:9: {message}"),
            "{line}"
        );
    }
    for (line, message) in [
        ("1 1:inf", "t.svm:9: column `1`: `inf` is not finite"),
        ("1 2:1e99", "t.svm:9: column `2`: `1e99` is"),
        ("1 2:nan", "t.svm:9: column `2`: a value is missing (`nan`)"),
        ("1 2:word", "t.svm:9: column `2`: `word` is no number"),
    ] {
        let bad = format!("{good}{line}\n");
        let said = refused(&data, &[("t.svm", bad.into())]);
        assert!(said.starts_with(message), "{said}");
    }
    let bad = format!("{good}1 2:1 2:1\n1 3:1 2:1\n\u{ff}:1\n");
    let dir = folder(&[("t.svm", bad.into()), ("good.svm", good.into())]);
    let (out, mut counts) = (TempDir::new().unwrap(), Vec::new());
    let skips = job(&format!("{data}\non_bad_row = \"skip\""));
    let skipped = ingest(&skips, dir.path(), out.path(), &mut |progress| {
        if let Progress::Bad { bad, .. } = progress {
            counts.push(bad.reasons.clone());
        }
    });
    let skipped = skipped.map_err(|error| told(&error)).unwrap();
    assert_eq!(counts, [[(Reason::NoSparseRow, 3)].into()]);
    let whole = made(&data.replace("t.svm", "good.svm"), dir.path()).unwrap();
    assert_eq!(blobs(&skipped), blobs(&whole));
}

#[test]
fn files_without_a_value_and_other_files_are_refused() {
    let data = format!("train = \"t.svm\"{REST}");
    let said = |bytes: &[u8]| refused(&data, &[("t.svm", bytes.to_vec())]);
    assert_eq!(said(b"1\n2\n"), "t.svm: no feature column beside the label");
    assert_eq!(said(b"# nothing\n\n"), "t.svm: no feature column beside the label");
    assert_eq!(
        said(b"a,b,y\n1,2,3\n"),
        "t.svm:1: the row has several labels, `a,b,y`; one is wanted"
    );
    assert_eq!(
        said(b"PK\x03\x04..........................."),
        "t.svm: the file isn't libsvm, as its name or the files beside it say"
    );
    assert_eq!(said(b""), "t.svm: the file is empty");
}

#[test]
fn a_look_at_sparse_rows_finds_their_columns() {
    let dir = folder(&[("a9a", b"+1 3:1 7:0.5\n-1 1:2\n+1\n-1 7:1 3:2\n".to_vec())]);
    let wanted = sojourn_ingest::ProfileOf {
        data: "a9a",
        base_dir: dir.path(),
        spool: dir.path(),
        separator: None,
        label: None,
    };
    let found = profile(wanted, Arc::new(Unbounded), &mut |_| {}).unwrap();
    let sojourn_ingest::Profile::Table(table) = found else { panic!("{found:?}") };
    assert_eq!((table.format, table.rows), (FileKind::Libsvm, 3));
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["label", "1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(table.odd_lines.count, 1);
}

#[test]
fn columns_can_be_chosen_by_their_indices() {
    let rows: String = (0..8).map(|n| format!("{} 1:{n} 900000:1\n", n % 2)).collect();
    let dir = folder(&[("t.svm", rows.into())]);
    let data = format!("train = \"t.svm\"\ncolumns = {{ use = [\"900000\", \"1\"] }}{REST}");
    let checked = check(&job(&data), Path::new(dir.path()), dir.path(), &mut |_| {}).unwrap();
    assert_eq!(checked.features, ["900000", "1"]);
}
