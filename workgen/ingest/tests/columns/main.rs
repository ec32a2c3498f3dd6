//! Columns by name, from parts and from text: shards, what is found of the columns, and what is refused.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "a test fails by panicking, and its numbers are small"
)]

mod windows;

use safetensors::{Dtype, tensor::TensorView};
use sojourn_codec::decode;
use sojourn_ingest::{ColumnReader, ColumnSource, Ingested, ingest};
use sojourn_protocol::{
    column::Column,
    jobfile,
    manifest::{DataManifest, Labels},
    spec::{JobSpec, Split},
};
use std::{collections::HashMap, fs, path::Path};

/// A job of a user's own model over `train`; `more` are further keys of `[data]`.
fn job(train: &str, more: &str) -> JobSpec {
    let text = format!(
        "name = \"t\"\n[data]\ntrain = \"{train}\"\nvalid = 0.25\nshards = 3\n{more}\n\
         [[model]]\narch = \"graph\"\nentry = \"m.py:M\"\n[training]\nepochs = 1\n"
    );
    jobfile::parse(&text).unwrap()
}

/// A tensor of a part: its name, type, shape and bytes.
type Tensor = (&'static str, Dtype, Vec<usize>, Vec<u8>);

/// Writes a part with these tensors.
fn write_part(path: &Path, tensors: &[Tensor], metadata: &[(&str, &str)]) {
    let views = tensors.iter().map(|(name, dtype, shape, data)| {
        (*name, TensorView::new(*dtype, shape.clone(), data).unwrap())
    });
    let metadata: HashMap<String, String> =
        metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    fs::write(path, safetensors::serialize(views, Some(metadata)).unwrap()).unwrap();
}

fn i64s(numbers: impl IntoIterator<Item = i64>) -> Vec<u8> {
    numbers.into_iter().flat_map(i64::to_le_bytes).collect()
}

fn f32s(numbers: impl IntoIterator<Item = f32>) -> Vec<u8> {
    numbers.into_iter().flat_map(f32::to_le_bytes).collect()
}

/// A tokenizer of five words, of which the last is number 300.
const TOKENIZER: &str = r#"{"version": "1.0", "added_tokens": [], "normalizer": null, "post_processor": null,
    "decoder": null, "truncation": null, "padding": null, "pre_tokenizer": {"type": "Whitespace"},
    "model": {"type": "WordLevel", "vocab": {"?": 0, "to": 1, "be": 2, "or": 3, "not": 300}, "unk_token": "?"}}"#;

const MARK: [(&str, &str); 1] = [("sojourn.columns", "1")];

/// Rows `first..end` with an image of their number, as many tokens as three times it modulo 5, and a label.
fn rows(first: usize, end: usize) -> Vec<Tensor> {
    let rows = end - first;
    let lengths = (first..end).map(|row| row * 3 % 5);
    let tokens: Vec<i64> =
        (first..end).flat_map(|row| (0..row * 3 % 5).map(move |at| (row + at) as i64)).collect();
    let ends: Vec<i64> = lengths
        .scan(0, |end, length| {
            *end += length as i64;
            Some(*end)
        })
        .collect();
    let image = (first..end).flat_map(|row| [row as u8; 4]).collect();
    let label = i64s((first..end).map(|row| (row % 3) as i64));
    vec![
        ("image", Dtype::U8, vec![rows, 1, 2, 2], image),
        ("label", Dtype::I64, vec![rows], label),
        ("tokens", Dtype::I64, vec![tokens.len()], i64s(tokens)),
        ("tokens.ends", Dtype::I64, vec![rows], i64s(ends)),
    ]
}

/// A column of a shard: its bytes, and where each row ends in elements.
fn read(
    ingested: &Ingested,
    shard: &sojourn_protocol::manifest::Shard,
) -> HashMap<String, Vec<u8>> {
    let file = fs::read(&ingested.files[&shard.blob.sha256]).unwrap();
    decode(&file).unwrap().iter().map(|view| (view.name.clone(), view.data.to_vec())).collect()
}

