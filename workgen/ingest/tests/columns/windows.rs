//! Windows of tokens: of text as its bytes, of text through a tokenizer, of a column of whole numbers.

use super::{MARK, all_shards, i64s, job, read, refused, write_part};
use safetensors::Dtype;
use sojourn_ingest::ingest;
use sojourn_protocol::{column::Column, error::error_chain, spec::Split};
use std::{fs, path::Path};

const TOKENIZER: &str = r#"{"version": "1.0", "added_tokens": [], "normalizer": null, "post_processor": null,
    "decoder": null, "truncation": null, "padding": null, "pre_tokenizer": {"type": "Whitespace"},
    "model": {"type": "WordLevel", "vocab": {"?": 0, "to": 1, "be": 2, "or": 3, "not": 300}, "unk_token": "?"}}"#;

/// All rows of windows, in no order.
fn windows(folder: &Path, train: &str, more: &str) -> (Column, Vec<Vec<u8>>) {
    let out = folder.join("out");
    let ingested = ingest(&job(train, more), folder, &out, &mut |_| ()).unwrap();
    let column = ingested.manifest.columns[0].clone();
    let bytes = column.shape[0] as usize * usize::try_from(column.dtype.bytes()).unwrap();
    let mut found: Vec<Vec<u8>> = Vec::new();
    for shard in all_shards(&ingested.manifest) {
        let columns = read(&ingested, &shard);
        found.extend(columns["tokens"].chunks(bytes).map(<[u8]>::to_vec));
    }
    found.sort();
    (column, found)
}

#[test]
fn text_is_cut_into_windows_of_its_bytes_over_all_files() {
    let folder = tempfile::tempdir().unwrap();
    let text: Vec<u8> = (b'a'..=b'z').collect();
    let texts = folder.path().join("texts");
    fs::create_dir(&texts).unwrap();
    fs::write(texts.join("1.txt"), &text[..11]).unwrap();
    fs::write(texts.join("2.txt"), &text[11..]).unwrap();
    let (column, rows) = windows(folder.path(), "texts", "window = { choice = [2, 4] }");
    assert_eq!((column.shape, column.values, column.windows), (vec![5], Some(256), true));
    let expected: Vec<Vec<u8>> =
        ["abcde", "efghi", "ijklm", "mnopq", "qrstu", "uvwxy"].map(|row| row.into()).into();
    assert_eq!(rows, expected);
    let text = refused(folder.path(), "texts/1.txt", "");
    assert!(text.contains("say how many tokens, `data.window = 128`"), "{text}");
}

