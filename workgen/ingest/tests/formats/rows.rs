//! Rows for anything else than training: what `predict` reads.

use super::{folder, told, write::*};
use sojourn_ingest::{IngestError, ReadOptions, Reader};
use sojourn_protocol::spec::{Channels, Dialect, Missing, SourceSpec};
use std::path::Path;
use zip::CompressionMethod::Deflated;

fn open(base: &Path, data: &str, features: &[&str]) -> Result<Reader, IngestError> {
    let source =
        SourceSpec { data: data.into(), features: None, label: Some("y".into()), labels: None };
    let features: Vec<String> = features.iter().map(|name| (*name).to_owned()).collect();
    let options = ReadOptions {
        features: &features,
        channels: Channels::First,
        in_order: &[],
        categories: &[],
        missing: Missing::Refuse,
        fill: &[],
        dialect: &Dialect::default(),
        base_dir: base,
        spool: base,
    };
    Reader::open(&source, &options, &mut |_| {})
}

fn all(reader: &Reader) -> Vec<(Vec<f32>, Option<String>)> {
    let mut rows = reader.rows().unwrap();
    let mut found = Vec::new();
    while let Some(row) = rows.next_row().unwrap() {
        let label = row.label.map(|label| String::from_utf8(label.to_vec()).unwrap());
        found.push((row.numbers.to_vec(), label));
    }
    assert!(rows.bytes_read() <= reader.bytes());
    found
}

#[test]
fn columns_are_found_by_name_and_labels_may_be_missing() {
    let dir = folder(&[
        ("t.csv", b"b,id,a,y\n2,7,1,u\n4,8,3,v\n".to_vec()),
        ("bare.csv", b"a,b\n1,2\n".to_vec()),
        ("one.csv", b"a\n1\n\n2\n".to_vec()),
        ("colons.csv", b"a:b:y\n1:2:u\n".to_vec()),
    ]);
    let reader = open(dir.path(), "t.csv", &["a", "b"]).unwrap();
    assert_eq!((reader.shape(), reader.ignored()), (&[2][..], &["id".to_owned()][..]));
    let expected =
        vec![(vec![1.0, 2.0], Some("u".to_owned())), (vec![3.0, 4.0], Some("v".to_owned()))];
    assert_eq!(all(&reader), expected);
    assert_eq!(all(&reader), expected, "as often as asked");
    let whole = open(dir.path(), "t.csv", &[]).unwrap();
    assert_eq!(whole.features(), ["b", "id", "a"]);
    let bare = open(dir.path(), "bare.csv", &["b", "a"]).unwrap();
    assert!(!bare.has_labels());
    assert_eq!(all(&bare), [(vec![2.0, 1.0], None)]);
    let missing = open(dir.path(), "bare.csv", &["aa", "b", "z"]).err().unwrap();
    assert_eq!(
        told(&missing),
        "bare.csv:1: no column `aa` and 1 more that the model was trained on; did you mean `a`?"
    );
    let unseparated = open(dir.path(), "colons.csv", &["a:b", "b"]).err().unwrap();
    assert_eq!(
        told(&unseparated),
        "colons.csv:1: no column `a:b` and 1 more that the model was trained on"
    );
    // With one column an empty line may be a row, and is one without a value.
    let one = open(dir.path(), "one.csv", &["a"]).unwrap();
    let mut rows = one.rows().unwrap();
    assert!(rows.next_row().unwrap().is_some());
    let error = rows.next_row().err().unwrap();
    assert_eq!(told(&error), "one.csv:3: column `a`: a value is missing");
}

#[test]
fn arrays_need_no_labels() {
    let dir = folder(&[
        ("both.npz", npz_of_both(Deflated)),
        ("x.npz", npz(&[("x.npy", npy_pixels())], Deflated)),
        ("x.npy", npy_pixels()),
        ("images.idx", idx_images()),
    ]);
    let pixels: Vec<Vec<f32>> =
        pixels().chunks(6).map(|row| row.iter().map(|pixel| f32::from(*pixel)).collect()).collect();
    for (file, has_labels) in
        [("both.npz", true), ("x.npz", false), ("x.npy", false), ("images.idx", false)]
    {
        let reader = open(dir.path(), file, &["names", "that", "arrays", "lack"]).unwrap();
        assert_eq!((reader.has_labels(), reader.shape()), (has_labels, &[1, 2, 3][..]), "{file}");
        let (numbers, texts): (Vec<_>, Vec<_>) = all(&reader).into_iter().unzip();
        assert_eq!(numbers, pixels, "{file}");
        let expected = labels().into_iter().map(|label| has_labels.then(|| label.to_string()));
        assert_eq!(texts, expected.collect::<Vec<_>>(), "{file}");
    }
}

#[test]
fn rows_that_are_in_order_already_are_not_turned_round() {
    // Rows of 2 channels of 3 x 4, counted up in the order of models; 3 x 4 x 2 holds them turned.
    let file = |shape: &[usize], order: &dyn Fn(u8) -> u8| {
        let bytes = (0..24).map(order).collect::<Vec<u8>>();
        npy("|u1", shape, &bytes)
    };
    let turned = |at: u8| at % 2 * 12 + at / 2;
    let dir = folder(&[
        ("last.npy", file(&[1, 3, 4, 2], &turned)),
        ("first.npy", file(&[1, 2, 3, 4], &|at| at)),
        ("flat.npy", file(&[1, 24], &|at| at)),
        ("cube.npy", npy("|u1", &[1, 2, 2, 2], &[0, 4, 1, 5, 2, 6, 3, 7])),
    ]);
    let open = |data: &str, in_order: &[u32]| {
        let source = SourceSpec { data: data.into(), features: None, label: None, labels: None };
        let options = ReadOptions {
            features: &[],
            channels: Channels::Last,
            in_order,
            categories: &[],
            missing: Missing::Refuse,
            fill: &[],
            dialect: &Dialect::default(),
            base_dir: dir.path(),
            spool: dir.path(),
        };
        Reader::open(&source, &options, &mut |_| {})
    };
    let counted = |count: u8| (0..count).map(f32::from).collect::<Vec<_>>();
    for (data, shape) in
        [("last.npy", &[2, 3, 4][..]), ("first.npy", &[2, 3, 4]), ("flat.npy", &[24])]
    {
        let reader = open(data, &[2, 3, 4]).unwrap();
        assert_eq!(reader.shape(), shape, "{data}");
        assert_eq!(all(&reader), [(counted(24), None)], "{data}");
    }
    let cube = open("cube.npy", &[2, 2, 2]).unwrap();
    assert_eq!(all(&cube), [(counted(8), None)], "where both fit, what is said counts");
    assert_eq!(open("first.npy", &[]).unwrap().shape(), [4, 2, 3]);
    assert!(told(&open("flat.npy", &[]).err().unwrap()).contains("a row is [24]"));
}
