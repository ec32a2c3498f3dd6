//! Labels that training takes otherwise than they are: numbers that are scaled, classes with weights.

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
        .replace("scale = \"standard\"\n", "")
        .replace("\"train.csv\"", "\"valid.csv\"")
        .replace("epochs = 3", "epochs = 1\noptimizer = { name = \"sgd\", lr = 1e-12 }");
    fs::write(site.path().join("again.toml"), again).unwrap();
    let again = site.json(&["submit", "again.toml"])["job"].to_string();
    site.wait(&again, |view| view["state"] == "finished");
    let given = &site.get(&format!("jobs/{again}"))["spec"]["data"]["scale_label"];
    assert_eq!(given["given"], stored["data"]["targets"]["standard"], "{given}");
    near(&site.json(&["evaluate", &again, "--wait"])["state"]["done"]["metrics"]["rmse"]);
}

/// One row in ten is of the class `rare`, and no feature says which.
const RARE: &str = r#"name = "rare"
seed = 3
[data]
train = "train.csv"
label = "y"
valid = "valid.csv"
shards = 2
[[model]]
arch = "mlp"
hidden = []
[training]
epochs = 3
optimizer = { name = "adam", lr = 0.05 }
"#;

#[test]
fn classes_with_weights_or_drawn_equally_often_are_trained_so_and_replayed() {
    let site = Site::start();
    let _client = site.client("client-1");
    let rows = |range: std::ops::Range<u32>| {
        let class = |row: u32| if row % 10 == 3 { "rare" } else { "common" };
        let row = |row| format!("{},{}\n", row / 10 % 2, class(row));
        format!("x,y\n{}", range.map(row).collect::<String>())
    };
    for (name, text) in [("train.csv", rows(0..1000)), ("valid.csv", rows(0..100))] {
        fs::write(site.path().join(name), text).unwrap();
    }
    let run = |training: &str| {
        fs::write(site.path().join("job.toml"), format!("{RARE}{training}\n")).unwrap();
        let job = site.json(&["submit", "job.toml"])["job"].to_string();
        site.wait(&job, |view| view["state"] == "finished");
        let replay = site.json(&["replay", &job, "--trial", "0"]);
        assert_eq!(replay["verdict"], "identical", "{replay}");
        // The best by accuracy would be the one that has moved least.
        site.json(&["export", &job, "--trial", "0", "--last", "-o", "m.safetensors"]);
        site.json(&["predict", "m.safetensors", "valid.csv", "-o", "p.csv"]);
        let table = fs::read_to_string(site.path().join("p.csv")).unwrap();
        let rare = |line: &str| line.rsplit(',').next().unwrap().parse::<f64>().unwrap();
        let ratios: Vec<f64> = table.lines().skip(1).map(rare).collect();
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        (site.get(&format!("jobs/{job}"))["data"]["targets"].clone(), mean)
    };
    // The probability of the rare class is its share of what is trained on.
    let (targets, ratio) = run("");
    assert!(targets.is_null() && ratio < 0.2, "{targets} {ratio}");
    let (targets, ratio) = run("class_weights = \"balanced\"");
    assert_eq!(targets, serde_json::json!({ "weighted": [1000.0 / 1800.0, 5.0] }));
    assert!((ratio - 0.5).abs() < 0.15, "{ratio}");
    let (targets, ratio) = run("class_weights = { rare = 81 }");
    assert_eq!(targets, serde_json::json!({ "weighted": [1.0, 81.0] }));
    assert!(ratio > 0.8, "{ratio}");
    let (_, ratio) = run("sampling = \"balanced\"");
    assert!((ratio - 0.5).abs() < 0.15, "{ratio}");

    fs::write(site.path().join("job.toml"), format!("{RARE}class_weights = {{ rar = 2 }}\n"))
        .unwrap();
    let refused = site.run(&["validate", "job.toml"]);
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(
        told.contains("`training.class_weights` has `rar`, which is no class of the data; its classes are `common`, `rare`"),
        "{told}"
    );
}
