//! Searches over users' own models: exported graphs, trained by machines that are killed, replayed, merged, and used. The
//! graphs are checked in beside this file; `model.py` is what they were exported from, and a stand-in for Python gives them out.

use crate::{
    site::{Process, Site},
    support::script,
};
use serde_json::Value;
use std::{fs, path::Path, process::Command};

/// Where the graphs and the stand-in for Python are.
pub(crate) const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/whole/graphs");
const DIGITS: &str = include_str!("../../../examples/digits/digits.csv");

/// A search over the width of a CNN, with further lines of `[model]`, `[search]` and `[placement]`.
fn cnn(model: &str, search: &str, placement: &str) -> String {
    format!(
        r#"name = "own"
seed = 3
[data]
train = "digits.csv"
label = "label"
shape = [1, 8, 8]
scale = "standard"
valid = 0.2
shards = 3
[[model]]
arch = "graph"
entry = "model.py:Cnn"
{model}
[training]
epochs = 4
batch_size = 32
optimizer = {{ name = "adamw", lr = {{ choice = [3e-3, 1e-2] }} }}
clip_norm = 5.0
[search]
{search}
[placement]
{placement}
"#
    )
}

/// A folder with the data, the job and a Python that has the graphs.
fn prepare(site: &Site, job: &str) {
    fs::write(site.path().join("digits.csv"), DIGITS).unwrap();
    fs::write(site.path().join("job.toml"), job).unwrap();
    script(&site.path().join("python"), &format!("exec python3 '{FOLDER}/exporter.py'\n"));
}

fn submit(site: &Site) -> String {
    site.json(&["submit", "job.toml", "--python", "./python"])["job"].to_string()
}

/// Kills clients and the server while a job goes on; waits for its end.
fn kill_through(site: &mut Site, clients: &mut [Process], job: &str) -> Value {
    for (after, victim) in [(3, 0), (8, 1), (14, 0)] {
        site.wait(job, |view| view["hops"].as_u64().unwrap() >= after);
        clients[victim].kill();
        clients[victim] = site.client(&format!("client-{victim}"));
        if after == 8 {
            site.restart();
        }
    }
    let view = site.wait(job, |view| view["state"] != "running");
    assert_eq!(view["state"], "finished", "{view}\n{}", site.log("server"));
    view
}

fn replays_are_identical(site: &Site, job: &str) {
    for trial in site.json(&["trials", job]).as_array().unwrap() {
        let number = trial["trial"].to_string();
        let said = site.run(&["replay", job, "--trial", &number, "--json"]);
        let replay: Value = serde_json::from_slice(&said.stdout).unwrap();
        assert_eq!(replay["verdict"], "identical", "trial {number}: {replay}");
        assert_eq!(replay["sha256"], trial["checkpoint"]["sha256"]);
    }
}

