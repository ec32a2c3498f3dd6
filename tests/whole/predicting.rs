//! Predictions over columns by name: of models that give back what they get, so that the table shows what went in. And those over
//! images, whose files are named.

use crate::support::{Folder, sojourn};
use serde_json::{Value, json};
use sojourn_codec::{Tensor, encode, encode_described};
use sojourn_graph::Graph as GraphFile;
use sojourn_model::{Lineage, initial_checkpoint, portable};
use sojourn_protocol::{
    column::Column,
    digest::{BlobRef, Digest},
    dtype::Dtype,
    ids::{JobId, TrialId},
    manifest::{Labels, Scaling},
    spec::{Architecture, Channels, Dialect, Graph, Loss, Missing, Precision, Setting},
};
use std::{collections::BTreeMap, fs};

/// A column of plain numbers.
fn column(name: &str, dtype: Dtype) -> Column {
    Column {
        name: name.into(),
        dtype,
        shape: Vec::new(),
        longest: None,
        values: None,
        classes: Vec::new(),
        windows: false,
    }
}

/// A tensor of one part.
fn tensor(name: &str, dtype: Dtype, shape: &[u64], data: Vec<u8>) -> Tensor {
    Tensor { name: name.into(), dtype, shape: shape.to_vec(), data }
}

/// A column of whole numbers.
pub(crate) fn i64s(name: &str, numbers: &[i64]) -> Tensor {
    Tensor::i64(name, [numbers.len() as u64], numbers)
}

/// A column of numbers.
pub(crate) fn f32s(name: &str, numbers: &[f32]) -> Tensor {
    Tensor::f32(name, [numbers.len() as u64], numbers)
}

/// Writes a part, as `sojourn.data.write` does.
pub(crate) fn put_part(folder: &Folder, name: &str, mut tensors: Vec<Tensor>) {
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    let part = encode_described(&tensors, &[("sojourn.columns", "1".to_owned())].into()).unwrap();
    fs::write(folder.path().join(name), part).unwrap();
}

/// A node that makes a column, `[rows]` or `[rows, n]`, single-precision numbers `[rows, n]`; it and the one before it.
fn as_numbers(column: &str, is_flat: bool, nodes: &mut Vec<Value>) -> usize {
    let mut node = json!({"c": column});
    if is_flat {
        nodes.push(json!({"op": "aten.unsqueeze.default", "args": [node, 1]}));
        node = json!({"n": nodes.len() - 1});
    }
    nodes.push(json!({"op": "aten.to.dtype", "args": [node, {"dtype": "F32"}]}));
    nodes.len() - 1
}

/// A graph that gives back the columns that `predict` names, side by side, and is trained on all of them.
fn graph(columns: &Value, predict: &[&str]) -> Vec<u8> {
    let mut nodes = Vec::new();
    let mut parts = Vec::new();
    for name in predict {
        let is_flat = columns[name][1].as_array().unwrap().is_empty();
        parts.push(json!({"n": as_numbers(name, is_flat, &mut nodes)}));
    }
    nodes.push(json!({"op": "aten.cat.default", "args": [parts, 1]}));
    nodes.push(json!({"op": "aten.add.Tensor", "args": [{"n": nodes.len() - 1}, {"t": "bias"}]}));
    let outputs = json!({"n": nodes.len() - 1});
    let loss = || json!({"op": "aten.sum.default", "args": [{"t": "bias"}]});
    let text = json!({
        "graph": 1,
        "torch": "2.11.0",
        "columns": columns,
        "tensors": [{"name": "bias", "dtype": "F32", "shape": [1], "role": "parameter", "start": "zeros"}],
        "train": [{"nodes": [loss()], "loss": {"n": 0}}],
        "evaluate": {"nodes": [loss()], "sums": {"loss": {"n": 0}}},
        "predict": {"nodes": nodes, "outputs": outputs},
    });
    let text = text.to_string().into_bytes();
    encode(&[tensor("graph", Dtype::U8, &[text.len() as u64], text.clone())]).unwrap()
}

