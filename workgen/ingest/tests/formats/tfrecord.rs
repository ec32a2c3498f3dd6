//! TFRecord: equal rows are those of a CSV file, whatever the order of features and however lists are written.

use super::{folder, job, made, refused, told, write::gzip};
use proptest::prelude::*;
use sojourn_ingest::{Ingested, Profile, ProfileOf, Reason, Unbounded, check, ingest, profile};
use sojourn_protocol::{digest::Digest, manifest::DataManifest, spec::FileKind};
use std::{fmt::Write as _, sync::Arc};
use tempfile::TempDir;

const REST: &str = "\nlabel = \"y\"\nshards = 2\nvalid = 0.25";

fn blobs(made: &Ingested) -> (Vec<Digest>, &DataManifest) {
    (made.files.keys().copied().collect(), &made.manifest)
}

fn varint(mut number: u64, into: &mut Vec<u8>) {
    while number > 0x7f {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

/// A field of bytes.
fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
    let mut field = Vec::new();
    varint(number << 3 | 2, &mut field);
    varint(bytes.len() as u64, &mut field);
    field.extend(bytes);
    field
}

fn floats(numbers: &[f32], is_packed: bool) -> Vec<u8> {
    let bytes: Vec<[u8; 4]> = numbers.iter().map(|number| number.to_le_bytes()).collect();
    let list = match is_packed {
        true => field(1, &bytes.concat()),
        false => bytes.iter().flat_map(|bytes| [&[1 << 3 | 5][..], bytes].concat()).collect(),
    };
    field(2, &list)
}

fn whole(numbers: &[i64], is_packed: bool) -> Vec<u8> {
    let mut list = Vec::new();
    for number in numbers {
        if !is_packed {
            list.push(1 << 3);
        }
        varint(number.cast_unsigned(), &mut list);
    }
    field(3, &if is_packed { field(1, &list) } else { list })
}

fn texts(texts: &[&[u8]]) -> Vec<u8> {
    field(1, &texts.iter().flat_map(|text| field(1, text)).collect::<Vec<u8>>())
}

/// The message of these features.
fn example(features: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let entries = features
        .iter()
        .map(|(name, feature)| field(1, &[field(1, name.as_bytes()), field(2, feature)].concat()));
    field(1, &entries.flatten().collect::<Vec<u8>>())
}

fn masked(bytes: &[u8]) -> [u8; 4] {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

fn record(message: &[u8]) -> Vec<u8> {
    let length = (message.len() as u64).to_le_bytes();
    [&length[..], &masked(&length), message, &masked(message)].concat()
}

/// A row of a table; `None` is a missing value.
#[derive(Debug, Clone)]
struct Row {
    n: Option<i64>,
    pair: [f32; 2],
    word: Option<&'static str>,
    y: bool,
    /// The order of its features.
    turn: usize,
    is_packed: bool,
}

impl Row {
    fn record(&self) -> Vec<u8> {
        let class: &[u8] = if self.y { b"a" } else { b"b, c" };
        let mut features =
            vec![("pair", floats(&self.pair, self.is_packed)), ("y", texts(&[class]))];
        match self.n {
            Some(n) => features.push(("n", whole(&[n], self.is_packed))),
            // A list without elements, and a feature without a list.
            None if self.is_packed => features.push(("n", whole(&[], true))),
            None => features.push(("n", Vec::new())),
        }
        if let Some(word) = self.word {
            features.push(("word", texts(&[word.as_bytes()])));
        }
        let turn = self.turn % features.len();
        features.rotate_left(turn);
        record(&example(&features))
    }

    fn line(&self) -> String {
        let Row { n, pair: [a, b], word, y, .. } = self;
        let n = n.map_or(String::new(), |n| n.to_string());
        let word = word.map_or(String::new(), |word| format!("\"{}\"", word.replace('"', "\"\"")));
        format!("{n},{a},{b},{word},{}\n", if *y { "a" } else { "\"b, c\"" })
    }
}

fn row() -> impl Strategy<Value = Row> {
    let word = prop::sample::select(vec!["red", "grün", "say \"hi\"", "a, b"]);
    (
        prop::option::weighted(0.9, any::<i32>().prop_map(i64::from)),
        prop::array::uniform2(prop::num::f32::NORMAL | prop::num::f32::ZERO),
        prop::option::weighted(0.9, word),
        any::<bool>(),
        0..4usize,
        any::<bool>(),
    )
        .prop_map(|(n, pair, word, y, turn, is_packed)| Row {
            n,
            pair,
            word,
            y,
            turn,
            is_packed,
        })
}

/// Rows that show all columns.
fn full() -> Vec<Row> {
    let word = |n: u8| Some(if n < 4 { "red" } else { "a, b" });
    let of = |n: u8| Row {
        n: Some(-i64::from(n)),
        pair: [f32::from(n), 0.5],
        word: word(n),
        y: n.is_multiple_of(2),
        turn: 0,
        is_packed: true,
    };
    (0..8).map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn equal_rows_are_equal_shards_however_lists_are_written(
        more in prop::collection::vec(row(), 0..20),
        name in prop::sample::select(vec!["t.tfrecord", "t.tfrecords.gz", "t-00000-of-00001"]),
    ) {
        let rows: Vec<Row> = full().into_iter().chain(more).collect();
        let mut csv = "n,pair_0,pair_1,word,y\n".to_owned();
        let mut records = Vec::new();
        for row in &rows {
            write!(csv, "{}", row.line()).unwrap();
            records.extend(row.record());
        }
        let records = if name.ends_with("gz") { gzip(&records) } else { records };
        let dir = folder(&[("t.csv", csv.into_bytes()), (name, records)]);
        let of = |file: &str| {
            let more = "missing = \"mean\"\ncategories = { word = \"one-hot\" }";
            let data = format!("train = \"{file}\"{REST}\n{more}");
            made(&data, dir.path()).map_err(|error| told(&error))
        };
        let (csv, records) = (of("t.csv"), of(name));
        prop_assert!(records.is_ok(), "{records:?}");
        let (csv, records) = (csv.unwrap(), records.unwrap());
        prop_assert_eq!(blobs(&records), blobs(&csv));
    }
}

/// Eight examples of two features.
fn plain() -> Vec<Vec<u8>> {
    (0..8i64).map(|n| example(&[("a", whole(&[n], true)), ("y", whole(&[n % 2], true))])).collect()
}

fn file(messages: &[Vec<u8>]) -> Vec<u8> {
    messages.iter().flat_map(|message| record(message)).collect()
}

#[test]
fn parts_and_validation_data_may_leave_features_out() {
    let valid: Vec<Vec<u8>> = (0..4).map(|n| example(&[("y", whole(&[n % 2], false))])).collect();
    let dir = folder(&[
        ("train/a.tfrecord", file(&plain())),
        ("train/b.tfrecord", file(&plain()[..3])),
        ("valid.tfrecord", file(&valid)),
    ]);
    let data = "train = \"train\"\nlabel = \"y\"\nvalid = \"valid.tfrecord\"\nshards = 1\n\
                missing = \"zero\"";
    let made = made(data, dir.path()).map_err(|error| told(&error)).unwrap();
    assert_eq!(made.manifest.train.iter().map(|shard| shard.rows).sum::<u32>(), 11);
    assert_eq!(made.manifest.valid.iter().map(|shard| shard.rows).sum::<u32>(), 4);
    assert_eq!(made.manifest.features, ["a"]);
}

#[test]
fn frames_that_are_damaged_are_refused_by_their_record() {
    let data = format!("train = \"t.tfrecord\"{REST}");
    let good = file(&plain());
    let size = record(&plain()[0]).len();
    let said = |bytes: Vec<u8>| refused(&data, &[("t.tfrecord", bytes)]);
    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        said(bytes)
    };
    let damaged = |row: usize, reason: &str| {
        format!("t.tfrecord: row {row}: the TFRecord data is damaged or cut off ({reason})")
    };
    let of_length = "the checksum of its length isn't that of the length";
    assert_eq!(flipped(size), damaged(2, of_length));
    assert_eq!(flipped(2 * size + 9), damaged(3, of_length));
    assert_eq!(flipped(2 * size + 13), damaged(3, "its checksum isn't that of its bytes"));
    assert_eq!(flipped(3 * size - 1), damaged(3, "its checksum isn't that of its bytes"));
    for cut in [1, 3, 5, size - 13, size - 3] {
        let bytes = good[..good.len() - cut].to_vec();
        assert_eq!(said(bytes), damaged(8, "the file ends within it"), "{cut}");
    }
    // A length that nothing is allocated for.
    for length in [u64::MAX, 1 << 40, (64 << 20) + 1] {
        let length = length.to_le_bytes();
        let bytes = [&good[..], &length, &masked(&length)].concat();
        assert_eq!(said(bytes), "t.tfrecord: row 9: a record of over 67108864 bytes");
    }
    let length = (64u64 << 20).to_le_bytes();
    let bytes = [&good[..], &length, &masked(&length), b"cut"].concat();
    assert_eq!(said(bytes), damaged(9, "the file ends within it"));
    let text = said(b"a,y\n1,2\n3,4\n5,6\n".to_vec());
    assert_eq!(text, "t.tfrecord: the file isn't TFRecord, as its name or the files beside it say");
}

#[test]
fn records_that_are_no_examples_are_refused_by_their_place_or_left_out() {
    let data = format!("train = \"t.tfrecord\"{REST}");
    let entry = |bytes: &[u8]| field(1, &field(1, bytes));
    let of = |feature: Vec<u8>| example(&[("a", feature), ("y", whole(&[1], true))]);
    let broken = "its bytes are no message of protocol buffers, or are cut off";
    let bad = [
        (b"no example".to_vec(), broken),
        (of(whole(&[1], true))[..9].to_vec(), broken),
        (of(field(3, &[1 << 3, 0xff])), broken),
        (of(field(2, &field(1, &[0; 5]))), broken),
        (of([whole(&[1], true), floats(&[1.0], true)].concat()), "a feature has two lists"),
        (of(field(3, &[1 << 3 | 5, 0, 0, 0, 0])), "a list has elements of another type"),
        (entry(&field(2, b"")), "a feature has no name"),
        (entry(&field(1, b"\xff")), "the name of a feature isn't UTF-8"),
        (entry(&field(1, &[b'a'; 1025])), "the name of a feature has over 1024 bytes"),
    ];
    for (message, reason) in &bad {
        let bytes = [file(&plain()), record(message)].concat();
        assert_eq!(
            refused(&data, &[("t.tfrecord", bytes)]),
            format!("t.tfrecord: row 9: no `tf.train.Example`: {reason}")
        );
    }
    let twice =
        example(&[("a", whole(&[1], true)), ("a", whole(&[1], true)), ("y", whole(&[1], true))]);
    let bytes = [file(&plain()), record(&twice)].concat();
    let said = refused(&data, &[("t.tfrecord", bytes)]);
    assert!(
        said.starts_with("t.tfrecord: row 9: column `a`: the key `a` is there twice"),
        "{said}"
    );
    for (number, reason) in [(f32::INFINITY, "`inf`"), (f32::NAN, "a value is missing (`NaN`)")] {
        let bytes = [file(&plain()), record(&of(floats(&[number], true)))].concat();
        let said = refused(&data, &[("t.tfrecord", bytes)]);
        assert!(said.starts_with(&format!("t.tfrecord: row 9: column `a`: {reason}")), "{said}");
    }
    let some: Vec<Vec<u8>> = bad.into_iter().take(3).map(|(message, _)| message).collect();
    let dir = folder(&[
        ("t.tfrecord", [file(&some), file(&plain())].concat()),
        ("good.tfrecord", file(&plain())),
    ]);
    let (out, mut counts) = (TempDir::new().unwrap(), Vec::new());
    let skips = job(&format!("{data}\non_bad_row = \"skip\""));
    let skipped = ingest(&skips, dir.path(), out.path(), &mut |progress| {
        if let sojourn_ingest::Progress::Bad { bad, .. } = progress {
            counts.push(bad.reasons.clone());
        }
    });
    let skipped = skipped.map_err(|error| told(&error)).unwrap();
    assert_eq!(counts, [[(Reason::NoExample, 3)].into()]);
    let good = made(&data.replace("t.tfrecord", "good.tfrecord"), dir.path()).unwrap();
    assert_eq!(blobs(&skipped), blobs(&good));
}

#[test]
fn what_can_be_no_feature_is_told_with_its_first_record() {
    let message = |n: i64| {
        let ragged: Vec<i64> = (0..=n).collect();
        example(&[
            ("a", floats(&[0.5, 1.5], n % 2 == 0)),
            ("image", texts(&[b"\xff\xd8\xff"])),
            ("ragged", whole(&ragged, true)),
            ("y", whole(&[n % 2], true)),
        ])
    };
    let bytes = file(&(0..8).map(message).collect::<Vec<_>>());
    let data = |more: &str| format!("train = \"t.tfrecord\"{REST}\n{more}");
    let files = [("t.tfrecord", bytes)];
    assert_eq!(
        refused(&data(""), &files),
        "t.tfrecord: row 1: column `image`: it holds bytes that are no text in UTF-8, such as an encoded image, which can be no \
         feature and no label; leave it out by `data.columns`"
    );
    assert_eq!(
        refused(&data("columns = { drop = [\"image\"] }"), &files),
        "t.tfrecord: row 2: column `ragged`: it holds lists of different lengths, which can be no feature and no label; leave it out \
         by `data.columns`"
    );
    let dir = folder(&files);
    let dropped = job(&data("columns = { drop = [\"image\", \"ragged\"] }\nshape = [1, 2]"));
    let checked = check(&dropped, dir.path(), dir.path(), &mut |_| {}).unwrap();
    assert_eq!((checked.features, checked.shape), (vec!["a_0".into(), "a_1".into()], vec![1, 2]));
    let wanted = ProfileOf {
        data: "t.tfrecord",
        base_dir: dir.path(),
        spool: dir.path(),
        separator: None,
        label: None,
    };
    let found = profile(wanted, Arc::new(Unbounded), &mut |_| {}).unwrap();
    let Profile::Table(table) = found else { panic!("{found:?}") };
    assert_eq!((table.format, table.rows), (FileKind::TfRecord, 8));
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["a_0", "a_1", "image", "ragged", "y"]);
}