#[test]
fn a_search_over_a_users_cnn_replays_through_kills_and_its_model_is_used() {
    let mut site = Site::start();
    let mut clients: Vec<Process> = (0..2).map(|n| site.client(&format!("client-{n}"))).collect();
    let search = "metric = \"valid/confident\"\ngoal = \"max\"";
    prepare(&site, &cnn("width = { choice = [4, 8] }", search, "order = \"hop\""));
    let job = submit(&site);
    let view = kill_through(&mut site, &mut clients, &job);
    assert_eq!(
        (view["trials"].as_u64(), view["metric"].as_str()),
        (Some(4), Some("valid/confident"))
    );
    replays_are_identical(&site, &job);

    let trials = site.json(&["trials", &job]);
    let best = trials.as_array().unwrap().iter().find(|t| t["trial"] == view["best"]["trial"]);
    let last = best.unwrap()["curve"].as_array().unwrap().last().unwrap().clone();
    let ratio = |name: &str| last["valid"]["named"][name].as_f64().unwrap() / 359.0;
    assert!(ratio("accuracy") > 0.9, "{last}");
    assert!(ratio("confident") > 0.3, "{last}");
    assert!(last["valid"].get("correct").is_none(), "{last}");

    // The same submission again is the same job: its graphs have the same digests.
    let again = site.json(&["submit", "job.toml", "--python", "./python"]);
    assert_eq!(
        (again["submitted"].as_str(), again["blobs_sent"].as_u64()),
        (Some("existing"), Some(0))
    );
    // From the job file alone, in the class in which it was trained.
    let first = &trials[0];
    let alone = site.run(&["replay", "job.toml", "--trial", "0", "--python", "./python", "--json"]);
    let alone: Value = serde_json::from_slice(&alone.stdout).unwrap();
    if alone["numeric_class"] == first["numeric_class"] {
        assert_eq!(alone["sha256"], first["checkpoint"]["sha256"]);
    }

    site.json(&["export", &job, "-o", "own.safetensors"]);
    fs::write(site.path().join("few.csv"), DIGITS.lines().take(41).collect::<Vec<_>>().join("\n"))
        .unwrap();
    let predicted = site.run(&["predict", "own.safetensors", "few.csv"]);
    assert!(predicted.status.success(), "{}", String::from_utf8_lossy(&predicted.stderr));
    assert_eq!(String::from_utf8_lossy(&predicted.stdout).lines().count(), 41);
    let started = cnn("", "", "")
        .replace("arch = \"graph\"\nentry = \"model.py:Cnn\"", "init = \"own.safetensors\"");
    fs::write(site.path().join("job.toml"), started.replace("epochs = 4", "epochs = 1")).unwrap();
    let warm = site.json(&["submit", "job.toml", "--wait"]);
    let loss = warm["outcome"]["best"]["value"].as_f64().unwrap();
    assert!(loss < 0.6, "a warm start is good after one epoch: {warm}");
}

#[test]
fn a_users_merged_model_replays_through_kills() {
    let mut site = Site::start();
    let mut clients: Vec<Process> = (0..2).map(|n| site.client(&format!("client-{n}"))).collect();
    let placement =
        "order = \"merge\"\nmerge = { rule = \"delayed-nesterov\", momentum = 0.5, canary = 10.0 }";
    prepare(&site, &cnn("width = 8", "", placement));
    let job = submit(&site);
    kill_through(&mut site, &mut clients, &job);
    replays_are_identical(&site, &job);
    let events = site.run(&["events", &job, "--json"]);
    let events = String::from_utf8_lossy(&events.stdout).into_owned();
    assert!(events.contains("\"staleness\""), "nothing was merged:\n{events}");
}

/// The job of a model over other data than the digits.
fn over(data: &str, model: &str, more: &str) -> String {
    let job = cnn("width = 8", "", "").replace("Cnn", model);
    let (begin, end) = (job.find("train").unwrap(), job.find("valid").unwrap());
    format!("{}{data}\n{}{more}", &job[..begin], &job[end..])
}

#[test]
fn a_search_over_windows_of_text_is_compared_by_perplexity() {
    let mut site = Site::start();
    let mut clients: Vec<Process> = (0..2).map(|n| site.client(&format!("client-{n}"))).collect();
    let data = "train = \"corpus\"\nwindow = { choice = [16, 32] }";
    let job = over(data, "Lm", "[metrics]\nperplexity = { of = \"loss\", as = \"exp_mean\" }\n")
        .replace("[search]\n", "[search]\nmetric = \"valid/perplexity\"\ngoal = \"min\"\n");
    prepare(&site, &job);
    let pages = Path::new(FOLDER).join("../../../docs");
    fs::create_dir(site.path().join("corpus")).unwrap();
    for page in ["scheduling", "merging"] {
        let copy = site.path().join(format!("corpus/{page}.txt"));
        fs::copy(pages.join(format!("{page}.md")), copy).unwrap();
    }
    let job = submit(&site);
    let view = kill_through(&mut site, &mut clients, &job);
    replays_are_identical(&site, &job);
    assert_eq!(view["trials"], 4, "two windows, each with two learning rates");
    let perplexity = view["best"]["value"].as_f64().unwrap();
    assert!((1.0..100.0).contains(&perplexity), "256 bytes are guessed with {perplexity}");
    let trials = site.json(&["trials", &job]);
    let trials = trials.as_array().unwrap();
    let window = |trial: &Value| trial["choices"]["model[0].window"].as_u64();
    let windows: Vec<Option<u64>> = trials.iter().map(window).collect();
    assert_eq!(windows, [16, 16, 32, 32].map(Some), "{trials:?}");
    // Both see every token once, and a mean over windows is one over tokens.
    let loss = |trial: &Value| trial["curve"][0]["loss_mean"]["valid"].as_f64().unwrap();
    let alike = loss(&trials[0]) / loss(&trials[2]);
    assert!((0.8..1.25).contains(&alike) && loss(&trials[0]).exp() >= perplexity, "{trials:?}");
    let rows = |trial: &Value| trial["curve"][0]["train"]["rows"].as_u64();
    assert_eq!(rows(&trials[0]), rows(&trials[2]));
}

