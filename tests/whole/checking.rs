//! `sojourn check`, and what `validate` refuses, over columns by name and over text, with a stand-in for Python that has the graphs
//! of `graphs`.

use crate::{
    graphs::FOLDER,
    predicting::{f32s, i64s, put_part, ragged},
    support::{Folder, script, sojourn},
};
use serde_json::{Value, json};
use std::fs;

/// A job of a model over `data`.
fn job(data: &str, model: &str) -> String {
    format!(
        "name = \"t\"\n[data]\n{data}\nshards = 1\n[[model]]\narch = \"graph\"\nentry = \"model.py:{model}\"\nwidth = 8\n\
         [training]\nepochs = 1\nbatch_size = 4\n"
    )
}

/// A folder with the job, a text, and a Python that has the graphs.
fn folder(job: &str) -> Folder {
    let text = "to be or not to be\n".repeat(100);
    let folder = Folder::with(&[("job.toml", job), ("t.txt", &text), ("model.py", "")]);
    script(&folder.path().join("python"), &format!("exec python3 '{FOLDER}/exporter.py'\n"));
    folder
}

/// Exit code, stdout and stderr of `check` with more arguments.
fn check(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String, String) {
    let cache = Folder::with(&[]);
    let output = sojourn(&["check", "--python", "./python", "--config", "width=8"])
        .args(arguments)
        .current_dir(folder.path())
        .env("XDG_CACHE_HOME", cache.path())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Rows of lines with their label and weight.
fn put_lines(folder: &Folder) {
    let long = "a".repeat(50);
    let lines = [long.as_str(), "bbb"].repeat(20);
    let labels: Vec<i64> = (0..40).map(|row| row % 3).collect();
    let more = vec![f32s("weight", &[1.0; 40]), i64s("label", &labels)];
    put_part(folder, "lines.safetensors", [ragged(&lines), more].concat());
}

#[test]
fn columns_by_name_are_described_as_validate_does() {
    let folder = folder(&job("train = \"lines.safetensors\"\nlength = { text = 40 }", "Lines"));
    put_lines(&folder);
    let (code, said, told) = check(&folder, &["model.py:Lines"]);
    assert_eq!(code, Some(0), "{told}");
    let line = "\ndata     label I64 of 3 values, text U8 [40] at most of 99 values, weight F32\n";
    assert!(said.contains(line), "{said}");
    let (_, report, _) = check(&folder, &["model.py:Lines", "--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    let names: Vec<&Value> =
        report["columns"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
    assert_eq!(names, ["label", "text", "weight"]);

    let (code, _, told) = check(&folder, &["model.py:Lines", "--shape", "3,4,4"]);
    assert_eq!(code, Some(2));
    assert_eq!(
        told,
        "error: `--shape` makes rows of numbers up, and the data of `job.toml` has columns by name: leave it out\n"
    );
    // Data that isn't there has no columns, and is no reason not to make rows up.
    fs::remove_file(folder.path().join("lines.safetensors")).unwrap();
    let (_, _, told) = check(&folder, &["model.py:Lines", "--shape", "3,4,4"]);
    assert!(told.contains("the graph takes `label`"), "{told}");
}

#[test]
fn text_is_checked_with_the_window_of_the_job() {
    let folder = folder(&job("train = \"t.txt\"\nwindow = { choice = [16, 32] }", "Lm"));
    let (code, said, told) = check(&folder, &["model.py:Lm"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(said.starts_with("model    model.py:Lm with width=8, window=32, "), "{said}");
    assert!(said.contains("\ndata     tokens U8 [33] of 256 values\n"), "{said}");
    let (_, report, _) = check(&folder, &["model.py:Lm", "--config", "window=16", "--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["values"]["window"], &report["repeatable"]), (&json!(16), &json!(true)));
    assert_eq!(report["columns"][0]["shape"], json!([17]));
    for (window, problem) in [
        ("24", "error: `--config window`: windows of 24 can't be cut of windows of 32\n"),
        ("0", "error: `--config window`: windows of 0 can't be cut of windows of 32\n"),
        ("long", "error: `--config window` is `long`; a number of tokens is wanted\n"),
    ] {
        let window = format!("window={window}");
        let (code, _, told) = check(&folder, &["model.py:Lm", "--config", &window]);
        assert_eq!((code, told.as_str()), (Some(2), problem));
    }
}

#[test]
fn what_columns_can_not_be_trained_with_is_refused_before_models_are_exported() {
    let job = job("train = \"t.txt\"\nwindow = 16", "Lm");
    let folder = folder(&format!("{job}augment = {{ flip = true }}\n"));
    let output = sojourn(&["validate", "job.toml", "--python", "./nowhere"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "error: `training.augment` takes images, and columns by name are taken as they are\n"
    );
}