fn all_shards(manifest: &DataManifest) -> Vec<sojourn_protocol::manifest::Shard> {
    manifest.train.iter().chain(&manifest.valid).copied().collect()
}

#[test]
fn every_row_of_all_parts_is_in_one_shard_with_all_that_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let parts = folder.path().join("parts");
    fs::create_dir(&parts).unwrap();
    write_part(&parts.join("part-0.safetensors"), &rows(0, 13), &MARK);
    let more = [MARK[0], ("values", r#"{"label": 7}"#)];
    write_part(&parts.join("part-1.safetensors"), &rows(13, 40), &more);
    let spec = job("parts", "");
    let ingested = ingest(&spec, folder.path(), &folder.path().join("out"), &mut |_| ()).unwrap();
    let manifest = &ingested.manifest;
    assert_eq!((manifest.labels.clone(), manifest.train.len()), (Labels::None, 3));
    let said = manifest
        .columns
        .iter()
        .map(|column| (column.name.as_str(), column.shape.clone(), column.longest, column.values));
    let expected = [
        ("image", vec![1, 2, 2], None, Some(40)),
        ("label", vec![], None, Some(7)),
        ("tokens", vec![], Some(4), Some(42)),
    ];
    assert_eq!(said.collect::<Vec<_>>(), expected);
    let mut seen = Vec::new();
    for shard in all_shards(manifest) {
        let columns = read(&ingested, &shard);
        let ends: Vec<u64> = columns["tokens.ends"]
            .chunks(8)
            .map(|end| u64::from_le_bytes(end.try_into().unwrap()))
            .collect();
        assert_eq!(ends.len(), shard.rows as usize);
        let mut begin = 0;
        for (at, end) in ends.into_iter().enumerate() {
            let row = usize::from(columns["image"][at * 4]);
            let tokens = i64s((0..row * 3 % 5).map(|token| (row + token) as i64));
            assert_eq!(columns["tokens"][begin as usize * 8..end as usize * 8], tokens);
            assert_eq!(columns["label"][at * 8..at * 8 + 8], i64s([(row % 3) as i64]));
            begin = end;
            seen.push(row);
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..40).collect::<Vec<_>>());
}

#[test]
fn equal_rows_give_equal_shards_however_they_lie_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let made = |cuts: &[usize]| {
        let parts = folder.path().join("parts");
        fs::create_dir(&parts).unwrap();
        for (at, ends) in cuts.windows(2).enumerate() {
            let path = parts.join(format!("part-{at}.safetensors"));
            write_part(&path, &rows(ends[0], ends[1]), &MARK);
        }
        let out = folder.path().join(format!("out-{}", cuts.len()));
        let manifest =
            ingest(&job("parts", ""), folder.path(), &out, &mut |_| ()).unwrap().manifest;
        fs::remove_dir_all(parts).unwrap();
        manifest
    };
    let whole = made(&[0, 30]);
    assert_eq!(made(&[0, 7, 30]), whole);
    assert_eq!(made(&[0, 1, 2, 29, 30]), whole);
}

#[test]
fn longer_rows_are_cut_where_the_job_says_how_long_they_may_be() {
    let folder = tempfile::tempdir().unwrap();
    write_part(&folder.path().join("p.safetensors"), &rows(0, 20), &MARK);
    let spec = job("p.safetensors", "length = { tokens = 2 }");
    let ingested = ingest(&spec, folder.path(), &folder.path().join("out"), &mut |_| ()).unwrap();
    assert_eq!(ingested.manifest.columns[2].longest, Some(2));
    for shard in all_shards(&ingested.manifest) {
        let columns = read(&ingested, &shard);
        let mut begin = 0;
        for end in columns["tokens.ends"].chunks(8) {
            let end = u64::from_le_bytes(end.try_into().unwrap());
            assert!(end - begin <= 2);
            begin = end;
        }
    }
}