/// Lines of pages as rows of three columns, written by the Python package.
const WRITE_LINES: &str = r#"
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from sojourn import data

PAGES = ["job-file", "merging", "scheduling"]

def rows():
    for page in PAGES:
        for line in (pathlib.Path(sys.argv[2]) / f"{page}.md").read_text(encoding="utf-8").splitlines():
            if line:
                yield {"text": line, "weight": min(len(line), 80) / 80, "label": page}

print(data.write(rows(), "lines", classes={"label": PAGES}, values={"text": 256}, part_bytes=4096))
"#;

#[test]
fn columns_that_python_wrote_are_trained_on_checked_and_predicted() {
    let mut site = Site::start();
    let mut clients: Vec<Process> = (0..2).map(|n| site.client(&format!("client-{n}"))).collect();
    let data = "train = \"lines\"\nlength = { text = 40 }";
    let accuracy = "[search]\nmetric = \"valid/accuracy\"\n";
    let job = over(data, "Lines", "").replace("[search]\n", accuracy);
    prepare(&site, &job.replace("[3e-3, 1e-2]", "[1e-2, 1e-1]"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let written = Command::new(root.join(".cache/python/bin/python"))
        .current_dir(site.path())
        .args(["-c", WRITE_LINES])
        .args([root.join("python"), root.join("docs")])
        .output()
        .unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let validated = site.run(&["validate", "job.toml", "--python", "./python"]);
    let told = String::from_utf8_lossy(&validated.stdout).into_owned();
    let columns = "label I64 of 3 values, text U8 [40] at most of 256 values, weight F32";
    assert!(told.contains(columns), "{told}{}", String::from_utf8_lossy(&validated.stderr));
    let job = submit(&site);
    let view = kill_through(&mut site, &mut clients, &job);
    replays_are_identical(&site, &job);
    let accuracy = view["best"]["value"].as_f64().unwrap();
    assert!(accuracy > 0.6, "a guess of the longest page is right less often: {accuracy}");
    let again = site.json(&["submit", "job.toml", "--python", "./python"]);
    assert_eq!(again["submitted"], "existing", "{again}");

    let check = ["check", "model.py:Lines", "--config", "width=8", "--python", "./python"];
    let report = site.json(&check);
    assert_eq!(report["repeatable"], true, "{report}");
    site.json(&["export", &job, "-o", "lines.safetensors"]);
    let predicted = site.run(&["predict", "lines.safetensors", "lines"]);
    let table = String::from_utf8_lossy(&predicted.stdout).into_owned();
    assert!(predicted.status.success(), "{}", String::from_utf8_lossy(&predicted.stderr));
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("row,output_0,output_1,output_2"));
    assert!(lines.all(|line| line.split(',').count() == 4), "{table}");
    let refused = site.run(&["predict", "lines.safetensors", "job.toml"]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(told.contains("there are no columns by name, which the model takes"), "{told}");
}

#[test]
fn data_and_models_that_do_not_go_together_are_refused() {
    let site = Site::start();
    let refused = |job: &str| {
        fs::write(site.path().join("job.toml"), job).unwrap();
        let output = site.run(&["submit", "job.toml", "--python", "./python"]);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    prepare(&site, "");
    fs::write(site.path().join("corpus.txt"), "to be or not to be\n".repeat(100)).unwrap();
    let text = over("train = \"corpus.txt\"\nwindow = 16", "Lm", "");
    let built_in = text.replace(
        "arch = \"graph\"\nentry = \"model.py:Lm\"\nwidth = 8",
        "arch = \"mlp\"\nhidden = []",
    );
    let told = refused(&built_in);
    assert!(told.contains("only models with `arch = \"graph\"` are trained"), "{told}");
    let told = refused(&text.replace("clip_norm", "loss = \"mse\"\nclip_norm"));
    assert!(told.contains("`training.loss` says what labels are"), "{told}");
    let told = refused(&text.replace("window = 16", "window = { choice = [16, 24] }"));
    assert!(told.contains("has 16, which doesn't divide 24"), "{told}");
    let told = refused(&text.replace("window = 16", ""));
    assert!(told.contains("say how many tokens"), "{told}");
    let told = refused(&text.replace("window = 16", "window = 16\nscale = \"standard\""));
    assert!(told.contains("`data.scale` is for rows of numbers"), "{told}");
    assert_eq!(site.get("jobs").as_array().map(Vec::len), Some(0));
}

#[test]
fn a_model_that_can_not_be_a_graph_or_be_compared_is_refused_before_anything_is_sent() {
    let site = Site::start();
    let refused = |job: &str| {
        prepare(&site, job);
        let output = site.run(&["submit", "job.toml", "--python", "./python"]);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let told = refused(&cnn("width = { choice = [4, 5] }", "", ""));
    assert!(
        told.contains(
            "`model.py:Cnn` with width=5 can't be a graph: model.py:11: The width is odd. Take 4."
        ),
        "{told}"
    );
    let told = refused(&cnn("width = 4", "metric = \"valid/confidence\"\ngoal = \"max\"", ""));
    assert!(told.contains("needs the sum `confidence`"), "{told}");
    assert!(told.contains("`accuracy`, `confident`, `loss`"), "{told}");
    let nowhere = site.run(&["submit", "job.toml", "--python", "./nowhere"]);
    let told = String::from_utf8_lossy(&nowhere.stderr).into_owned();
    assert!(told.contains("`--python` names another Python"), "{told}");
    assert_eq!(site.get("jobs").as_array().map(Vec::len), Some(0));
}

#[test]
fn a_model_is_checked_whole_and_cut() {
    let site = Site::start();
    prepare(&site, &cnn("width = 4", "", ""));
    let check = ["check", "model.py:Cnn", "--config", "width=8", "--python", "./python"];
    let report = site.json(&check);
    assert_eq!((&report["repeatable"], report["parameters"].as_u64()), (&true.into(), Some(1386)));
    assert_eq!((report["batches"].as_u64(), report["batch_size"].as_u64()), (Some(8), Some(32)));
    assert!(report["peak_memory"].as_u64() > Some(1 << 20), "{report}");
    let made_up = ["--shape", "1,8,8", "--classes", "10", "--batch-size", "4"];
    let narrow = ["check", "model.py:Cnn", "--config", "width=4", "--python", "./python"];
    let report = site.json(&[narrow.as_slice(), &made_up].concat());
    assert_eq!((&report["repeatable"], report["classes"].as_u64()), (&true.into(), Some(10)));
    let refused =
        site.run(&["check", "model.py:Cnn", "--config", "width=5", "--python", "./python"]);
    assert_eq!(refused.status.code(), Some(1));
    fs::remove_file(site.path().join("job.toml")).unwrap();
    let told = site.run(&["check", "model.py:Cnn", "--python", "./python"]);
    assert!(String::from_utf8_lossy(&told.stderr).contains("`--shape` makes rows up"));
}