/// An exported model over `columns`, whose outputs are those that `predict` names.
fn model(columns: Vec<Column>, predict: &[&str], window: Option<u32>) -> Vec<u8> {
    let mut read = serde_json::Map::new();
    for column in &columns {
        read.insert(column.name.clone(), json!([column.dtype.name(), column.batch_shape(window)]));
        if let Some(length) = column.length_name() {
            read.insert(length, json!(["I64", []]));
        }
    }
    let file = graph(&Value::Object(read), predict);
    let blob = BlobRef { sha256: Digest::of(&file), bytes: file.len() as u64 };
    let values = window.map(|window| ("window".to_owned(), Setting::Whole(window.into())));
    let description = portable::Description {
        architecture: Architecture::Graph(Graph {
            entry: "model.py:Echo".into(),
            values: values.into_iter().collect::<BTreeMap<_, _>>(),
            exported: Some(GraphFile::read(&file).unwrap().summary(blob, 1, 8)),
        }),
        columns,
        ..nothing()
    };
    written(&description, Some(&file))
}

/// The description of a model over no columns.
fn nothing() -> portable::Description {
    portable::Description {
        format: portable::FORMAT,
        architecture: Architecture::mlp([]),
        columns: Vec::new(),
        shape: Vec::new(),
        outputs: 1,
        labels: Labels::None,
        label: None,
        array: None,
        channels: Channels::First,
        features: Vec::new(),
        categories: Vec::new(),
        missing: Missing::Refuse,
        dialect: Dialect::default(),
        fill: Vec::new(),
        scaling: portable::FileScaling::None,
        label_scaling: None,
        loss: Loss::Own,
        precision: Precision::F32,
        origin: portable::Origin {
            job: JobId(1),
            name: "echo".into(),
            trial: TrialId(0),
            epoch: None,
            steps: 0,
            metric: "valid/loss".into(),
            value: None,
            checkpoint: Digest::of(b""),
        },
    }
}

/// The file of a model that hasn't been trained.
fn written(description: &portable::Description, graph: Option<&[u8]>) -> Vec<u8> {
    let context = description.context(Scaling::None);
    let checkpoint = initial_checkpoint(&context, 1, Lineage::initial(1)).unwrap();
    let parts = portable::Parts { checkpoint: &checkpoint, graph, ..Default::default() };
    portable::write_model(description, parts).unwrap()
}

/// A folder with the model `m`.
fn folder(model: Vec<u8>) -> Folder {
    let folder = Folder::with(&[]);
    fs::write(folder.path().join("m"), model).unwrap();
    folder
}