/// Why data can't be made into shards.
fn refused(folder: &Path, train: &str, more: &str) -> String {
    let spec = job(train, more);
    let error = ingest(&spec, folder, &folder.join("out"), &mut |_| ()).unwrap_err();
    sojourn_protocol::error::error_chain(&error)
}

#[test]
fn parts_that_are_not_sound_are_refused_with_their_column() {
    let folder = tempfile::tempdir().unwrap();
    let with = |change: &dyn Fn(&mut Vec<Tensor>)| {
        let mut tensors = rows(0, 20);
        change(&mut tensors);
        write_part(&folder.path().join("p.safetensors"), &tensors, &MARK);
        refused(folder.path(), "p.safetensors", "")
    };
    let text = with(&|tensors| tensors[3].3[..8].copy_from_slice(&99i64.to_le_bytes()));
    assert!(text.starts_with("p.safetensors: column `tokens`: the ends of its rows"), "{text}");
    let text = with(&|tensors| tensors[3].3[..8].copy_from_slice(&(-1i64).to_le_bytes()));
    assert!(text.starts_with("p.safetensors: column `tokens`: the ends of its rows"), "{text}");
    let text = with(&|tensors| {
        let last = tensors[3].3.len() - 8;
        let end = i64::from_le_bytes(tensors[3].3[last..].try_into().unwrap()) - 1;
        tensors[3].3[last..].copy_from_slice(&end.to_le_bytes());
    });
    assert!(text.starts_with("p.safetensors: column `tokens`: the ends of its rows"), "{text}");
    let text = with(&|tensors| {
        tensors[1] = ("label", Dtype::F32, vec![20], f32s((0..20).map(|row| 1.0 / row as f32)));
    });
    assert_eq!(
        text,
        "p.safetensors: column `label`: a number is infinite or NaN, or a truth value is neither 0 nor 1"
    );
    let text = with(&|tensors| tensors[1] = ("label", Dtype::I64, vec![19], i64s(0..19)));
    assert_eq!(
        text,
        "p.safetensors: column `label`: this has 19 rows, the columns before it have others"
    );
    let text = with(&|tensors| tensors[0].0 = "my image");
    assert!(text.starts_with("p.safetensors: column `my image`: the name can't be"), "{text}");
    let text = with(&|tensors| tensors[1].1 = Dtype::U64);
    assert!(text.starts_with("p.safetensors: column `label`: "), "{text}");
    let text = with(&|tensors| tensors.push(("tokens_length", Dtype::I64, vec![20], i64s(0..20))));
    assert_eq!(text, "p.safetensors: column `tokens_length` is there twice");
    write_part(&folder.path().join("p.safetensors"), &rows(0, 20), &[("sojourn.columns", "2")]);
    let text = refused(folder.path(), "p.safetensors", "");
    assert!(text.contains("parts of another version"), "{text}");
}

