//! The exporter's answers, from stand-ins for Python.

use super::*;
use std::os::unix::fs::PermissionsExt as _;

/// A folder with a program that takes its request and then does what `script` says.
struct Stand {
    folder: tempfile::TempDir,
    python: PathBuf,
}

impl Stand {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let python = folder.path().join("stand-in");
        fs::write(&python, format!("#!/bin/sh\ncat > \"$(dirname \"$0\")/request\"\n{script}\n"))
            .unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder, python }
    }

    fn export(&self, configs: &[Values]) -> Result<Vec<Result<Made, Refusal>>, ExportError> {
        let classes = Labels::Classes(["a", "b"].map(str::to_owned).to_vec());
        let wanted = Export {
            folder: self.folder.path(),
            entry: "model.py:Net",
            data: &DataDescription::new(&[], &[1, 8, 8], &classes, 50),
            initial: InitialWeights::Given,
            configs,
            workspace: self.folder.path(),
            python: Some(&self.python),
        };
        export(&wanted, &mut |_| ())
    }

    fn request(&self) -> serde_json::Value {
        serde_json::from_slice(&fs::read(self.folder.path().join("request")).unwrap()).unwrap()
    }
}

fn graph_file(name: &str) -> PathBuf {
    let graphs = Path::new(env!("CARGO_MANIFEST_DIR")).join("client/trainer/tests/graphs");
    graphs.join(format!("{name}.safetensors"))
}

#[test]
fn a_stored_row_costs_as_much_as_the_windows_that_are_cut_of_it() {
    let tokens = Column {
        name: "tokens".into(),
        dtype: Dtype::U8,
        shape: vec![129],
        longest: None,
        values: Some(256),
        classes: Vec::new(),
        windows: true,
    };
    let data = DataDescription::new(&[tokens], &[], &Labels::None, 50);
    for (window, windows) in [(128, 1), (64, 2), (1, 128), (0, 1), (-4, 1), (200, 1)] {
        let values = [(WINDOW.to_owned(), Setting::Whole(window))].into();
        assert_eq!(data.windows(&values), windows, "{window}");
    }
    let json = serde_json::to_value(&data).unwrap();
    let expected = serde_json::json!({
        "columns": {"tokens": {"dtype": "U8", "shape": [129], "values": 256, "window": true}},
        "classes": null, "rows": 50,
    });
    assert_eq!(json, expected);
}

fn width(width: i64) -> Values {
    [("width".to_owned(), Setting::Whole(width))].into()
}

#[test]
fn configurations_become_graphs_or_refusals() {
    let file = graph_file("mlp");
    let stand = Stand::new(&format!(
        r#"echo '{{"starting": "importing torch"}}'
echo '{{"exported": {{"index": 0, "file": "{}", "flops_per_row": 6, "widest": 3}}}}'
echo '{{"refused": {{"index": 1, "message": "It branches.", "file": "model.py", "line": 7, "hint": "Do not.", "detail": null}}}}'
echo '{{"done": true}}'"#,
        file.display()
    ));
    let answers = stand.export(&[width(1), width(2)]).unwrap();
    let [Ok(made), Err(refusal)] = answers.as_slice() else { panic!("{answers:?}") };
    let bytes = fs::read(&file).unwrap();
    assert_eq!(made.graph.file.sha256, Digest::of(&bytes));
    assert_eq!((made.graph.flops_per_row, made.graph.widest), (6, 3));
    assert!(made.graph.sums.contains(&"loss".to_owned()), "{:?}", made.graph.sums);
    assert!(!made.graph.tensors.is_empty());
    assert_eq!(refusal.to_string(), "model.py:7: It branches. Do not.");
    let request = stand.request();
    assert_eq!(request["configs"], serde_json::json!([{"width": 1}, {"width": 2}]));
    assert_eq!(request["initial"], "given");
    assert_eq!(request["data"]["classes"], 2);
    assert_eq!(request["data"]["x"], serde_json::json!({"dtype": "F32", "shape": [1, 8, 8]}));
    assert!(request["operators"].as_array().unwrap().len() > 100);
}

#[test]
fn what_python_says_when_it_fails_is_shown() {
    let told = |script: &str| Stand::new(script).export(&[width(1)]).unwrap_err().to_string();
    let missing = told("echo 'PyTorch is missing; pip install torch==2.11.0' >&2; exit 2");
    assert!(missing.contains("PyTorch is missing; pip install"), "{missing}");
    assert!(told("exit 3").contains("ended with exit status: 3"));
    // It has said nothing of the configuration.
    assert!(told("echo '{\"done\": true}'").contains("exit status: 0"));
    assert!(told("echo nonsense; exec sleep 60").contains("can't be understood"));
    let long = told("yes 0123456789 | head -c 100000 >&2; exit 1");
    assert!(long.len() < 5000, "{} bytes", long.len());
}

#[test]
fn a_file_that_is_no_graph_is_refused() {
    let stand = Stand::new("");
    let file = stand.folder.path().join("file");
    fs::write(&file, "garbage").unwrap();
    let line = format!(
        r#"echo '{{"exported": {{"index": 0, "file": "{}", "flops_per_row": 6, "widest": 3}}}}'"#,
        file.display()
    );
    let error = Stand::new(&line).export(&[width(1)]).unwrap_err();
    assert!(matches!(error, ExportError::Graph(_)), "{error}");
    let none = Stand::new("");
    fs::remove_file(&none.python).unwrap();
    let error = none.export(&[width(1)]).unwrap_err().to_string();
    assert!(error.contains("`--python` names another"), "{error}");
}