/// Exit code, stdout and stderr of `predict m` with more arguments.
fn predict(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String, String) {
    let cache = Folder::with(&[]);
    let output = sojourn(&["predict", "m"])
        .args(arguments)
        .current_dir(folder.path())
        .env("XDG_CACHE_HOME", cache.path())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Texts of at most four bytes, how long they are, a number, and a label that predictions don't need.
fn texts() -> Vec<u8> {
    let text = Column { longest: Some(4), values: Some(256), ..column("text", Dtype::U8) };
    let columns = vec![column("label", Dtype::I64), column("number", Dtype::F32), text];
    model(columns, &["text", "text_length", "number"], None)
}

/// `text` as a ragged column.
pub(crate) fn ragged(texts: &[&str]) -> Vec<Tensor> {
    let mut end = 0;
    let ends: Vec<i64> = texts
        .iter()
        .map(|text| {
            end += i64::try_from(text.len()).unwrap();
            end
        })
        .collect();
    let bytes = texts.concat().into_bytes();
    vec![tensor("text", Dtype::U8, &[bytes.len() as u64], bytes), i64s("text.ends", &ends)]
}

const HEADER: &str = "row,output_0,output_1,output_2,output_3,output_4,output_5\n";

#[test]
fn only_the_columns_that_predictions_read_are_wanted() {
    let folder = folder(texts());
    let expected = format!("{HEADER}1,97.0,98.0,0.0,0.0,2.0,0.5\n");
    let number = || f32s("number", &[0.5]);
    let words = tensor("label", Dtype::U8, &[1, 3], b"ham".to_vec());
    for (name, more) in [
        ("bare", vec![]),
        ("labelled", vec![i64s("label", &[1])]),
        ("otherwise", vec![words, f32s("more", &[1.0])]),
    ] {
        let name = format!("{name}.safetensors");
        put_part(&folder, &name, [ragged(&["ab"]), vec![number()], more].concat());
        assert_eq!(predict(&folder, &[&name]), (Some(0), expected.clone(), String::new()));
    }
    put_part(&folder, "lacking.safetensors", ragged(&["ab"]));
    let (code, table, told) = predict(&folder, &["lacking.safetensors"]);
    assert_eq!((code, table.as_str()), (Some(2), ""));
    assert_eq!(
        told,
        "error: `lacking.safetensors` has no column `number`, which the model's predictions need\n"
    );
    put_part(&folder, "wrong.safetensors", [ragged(&["ab"]), vec![i64s("number", &[1])]].concat());
    let (code, _, told) = predict(&folder, &["wrong.safetensors"]);
    assert_eq!(code, Some(2));
    assert!(told.contains("column `number`: it has another type or shape"), "{told}");
}

#[test]
fn rows_that_are_equally_long_are_sequences_too() {
    let folder = folder(texts());
    let number = || f32s("number", &[0.5, 1.5]);
    let plain = |length: u64, bytes: &[u8]| {
        vec![tensor("text", Dtype::U8, &[2, length], bytes.to_vec()), number()]
    };
    put_part(&folder, "p.safetensors", plain(2, b"abcd"));
    let expected = format!("{HEADER}1,97.0,98.0,0.0,0.0,2.0,0.5\n2,99.0,100.0,0.0,0.0,2.0,1.5\n");
    assert_eq!(predict(&folder, &["p.safetensors"]), (Some(0), expected, String::new()));
    put_part(&folder, "p.safetensors", plain(5, b"abcdefghij"));
    let (_, table, told) = predict(&folder, &["p.safetensors"]);
    assert!(table.ends_with("2,102.0,103.0,104.0,105.0,4.0,1.5\n"), "{table}");
    assert!(told.contains("2 rows of `text` cut to 4 elements"), "{told}");
    let pairs = vec![tensor("text", Dtype::U8, &[2, 2, 2], b"abcdefgh".to_vec()), number()];
    put_part(&folder, "p.safetensors", pairs);
    let (code, _, told) = predict(&folder, &["p.safetensors"]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("column `text`: it has another type or shape"), "{told}");
}

#[test]
fn rows_that_are_cut_are_counted() {
    let folder = folder(texts());
    let number = f32s("number", &[1.0; 3]);
    let part = [ragged(&["abcde", "ab", "abcdefg"]), vec![number]].concat();
    put_part(&folder, "p.safetensors", part);
    let (code, table, told) = predict(&folder, &["p.safetensors", "--batch", "1"]);
    assert_eq!((code, table.lines().nth(1)), (Some(0), Some("1,97.0,98.0,99.0,100.0,4.0,1.0")));
    let expected = "2 rows of `text` cut to 4 elements, the most that the model was trained on\n";
    assert_eq!(told, expected);
    let (_, said, told) = predict(&folder, &["p.safetensors", "-o", "p.csv", "--json"]);
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&said["rows"], &said["cut_rows"]), (&json!(3), &json!({"text": 2})));
    assert_eq!(told, "");
    assert_eq!(fs::read_to_string(folder.path().join("p.csv")).unwrap(), table);
}