#[test]
fn a_part_of_too_many_columns_or_classes_is_known_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.safetensors");
    let many = |columns: usize| -> Vec<Tensor> {
        let name = |at: usize| -> &'static str { format!("column_{at}").leak() };
        (0..columns).map(|at| (name(at), Dtype::U8, vec![20], vec![0; 20])).collect()
    };
    write_part(&path, &many(100), &MARK);
    let text = refused(folder.path(), "p.safetensors", "");
    assert_eq!(text, "p.safetensors: there are more than 64 columns");
    let large = "p.safetensors: the header has over 1048576 bytes; a part has at most 64 columns, and room for the names of \
                 some ten thousand classes";
    write_part(&path, &many(20_000), &MARK);
    assert_eq!(refused(folder.path(), "p.safetensors", ""), large);
    let words: Vec<String> = (0..50_000).map(|at| format!("\"word {at} of many\"")).collect();
    let classes = format!(r#"{{"label": [{}]}}"#, words.join(", "));
    let said = [MARK[0], ("values", r#"{"label": 50000}"#), ("classes", classes.as_str())];
    write_part(&path, &rows(0, 20), &said);
    assert_eq!(refused(folder.path(), "p.safetensors", ""), large);
}

#[test]
fn keys_that_say_nothing_about_columns_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_part(&folder.path().join("p.safetensors"), &rows(0, 20), &MARK);
    let with = |more: &str| refused(folder.path(), "p.safetensors", more);
    for (more, key) in [
        ("scale = \"standard\"", "scale"),
        ("shape = [2, 2]", "shape"),
        ("features = \"image\"", "features"),
    ] {
        let text = with(more);
        assert!(text.contains(&format!("`data.{key}` is for rows of numbers")), "{text}");
    }
    let text = with("length = { image = 3 }");
    assert!(text.contains("`data.length` names `image`"), "{text}");
    let text = with("window = 4");
    assert!(text.contains("takes data with one column alone"), "{text}");
    fs::write(folder.path().join("t.csv"), "a,y\n1,2\n").unwrap();
    let text = refused(folder.path(), "t.csv", "label = \"y\"\nwindow = 4");
    assert!(text.contains("`data.window` is for text"), "{text}");
}

/// Data to be read in a folder.
fn source<'a>(folder: &'a Path, data: &'a str) -> ColumnSource<'a> {
    ColumnSource { data, tokenizer: None, base_dir: folder, spool: folder }
}

#[test]
fn a_reader_gives_the_wanted_columns_in_the_order_of_rows() {
    let folder = tempfile::tempdir().unwrap();
    write_part(&folder.path().join("p.safetensors"), &rows(0, 5), &MARK);
    let wanted = |shape: &[u32]| {
        let plain = Column {
            name: "image".into(),
            dtype: sojourn_codec::Dtype::U8,
            shape: shape.to_vec(),
            longest: None,
            values: None,
            classes: Vec::new(),
            windows: false,
        };
        let tokens = Column {
            name: "tokens".into(),
            dtype: sojourn_codec::Dtype::I64,
            longest: Some(2),
            shape: Vec::new(),
            ..plain.clone()
        };
        [plain, tokens, Column { name: "other".into(), ..column("other") }]
    };
    let open = |shape: &[u32]| {
        ColumnReader::open(source(folder.path(), "p.safetensors"), &wanted(shape), &mut |_| ())
    };
    let reader = open(&[1, 2, 2]).unwrap();
    assert_eq!(reader.columns().len(), 2);
    let mut pass = reader.rows().unwrap();
    let (file, count) = pass.next_shard(3).unwrap().unwrap();
    assert_eq!(count, 3);
    let views = decode(&file).unwrap();
    let names: Vec<&str> = views.iter().map(|view| view.name.as_str()).collect();
    assert_eq!(names, ["image", "tokens", "tokens.ends"]);
    assert_eq!(views[0].data, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    // Rows of 0, 3 and 1 tokens, of which 2 are kept at most.
    assert_eq!(views[2].i64s().unwrap().collect::<Vec<_>>(), [0, 2, 3]);
    let cut = pass.cut_rows().map(|(column, rows)| (column.name.clone(), rows));
    assert_eq!(cut.collect::<Vec<_>>(), [("tokens".to_owned(), 1)]);
    assert_eq!(pass.next_shard(3).unwrap().unwrap().1, 2);
    assert!(pass.next_shard(3).unwrap().is_none());
    assert_eq!(pass.cut_rows().map(|(_, rows)| rows).collect::<Vec<_>>(), [2]);
    let text = open(&[4]).err().unwrap().to_string();
    assert!(text.contains("column `image`: it has another type or shape"), "{text}");
}

#[test]
fn a_reader_takes_rows_of_equal_length_as_sequences() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path(), "p.safetensors");
    let tensors = [("pairs", Dtype::I64, vec![2, 3, 2], i64s(0..12))];
    write_part(&folder.path().join("p.safetensors"), &tensors, &MARK);
    let pairs = |shape: &[u32], longest| Column {
        dtype: sojourn_codec::Dtype::I64,
        shape: shape.to_vec(),
        longest,
        ..column("pairs")
    };
    for (longest, kept) in [(4, 3), (3, 3), (2, 2)] {
        let wanted = [pairs(&[2], Some(longest))];
        let reader = ColumnReader::open(source, &wanted, &mut |_| ()).unwrap();
        let (file, count) = reader.rows().unwrap().next_shard(9).unwrap().unwrap();
        let views = decode(&file).unwrap();
        assert_eq!((count, views[0].shape.clone()), (2, vec![2 * kept, 2]));
        let of_rows = i64s((0..2 * kept as i64).chain(6..6 + 2 * kept as i64));
        assert_eq!(views[0].data, of_rows);
        let ends: Vec<i64> = views[1].i64s().unwrap().collect();
        assert_eq!(ends, [kept as i64, 2 * kept as i64]);
    }
    for other in [pairs(&[3], Some(4)), pairs(&[], Some(4)), pairs(&[3, 2], Some(4))] {
        assert!(ColumnReader::open(source, &[other], &mut |_| ()).is_err());
    }
    assert!(ColumnReader::open(source, &[pairs(&[3, 2], None)], &mut |_| ()).is_ok());
}

