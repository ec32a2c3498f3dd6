//! `window`, `tokenizer` and `length`: text, and columns by name, for users' own models.

use super::*;
use crate::spec::{Setting, WINDOW};

/// A job over text, with further lines of `[data]` and of `[[model]]`.
fn text(data: &str, model: &str) -> String {
    format!(
        "name = \"t\"\n[data]\ntrain = \"corpus.txt\"\n{data}\n\
         [[model]]\narch = \"graph\"\nentry = \"m.py:M\"\n{model}\n[training]\nepochs = 1\n"
    )
}

fn problem(data: &str, model: &str) -> String {
    parse(&text(data, model)).unwrap_err().problems().map(ToString::to_string).collect()
}

#[test]
fn windows_become_a_key_of_each_model_and_the_longest_is_kept_with_the_data() {
    let job = parse(&text("window = { choice = [64, 128, 32] }", "width = 4")).unwrap();
    assert_eq!((job.data.window, job.data.label), (Some(128), None));
    let [ModelSpace::Graph(space)] = job.models.as_slice() else { panic!("{:?}", job.models) };
    let windows = [64, 128, 32].map(Setting::Whole);
    assert_eq!(space.values[WINDOW], Dimension::Choice(windows.to_vec()));
    let job = parse(&text("window = 16\ntokenizer = \"t.json\"", "")).unwrap();
    assert_eq!((job.data.window, job.data.tokenizer.as_deref()), (Some(16), Some("t.json")));
    let [ModelSpace::Graph(space)] = job.models.as_slice() else { panic!("{:?}", job.models) };
    assert_eq!(space.values[WINDOW], Dimension::Fixed(Setting::Whole(16)));
}

#[test]
fn lengths_are_numbers_by_columns() {
    let job = parse(&text("window = 1\nlength = { text = 40, ids = 7 }", "")).unwrap();
    let lengths: Vec<(&str, u32)> =
        job.data.length.iter().map(|(name, length)| (name.as_str(), *length)).collect();
    assert_eq!(lengths, [("ids", 7), ("text", 40)]);
    assert!(problem("length = 40", "").contains("`{ tokens = 256 }` is wanted"));
    assert!(problem("length = { text = 0 }", "").contains("`data.length.text` is 0"));
}

#[test]
fn windows_that_can_not_be_cut_are_refused() {
    for (windows, expected) in [
        ("0", "`data.window` is 0"),
        ("\"long\"", "`data.window` is a string"),
        ("{ choice = [64, 100] }", "has 64, which doesn't divide 100"),
        ("{ int = [1, 8] }", "`{ choice = [64, 128] }` is wanted"),
        ("{ choice = [] }", "`data.window`"),
    ] {
        let told = problem(&format!("window = {windows}"), "");
        assert!(told.contains(expected), "{windows}: {told}");
    }
    let told = problem("window = 8", "window = 8");
    assert!(told.contains("is a key of a `[[model]]` too"), "{told}");
    let built_in =
        text("window = 8", "").replace("\"graph\"\nentry = \"m.py:M\"", "\"mlp\"\nhidden = []");
    let told: String = parse(&built_in).unwrap_err().problems().map(ToString::to_string).collect();
    assert!(told.contains("only models with `arch = \"graph\"` are trained"), "{told}");
    let told = problem("window = 8\nlabel = \"y\"", "");
    assert!(told.contains("text has none"), "{told}");
}

#[test]
fn whether_parquet_is_images_is_not_known_where_columns_may_have_names() {
    let job = |more: &str| {
        let job = text(more, "").replace("corpus.txt", "t.parquet");
        job.replace("epochs = 1", "epochs = 1\naugment = { flip = true }")
    };
    assert!(parse(&job("")).is_ok(), "what the file has is seen as it is read");
    let told = errors_of(&job("label = \"y\""));
    assert!(told.contains("`training.augment` takes images: `data.shape"), "{told}");
}