/// A model of text with this column of tokens, trained on windows of 8 of them, and 4 its own.
fn language_model(dtype: Dtype, values: u64) -> Vec<u8> {
    let tokens =
        Column { shape: vec![9], values: Some(values), windows: true, ..column("tokens", dtype) };
    model(vec![tokens], &["tokens"], Some(4))
}

#[test]
fn text_is_cut_into_the_windows_of_the_model() {
    let folder = folder(language_model(Dtype::U8, 256));
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let line = |row: u32, text: &str| {
        let tokens: Vec<String> = text.bytes().map(|byte| format!("{byte}.0")).collect();
        format!("{row},{}\n", tokens.join(","))
    };
    let header = "row,output_0,output_1,output_2,output_3,output_4\n";
    let expected = format!("{header}{}{}", line(1, "abcde"), line(2, "efghi"));
    put("t.txt", "abcdefghijk");
    assert_eq!(predict(&folder, &["t.txt"]), (Some(0), expected.clone(), String::new()));
    assert_eq!(predict(&folder, &["t.txt", "--batch", "1"]).1, expected);
    fs::create_dir(folder.path().join("texts")).unwrap();
    put("texts/1.txt", "abc");
    put("texts/2.txt", "defghijk");
    assert_eq!(predict(&folder, &["texts"]), (Some(0), expected.clone(), String::new()));

    // Parts with rows of a window and one token more, also beside a text about them.
    fs::create_dir(folder.path().join("parts")).unwrap();
    put("parts/readme.txt", "Tokens of a corpus.");
    let windows = tensor("tokens", Dtype::U8, &[2, 5], b"abcdeefghi".to_vec());
    put_part(&folder, "parts/p.safetensors", vec![windows]);
    assert_eq!(predict(&folder, &["parts"]), (Some(0), expected, String::new()));

    put("short.txt", "abcd");
    put("tokenizer.json", TOKENIZER);
    for (arguments, problem) in [
        (&["short.txt"][..], "short.txt: there are 4 tokens, and a window of 4 takes 5"),
        (
            &["t.txt", "--tokenizer", "tokenizer.json"],
            "the tokenizer makes tokens of I16 with 301 values, those of the model are U8 with 256",
        ),
        (&["parts", "--tokenizer", "tokenizer.json"], "a tokenizer is for text"),
        (&["t.txt", "--tokenizer", "none.json"], "there is no file or folder `none.json`"),
    ] {
        let (code, table, told) = predict(&folder, arguments);
        assert_eq!((code, table.as_str()), (Some(2), ""), "{told}");
        assert!(told.contains(problem), "{told}");
    }
}

const TOKENIZER: &str = r#"{"version": "1.0", "added_tokens": [], "normalizer": null, "post_processor": null,
    "decoder": null, "truncation": null, "padding": null, "pre_tokenizer": {"type": "Whitespace"},
    "model": {"type": "WordLevel", "vocab": {"?": 0, "to": 1, "be": 2, "or": 3, "not": 300}, "unk_token": "?"}}"#;

#[test]
fn tokens_of_text_are_those_of_the_models_tokenizer() {
    let folder = folder(language_model(Dtype::I16, 301));
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    put("t.txt", "to be or not\nto be\n");
    put("tokenizer.json", TOKENIZER);
    let (code, table, told) = predict(&folder, &["t.txt", "--tokenizer", "tokenizer.json"]);
    assert_eq!((code, told.as_str()), (Some(0), ""));
    assert_eq!(table.lines().nth(1), Some("1,1.0,2.0,3.0,300.0,1.0"));
    assert_eq!(table.lines().count(), 2, "six tokens are one window of four");
    let (code, _, told) = predict(&folder, &["t.txt"]);
    assert_eq!(code, Some(2));
    assert_eq!(
        told,
        "error: t.txt: text without a tokenizer is bytes, U8 with 256 values, and the model takes tokens of I16 with 301 values; \
         `--tokenizer` names the file of the tokenizer that it was trained with\n"
    );
    put("tokenizer.json", &TOKENIZER.replace("300", "299"));
    let (code, _, told) = predict(&folder, &["t.txt", "--tokenizer", "tokenizer.json"]);
    assert_eq!(code, Some(2));
    let problem =
        "the tokenizer makes tokens of I16 with 300 values, those of the model are I16 with 301";
    assert!(told.contains(problem), "{told}");

    fs::write(folder.path().join("m"), texts()).unwrap();
    let (code, _, told) = predict(&folder, &["t.txt", "--tokenizer", "tokenizer.json"]);
    assert_eq!(code, Some(2));
    assert!(told.contains("`--tokenizer` is for models of text"), "{told}");
}