#[test]
fn a_reader_takes_sequences_of_equal_length_as_rows() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path(), "p.safetensors");
    let put = |ends: [i64; 3]| {
        let tensors = [
            ("tokens", Dtype::I64, vec![6], i64s(0..6)),
            ("tokens.ends", Dtype::I64, vec![3], i64s(ends)),
        ];
        write_part(&folder.path().join("p.safetensors"), &tensors, &MARK);
    };
    let wanted = [Column { dtype: sojourn_codec::Dtype::I64, shape: vec![2], ..column("tokens") }];
    let read = || {
        let reader = ColumnReader::open(source, &wanted, &mut |_| ()).unwrap();
        reader.rows().unwrap().next_shard(9)
    };
    put([2, 4, 6]);
    let (file, count) = read().unwrap().unwrap();
    let views = decode(&file).unwrap();
    assert_eq!((count, views.len(), views[0].shape.clone()), (3, 1, vec![3, 2]));
    put([2, 5, 6]);
    assert_eq!(
        read().unwrap_err().to_string(),
        "p.safetensors: column `tokens`: it has another type or shape: the model takes I64 of shape [2], and row 2 has 3 numbers"
    );
}

#[test]
fn a_reader_cuts_text_where_windows_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    put("t.txt", "abcdefghij");
    put("tokenizer.json", TOKENIZER);
    let tokens = |dtype, values| {
        [Column { dtype, shape: vec![4], values, windows: true, ..column("tokens") }]
    };
    let bytes = tokens(sojourn_codec::Dtype::U8, Some(256));
    let text = source(folder.path(), "t.txt");
    let reader = ColumnReader::open(text, &bytes, &mut |_| ()).unwrap();
    assert_eq!(reader.columns(), bytes);
    let (file, count) = reader.rows().unwrap().next_shard(9).unwrap().unwrap();
    let views = decode(&file).unwrap();
    assert_eq!(
        (count, views[0].shape.as_slice(), views[0].data),
        (3, &[3, 4][..], &b"abcddefgghij"[..])
    );

    // Text may have any name.
    put("corpus", "abcdefg");
    let named = ColumnSource { data: "corpus", ..text };
    let reader = ColumnReader::open(named, &bytes, &mut |_| ()).unwrap();
    assert_eq!(reader.rows().unwrap().next_shard(9).unwrap().unwrap().1, 2);

    put("t.txt", "abc");
    let reader = ColumnReader::open(text, &bytes, &mut |_| ()).unwrap();
    let error = reader.rows().unwrap().next_shard(9).unwrap_err().to_string();
    assert_eq!(
        error,
        "t.txt: there are 3 tokens, and a window of 3 takes 4; add text, or make `data.window` smaller"
    );

    put("t.txt", "to be or not");
    let with = ColumnSource { tokenizer: Some("tokenizer.json"), ..text };
    let words = tokens(sojourn_codec::Dtype::I16, Some(301));
    let reader = ColumnReader::open(with, &words, &mut |_| ()).unwrap();
    let (file, _) = reader.rows().unwrap().next_shard(9).unwrap().unwrap();
    let expected: Vec<u8> = [1i16, 2, 3, 300].into_iter().flat_map(i16::to_le_bytes).collect();
    assert_eq!(decode(&file).unwrap()[0].data, expected);
    let refused = |source, wanted: &[Column]| {
        ColumnReader::open(source, wanted, &mut |_| ()).err().unwrap().to_string()
    };
    assert_eq!(
        refused(text, &words),
        "t.txt: text without a tokenizer is bytes, U8 with 256 values, and the model takes tokens of I16 with 301 values"
    );
    assert_eq!(
        refused(with, &bytes),
        "tokenizer.json: the tokenizer makes tokens of I16 with 301 values, those of the model are U8 with 256 values"
    );
    let longer = tokens(sojourn_codec::Dtype::I32, None);
    assert!(refused(with, &longer).ends_with("those of the model are I32 with numbers below 0"));
    write_part(&folder.path().join("p.safetensors"), &rows(0, 3), &MARK);
    let parts = ColumnSource { data: "p.safetensors", ..with };
    let told = "p.safetensors: a tokenizer is for text, files that end in `.txt`";
    assert_eq!(refused(parts, &words), told);
    assert!(refused(text, &[column("x")]).contains("there are no columns by name"));
}