#[test]
fn text_is_cut_into_the_tokens_of_a_tokenizer_line_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = TOKENIZER;
    fs::write(folder.path().join("tokenizer.json"), tokenizer).unwrap();
    let line = "to be or not\nto be ever\n";
    fs::write(folder.path().join("t.txt"), line.repeat(3)).unwrap();
    let (column, rows) =
        windows(folder.path(), "t.txt", "window = 3\ntokenizer = \"tokenizer.json\"");
    assert_eq!((column.dtype.name(), column.values), ("I16", Some(301)));
    let tokens: Vec<i16> = [1, 2, 3, 300, 1, 2, 0].repeat(3);
    let mut expected: Vec<Vec<u8>> = (0..6)
        .map(|row| {
            tokens[row * 3..row * 3 + 4].iter().flat_map(|token| token.to_le_bytes()).collect()
        })
        .collect();
    expected.sort();
    assert_eq!(rows, expected);
    fs::write(folder.path().join("t.txt"), b"to be\n\xff\xfe\n").unwrap();
    let text = refused(folder.path(), "t.txt", "window = 1\ntokenizer = \"tokenizer.json\"");
    assert_eq!(text, "t.txt:2: the text isn't UTF-8; save the file as UTF-8");
    let long = format!("\"{}\"", "long\\n".repeat(1000));
    let files = [
        (r#""WordLevel""#, r#""Unheard""#),
        (r#""Whitespace""#, &long),
        (r#""1.0""#, &long),
        (r#""padding": null"#, r#""padding": {"strategy": "Unheard"}"#),
        (r#""added_tokens": []"#, &format!(r#""added_tokens": {long}"#)),
    ];
    let files = files.map(|(there, other)| tokenizer.replace(there, other));
    for file in ["{}".to_owned(), "no JSON".to_owned()].into_iter().chain(files) {
        fs::write(folder.path().join("tokenizer.json"), file).unwrap();
        let text = refused(folder.path(), "t.txt", "window = 1\ntokenizer = \"tokenizer.json\"");
        assert!(text.starts_with("tokenizer.json: the tokenizer can't be used"), "{text}");
        assert!(text.len() < 300 && !text.contains('\n'), "{text}");
    }
}

#[test]
fn parts_of_tokens_are_joined_into_windows() {
    let folder = tempfile::tempdir().unwrap();
    let tensors = vec![
        ("ids", Dtype::U8, vec![10], (0..10).collect()),
        ("ids.ends", Dtype::I64, vec![4], i64s([3, 3, 4, 10])),
    ];
    write_part(&folder.path().join("p.safetensors"), &tensors, &MARK);
    let (column, rows) = windows(folder.path(), "p.safetensors", "window = 2");
    assert_eq!(column.shape, [3]);
    assert_eq!(rows, [[0, 1, 2], [2, 3, 4], [4, 5, 6], [6, 7, 8]]);
}

#[test]
fn text_of_too_few_tokens_is_refused_with_how_many_there_are() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.txt"), "x".repeat(26)).unwrap();
    let text = refused(folder.path(), "t.txt", "window = 26");
    assert_eq!(
        text,
        "t.txt: there are 26 tokens, and a window of 26 takes 27; add text, or make `data.window` smaller"
    );
    fs::write(folder.path().join("v.txt"), "").unwrap();
    let mut apart = job("t.txt", "window = 5");
    apart.data.valid = Split::File("v.txt".into());
    let error = ingest(&apart, folder.path(), &folder.path().join("out"), &mut |_| ()).unwrap_err();
    assert_eq!(
        error_chain(&error),
        "v.txt: there are 0 tokens, and a window of 5 takes 6; add text, or make `data.window` smaller"
    );
}

#[test]
fn too_few_windows_for_all_shards_are_counted_as_windows() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.txt"), "x".repeat(26)).unwrap();
    let text = refused(folder.path(), "t.txt", "window = 8");
    assert_eq!(
        text,
        "only 2 of 3 windows of 8 tokens are left to train on, and at least 3 are needed, one for each shard; \
         add text, or make `data.window` smaller"
    );
}

#[test]
fn one_file_of_text_may_have_any_name_that_says_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    let text = "Zum Ge\u{e4}hnten.\n".repeat(60);
    put("t.txt", text.as_bytes());
    let expected = windows(folder.path(), "t.txt", "window = 7");
    for name in ["corpus", "book.md"] {
        put(name, text.as_bytes());
        assert_eq!(windows(folder.path(), name, "window = 7"), expected);
    }
    // What else a name or its content says stands.
    put("t.csv", text.as_bytes());
    put("zeros", &[0; 100]);
    put("latin-1", b"Ge\xe4hnt".repeat(100).as_slice());
    for (name, more) in [("t.csv", "label = \"y\""), ("zeros", ""), ("latin-1", "")] {
        assert_eq!(
            refused(folder.path(), name, &format!("window = 7\n{more}")),
            format!(
                "{name}: `data.window` is for text in UTF-8, in a file whose name ends in `.txt` or in nothing that is known \
                 here, and for columns by name; this is neither"
            )
        );
    }
    let text = refused(folder.path(), "corpus", "window = 7\nlabel = \"y\"");
    assert_eq!(
        text,
        "corpus: `data.label` is for rows of numbers with a label; here columns have names and are taken as they are"
    );
    fs::create_dir(folder.path().join("texts")).unwrap();
    put("texts/book.md", b"text");
    let text = refused(folder.path(), "texts", "window = 7");
    assert!(text.contains("and no `.txt` file, which `data.window` would cut"), "{text}");
}

#[test]
fn a_tokenizer_that_takes_too_long_or_makes_too_much_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let line = "to be or not\nto be ever\n";
    fs::write(folder.path().join("t.txt"), line.repeat(3)).unwrap();
    let put = |there: &str, other: &str| {
        let file = TOKENIZER.replace(there, other);
        assert_ne!(file, TOKENIZER);
        fs::write(folder.path().join("tokenizer.json"), file).unwrap();
    };
    let data = "window = 3\ntokenizer = \"tokenizer.json\"";
    let twice =
        [r#"{"type": "Replace", "pattern": {"String": "o"}, "content": "oo"}"#; 60].join(", ");
    let twice = format!(r#""normalizer": {{"type": "Sequence", "normalizers": [{twice}]}}"#);
    let added = r#""single_word": false, "lstrip": false, "rstrip": false, "normalized": true, "special": false"#;
    let (normalizer, model) = (r#""normalizer": null"#, r#""type": "WordLevel", "vocab""#);
    let piece = r#""type": "WordPiece", "continuing_subword_prefix": "", "max_input_chars_per_word": 1001, "vocab""#;
    let bpe = r#""type": "BPE", "merges": [], "dropout": 0.1, "vocab""#;
    for (there, other, said) in [
        (
            normalizer,
            twice.as_str(),
            "its `normalizer` may make 1152921504606846976 bytes of one; 256 are the most",
        ),
        (model, piece, "its `max_input_chars_per_word` is 1001; 1000 is the most"),
        (model, bpe, "its `dropout` makes other tokens each time; set it to null"),
    ] {
        put(there, other);
        let text = refused(folder.path(), "t.txt", data);
        let expected = format!(
            "tokenizer.json: the tokenizer can't be used: {said}; a `tokenizer.json` is wanted"
        );
        assert_eq!(text, expected);
    }
    // Such a normalizer is run over the tokens that the file adds, too.
    put(
        r#""added_tokens": []"#,
        &format!(r#""added_tokens": [{{"id": 0, "content": "o", {added}}}]"#),
    );
    assert_eq!(windows(folder.path(), "t.txt", data).0.dtype.name(), "I16");

    put(
        normalizer,
        r#""normalizer": {"type": "Prepend", "prepend": "0123456789012345678901234567890"}"#,
    );
    let long = "to be ".repeat((8 << 20) / 6 + 1);
    fs::write(folder.path().join("t.txt"), format!("{line}{long}\n")).unwrap();
    assert_eq!(
        refused(folder.path(), "t.txt", data),
        "t.txt:3: a line of over 8388608 bytes, which no tokenizer gets as one; break it"
    );
}

#[test]
fn what_a_tokenizer_puts_around_a_line_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.txt"), "to be or not\nto be ever\n".repeat(3)).unwrap();
    let data = "window = 3\ntokenizer = \"tokenizer.json\"";
    let made = |tokenizer: &str| {
        fs::write(folder.path().join("tokenizer.json"), tokenizer).unwrap();
        windows(folder.path(), "t.txt", data)
    };
    let around =
        r#""post_processor": {"type": "BertProcessing", "sep": ["be", 2], "cls": ["or", 3]}"#;
    let plain = made(TOKENIZER);
    assert_eq!(made(&TOKENIZER.replace(r#""post_processor": null"#, around)), plain);
}