#[test]
fn predictions_are_named_by_the_classes_of_the_data() {
    let label = |name: &str, classes: &[&str]| Column {
        values: Some(classes.len() as u64),
        classes: classes.iter().map(|class| (*class).to_owned()).collect(),
        ..column(name, Dtype::I64)
    };
    let numbers = || vec![column("a", Dtype::F32), column("b", Dtype::F32)];
    let with = |labels: Vec<Column>| model([numbers(), labels].concat(), &["a", "b"], None);
    let folder = folder(with(vec![label("label", &["ham", "spam, or so"])]));
    let part = vec![f32s("a", &[1.0, 2.0, 3.0]), f32s("b", &[2.0, 1.0, 3.0])];
    put_part(&folder, "p.safetensors", part);
    let (code, table, told) = predict(&folder, &["p.safetensors"]);
    assert_eq!((code, told.as_str()), (Some(0), ""));
    assert_eq!(
        table,
        "row,prediction,output_ham,\"output_spam, or so\"\n1,\"spam, or so\",1.0,2.0\n2,ham,2.0,1.0\n3,ham,3.0,3.0\n"
    );
    let three = label("label", &["x", "y", "z"]);
    let both = vec![label("label", &["x", "y"]), label("other", &["x", "y"])];
    for labels in [vec![], vec![three], both] {
        fs::write(folder.path().join("m"), with(labels)).unwrap();
        let (_, table, _) = predict(&folder, &["p.safetensors"]);
        assert!(table.starts_with("row,output_0,output_1\n1,1.0,2.0\n"), "{table}");
    }
}

/// Two rows of two black pixels.
const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x02\x08\0\0\0\0W\xddR\xf8\
    \0\0\0\x0bIDATx\x9cc`\0\x01\0\0\x06\0\x01\xfe\x8cg\xc8\0\0\0\0IEND\xaeB`\x82";

#[test]
fn predictions_of_images_name_their_files() {
    let description = portable::Description {
        shape: vec![1, 2, 2],
        outputs: 2,
        labels: Labels::Classes(vec!["cat".into(), "dog".into()]),
        loss: Loss::CrossEntropy,
        ..nothing()
    };
    let folder = folder(written(&description, None));
    for name in ["images/dog/1.png", "images/cat/b.png", "images/cat/a.PNG", "flat/c, d.png"] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, IMAGE).unwrap();
    }
    let (code, table, told) = predict(&folder, &["images/"]);
    assert_eq!(code, Some(0), "{told}");
    let begin = |line: &str| line.split(',').take(2).collect::<Vec<_>>().join(",");
    let begins: Vec<String> = table.lines().map(begin).collect();
    assert_eq!(
        begins,
        ["row,file", "1,images/cat/a.PNG", "2,images/cat/b.png", "3,images/dog/1.png"]
    );
    assert!(table.starts_with("row,file,prediction,p_cat,p_dog\n"), "{table}");
    assert!(told.contains("over 3 labelled rows"), "{told}");
    let (_, table, _) = predict(&folder, &["flat"]);
    assert!(table.contains("\n1,\"flat/c, d.png\","), "{table}");
    let (_, table, _) = predict(&folder, &["flat/c, d.png"]);
    assert!(table.starts_with("row,prediction,p_cat,p_dog\n1,"), "{table}");
}