fn column(name: &str) -> Column {
    Column {
        name: name.into(),
        dtype: sojourn_codec::Dtype::F32,
        shape: Vec::new(),
        longest: None,
        values: None,
        classes: Vec::new(),
        windows: false,
    }
}

#[test]
fn names_of_classes_are_kept_and_must_be_the_same_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, said: &[(&str, &str)]| {
        let said = [&MARK, said].concat();
        write_part(&folder.path().join(name), &rows(0, 20), &said);
    };
    let (values, classes) = (r#"{"label":3}"#, r#"{"label":["a","b","c"]}"#);
    put("p.safetensors", &[("values", values), ("classes", classes)]);
    let spec = job("p.safetensors", "");
    let ingested = ingest(&spec, folder.path(), &folder.path().join("out"), &mut |_| ()).unwrap();
    assert_eq!(ingested.manifest.columns[1].classes, ["a", "b", "c"]);

    put("v.safetensors", &[("values", values), ("classes", r#"{"label":["a","c","b"]}"#)]);
    let mut apart = spec;
    apart.data.valid = Split::File("v.safetensors".into());
    let error = ingest(&apart, folder.path(), &folder.path().join("out"), &mut |_| ()).unwrap_err();
    assert_eq!(
        sojourn_protocol::error::error_chain(&error),
        "v.safetensors: other columns than in `p.safetensors`: the classes of `label` are a, c, b here and a, b, c there"
    );
    let absurd = "x\\ny".repeat(1000);
    let vast = format!(r#"{{"{}": 3}}"#, "label".repeat(2000));
    let absurd = format!(r#"{{"label":["a","b","{absurd}"]}}"#);
    for (said, expected) in [
        (&[("classes", classes)][..], "has 3 of them and 0 values"),
        (&[("values", r#"{"label":2}"#), ("classes", classes)], "has 3 of them and 2 values"),
        (&[("values", values), ("classes", absurd.as_str())], "no line of at most 256 characters"),
        (&[("values", r#"{"lable":3}"#)], "there is no column `lable`"),
        (&[("values", r#"{"label":0}"#)], "1 to 4294967295 are possible"),
        (&[("values", r#"{"label":-1}"#)], "invalid value"),
        (&[("values", vast.as_str())], "there is no column `label"),
    ] {
        put("p.safetensors", said);
        let text = refused(folder.path(), "p.safetensors", "");
        assert!(text.contains(expected) && text.len() < 1000, "{text}");
    }
}
