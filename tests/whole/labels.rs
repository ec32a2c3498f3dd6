//! Labels that training takes otherwise than they are: numbers that are scaled.

use crate::{
    models::{assert_same, example, python},
    site::Site,
};
use std::fs;

/// A job file that says nothing of labels' sizes.
const REGRESSION: &str = r#"name = "numbers"
seed = 3
[data]
train = "train.csv"
label = "y"
scale = "standard"
valid = "valid.csv"
test = "valid.csv"
shards = 2
[[model]]
arch = "mlp"
hidden = [8]
[training]
epochs = 3
loss = "mse"
[search]
metric = "valid/rmse"
"#;

/// Rows of two features, with labels of mean 152 and a deviation of about 77.
fn rows(range: std::ops::Range<i32>) -> String {
    let row = |row: i32| {
        let (a, b) = (row * 37 % 101 - 50, row * 53 % 89 - 44);
        format!("{a},{b},{}\n", 152 + 2 * a + b)
    };
    format!("a,b,y\n{}", range.map(row).collect::<String>())
}

#[test]
fn numbers_are_learned_at_the_default_rate_and_reported_in_their_own_units() {
    let site = Site::start();
    let _client = site.client("client-1");
    for (name, text) in [
        ("train.csv", rows(0..900)),
        ("valid.csv", rows(900..1000)),
        ("job.toml", REGRESSION.to_owned()),
        ("predict.py", example()),
    ] {
        fs::write(site.path().join(name), text).unwrap();
    }
    let job = site.json(&["submit", "job.toml"])["job"].to_string();
    site.wait(&job, |view| view["state"] == "finished");
    let stored = site.get(&format!("jobs/{job}"));
    assert_eq!(stored["spec"]["data"]["scale_label"], "standard", "{stored}");
    let exported = site.json(&["export", &job, "-o", "m.safetensors"]);
    let reached = exported["value"].as_f64().unwrap();
    // Unscaled, three epochs at this rate bring the outputs from 0 to 1 or 2, and the error is about 170.
    assert!(reached > 1.0 && reached < 70.0, "{exported}");

    let said = site.json(&["predict", "m.safetensors", "valid.csv", "-o", "p.csv"]);
    let near = |value: &serde_json::Value| {
        let value = value.as_f64().unwrap();
        assert!((value / reached - 1.0).abs() < 1e-5, "{value} {reached}");
    };
    near(&said["rmse"]);
    let tested = site.json(&["evaluate", &job, "--wait"]);
    near(&tested["state"]["done"]["metrics"]["rmse"]);
    let ours = fs::read_to_string(site.path().join("p.csv")).unwrap();
    assert_same(&ours, &python(&site, &["predict.py", "m.safetensors", "valid.csv"]));
    let replay = site.json(&["replay", &job, "--trial", "0"]);
    assert_eq!(replay["verdict"], "identical", "{replay}");

    // A job that starts from the model goes on in the model's units, whatever its own labels are.
    let again = REGRESSION
        .replace("arch = \"mlp\"\nhidden = [8]", "init = \"m.safetensors\"")
        .replace("\"train.csv\"", "\"valid.csv\"")
        .replace("epochs = 3", "epochs = 1\noptimizer = { name = \"sgd\", lr = 1e-12 }");
    fs::write(site.path().join("again.toml"), again).unwrap();
    let again = site.json(&["submit", "again.toml"])["job"].to_string();
    site.wait(&again, |view| view["state"] == "finished");
    let given = &site.get(&format!("jobs/{again}"))["spec"]["data"]["scale_label"];
    assert_eq!(given["given"], stored["data"]["targets"]["standard"], "{given}");
    near(&site.json(&["evaluate", &again, "--wait"])["state"]["done"]["metrics"]["rmse"]);
}
