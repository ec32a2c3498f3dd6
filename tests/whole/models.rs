//! Uses of an exported model: initial weights of another job, and predictions.

use crate::{
    site::Site,
    support::{Folder, sojourn},
};
use serde_json::Value;
use std::{fs, process::Command};

/// A job whose two tables start from exported models, of trials that hardly move.
const FROM_FILES: &str = r#"name = "again"
seed = 99
[data]
train = "digits.csv"
label = "label"
shape = [1, 8, 8]
valid = 0.2
shards = 3
[[model]]
init = "models/mlp.safetensors"
[[model]]
init = "models/cnn.safetensors"
arch = "cnn"
[training]
epochs = 1
batch_size = 32
optimizer = { name = "adam", lr = 1e-12 }
"#;

#[test]
fn a_job_starts_from_exported_models_and_is_replayed() {
    let site = Site::start();
    let _client = site.client("client-1");
    let first = site.submit(99, 2);
    site.wait(&first, |view| view["state"] == "finished");
    let trials = site.json(&["trials", &first]);
    fs::create_dir(site.path().join("models")).unwrap();
    // Of the four trials, the first mlp and the first cnn.
    let values = [("mlp", "0"), ("cnn", "2")].map(|(name, trial)| {
        let file = format!("models/{name}.safetensors");
        let exported = site.json(&["export", &first, "--trial", trial, "--last", "-o", &file]);
        let trial = &trials[trial.parse::<usize>().unwrap()];
        assert_eq!(trial["arch"], name);
        assert_eq!(exported["checkpoint"], trial["checkpoint"]["sha256"]);
        trial["curve"][1]["valid"]["correct"].clone()
    });

    fs::write(site.path().join("again.toml"), FROM_FILES).unwrap();
    let good = site.json(&["validate", "again.toml"]);
    assert_eq!((&good["valid"], &good["trials"]), (&true.into(), &2.into()), "{good}");
    let answer = site.json(&["submit", "again.toml"]);
    let again = answer["job"].to_string();
    assert_eq!(answer["blobs_sent"], 2, "data and scaling were there: {answer}");
    site.wait(&again, |view| view["state"] == "finished");
    let trials = site.json(&["trials", &again]);
    for (trial, value) in trials.as_array().unwrap().iter().zip(values) {
        assert_eq!(trial["curve"][0]["valid"]["correct"], value, "{trial}");
        let number = trial["trial"].to_string();
        let replay = site.json(&["replay", &again, "--trial", &number]);
        assert_eq!(replay["verdict"], "identical", "{replay}");
    }
    let same = site.json(&["submit", "again.toml"]);
    assert_eq!((same["job"].to_string(), &same["submitted"]), (again, &"existing".into()));
}

/// A job file for `t.csv` whose model starts from `m`, and what `validate` says of it.
fn refusal(folder: &Folder, more: &str) -> String {
    let job = format!(
        "name = \"n\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n{more}[[model]]\ninit = \"m\"\n[training]\nepochs = 1\n"
    );
    fs::write(folder.path().join("job.toml"), job).unwrap();
    let output =
        sojourn(&["validate", "job.toml", "--json"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    said["problems"][0]["message"].as_str().unwrap().to_owned()
}

#[test]
fn unfit_initial_weights_are_refused_with_the_reason() {
    let folder = Folder::with(&[("t.csv", "a,b,y\n1,2,0\n3,4,1\n5,6,0\n7,8,1\n9,1,0\n2,3,1\n")]);
    let path = folder.path().join("m");
    assert_eq!(refusal(&folder, ""), "`model[0].init` is `m`, which doesn't exist");
    fs::create_dir(&path).unwrap();
    let told = refusal(&folder, "");
    assert_eq!(told, "`model[0].init` is `m`, which is a folder; a model file is wanted");
    fs::remove_dir(&path).unwrap();
    fs::write(&path, "").unwrap();
    let told = refusal(&folder, "");
    assert!(told.contains("which is no model: not a whole safetensors file"), "{told}");

    let whole = sample(&["a", "b"], &["0", "1"]);
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let (actual, expected) = (whole.len() - 1, whole.len());
    assert_eq!(
        refusal(&folder, ""),
        format!(
            "`model[0].init` is `m`, which is no whole model: it has {actual} bytes, its header says {expected}"
        )
    );
    for (features, classes, problem) in [
        (
            &["a", "b", "c"][..],
            &["0", "1"][..],
            "takes rows of shape [3], those of the data have [2]",
        ),
        (
            &["b", "a"],
            &["0", "1"],
            "was trained on the data's features in another order of columns",
        ),
        (&["a", "b"], &["0", "1", "2"], "tells 3 classes apart, the data has 2"),
    ] {
        fs::write(&path, sample(features, classes)).unwrap();
        assert_eq!(refusal(&folder, ""), format!("`model[0].init` (`m`) {problem}"));
    }
    fs::write(&path, &whole).unwrap();
    let scaled = sojourn(&["validate", "job.toml"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(scaled.status.code(), Some(0), "{scaled:?}");
}

/// All that a `cnn` can have.
const EVERYTHING: &str = r#"[[model]]
arch = "cnn"
channels = [4, 6]
pool = "average"
pool_every = 2
hidden = [16]
batch_norm = true
dropout = 0.1
"#;

/// The models of one job, and the validation file whose accuracy they reached.
#[test]
fn a_model_predicts_as_it_was_evaluated_and_as_the_numpy_example_does() {
    let site = Site::start();
    let _client = site.client("client-1");
    let digits = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/digits/digits.csv");
    let digits = fs::read_to_string(digits).unwrap();
    let (header, rows) = digits.split_once('\n').unwrap();
    let (train, valid): (Vec<_>, Vec<_>) =
        rows.lines().enumerate().partition(|(row, _)| row % 5 > 0);
    for (name, rows) in [("train.csv", train), ("valid.csv", valid)] {
        let rows: Vec<&str> = rows.into_iter().map(|(_, row)| row).collect();
        fs::write(site.path().join(name), format!("{header}\n{}\n", rows.join("\n"))).unwrap();
    }
    let job = FROM_FILES
        .replace("digits.csv", "train.csv")
        .replace("valid = 0.2", "valid = \"valid.csv\"\nscale = \"standard\"")
        .replace("init = \"models/mlp.safetensors\"", "arch = \"mlp\"\nhidden = [32]")
        .replace("init = \"models/cnn.safetensors\"", "channels = [4, 6]")
        .replace("[training]", &format!("{EVERYTHING}\n[training]"))
        .replace("1e-12", "3e-3");
    fs::write(site.path().join("job.toml"), job).unwrap();
    let job = site.json(&["submit", "job.toml"])["job"].to_string();
    site.wait(&job, |view| view["state"] == "finished");
    fs::write(site.path().join("predict.py"), example()).unwrap();
    for trial in ["0", "1", "2"] {
        let exported = site.json(&["export", &job, "--trial", trial, "-o", "m.safetensors"]);
        let arguments = ["predict", "m.safetensors", "valid.csv", "-o", "p.csv"];
        let said = site.json(&arguments);
        assert_eq!((&said["rows"], &said["unknown"]), (&360.into(), &0.into()), "{said}");
        assert_eq!(said["accuracy"], exported["value"], "as it was evaluated");
        assert_eq!(said.get("trained_rows"), None, "no row of it was trained on");

        let theirs = python(&site, &["predict.py", "m.safetensors", "valid.csv"]);
        let ours = fs::read_to_string(site.path().join("p.csv")).unwrap();
        assert_eq!(ours.lines().count(), 361);
        assert_same(&ours, &theirs);
        // The same columns, as a spreadsheet writes them.
        let table = fs::read_to_string(site.path().join("valid.csv")).unwrap();
        let table = format!("\u{feff}{}", table.replace(',', ";").replace('\n', "\r\n"));
        fs::write(site.path().join("sheet.csv"), table).unwrap();
        let output = site.run(&["predict", "m.safetensors", "sheet.csv"]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("sheet.csv: columns are separated by `;`"), "{told}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), ours);
        assert_same(&ours, &python(&site, &["predict.py", "m.safetensors", "sheet.csv"]));
    }
}

/// A table with a name for each row, with gaps, separated by semicolons.
const WITH_GAPS: &str = r#"name = "gaps"
[data]
train = "gaps.csv"
label = "y"
separator = ";"
columns = { drop = ["id"] }
missing = "zero"
scale = "standard"
shards = 2
[[model]]
arch = "mlp"
hidden = [4]
[training]
epochs = 1
optimizer = { name = "adam", lr = 1e-2 }
"#;

#[test]
fn a_model_of_chosen_columns_and_gaps_predicts_as_it_was_trained() {
    let site = Site::start();
    let _client = site.client("client-1");
    let gap = |row: u32, value: u32| if row % 7 == 3 { String::new() } else { value.to_string() };
    let rows: String = (0..80)
        .map(|row| {
            format!(
                "row {row};{};{};\"{}\"\n",
                gap(row, row),
                90 - row,
                ["low, small", "high"][(row / 40) as usize]
            )
        })
        .collect();
    for (name, text) in [
        ("gaps.csv", format!("id;a;b;y\n{rows}")),
        ("job.toml", WITH_GAPS.to_owned()),
        ("predict.py", example()),
    ] {
        fs::write(site.path().join(name), text).unwrap();
    }
    let job = site.json(&["submit", "job.toml"])["job"].to_string();
    site.wait(&job, |view| view["state"] == "finished");
    site.json(&["export", &job, "-o", "m.safetensors"]);
    let output = site.run(&["predict", "m.safetensors", "gaps.csv"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("1 column ignored: `id`"), "{told}");
    // A fifth of the rows was kept apart for validation.
    assert!(told.contains("64 of 80 rows are rows that the model was trained on"), "{told}");
    let said = site.json(&["predict", "m.safetensors", "gaps.csv", "-o", "p.csv"]);
    assert_eq!(said["trained_rows"], serde_json::json!({ "share": 0.8, "rows": 64 }));
    site.json(&["export", &job, "-o", "silent.safetensors", "--no-row-digests"]);
    let said = site.json(&["predict", "silent.safetensors", "gaps.csv", "-o", "p.csv"]);
    assert_eq!(said.get("trained_rows"), None);
    let ours = String::from_utf8(output.stdout).unwrap();
    assert_eq!(ours.lines().count(), 81);
    // A gap is a 0, and the order of columns is the file's own.
    let turned: String = (0..80)
        .map(|row| format!("{},{}\n", 90 - row, if row % 7 == 3 { 0 } else { row }))
        .collect();
    fs::write(site.path().join("turned.csv"), format!("b,a\n{turned}")).unwrap();
    let turned = site.run(&["predict", "m.safetensors", "turned.csv"]);
    assert_eq!(String::from_utf8_lossy(&turned.stdout), ours);
    let theirs = python(&site, &["predict.py", "m.safetensors", "gaps.csv"]);
    assert_same(&ours, &theirs);
}

/// A table with words and gaps.
const WITH_WORDS: &str = r#"name = "words"
[data]
train = "shirts.csv"
label = "sold"
categories = { color = "one-hot", size = { ordinal = ["S", "M", "L"] } }
missing = "mean"
scale = "standard"
shards = 2
[[model]]
arch = "mlp"
hidden = [4]
[training]
epochs = 1
optimizer = { name = "adam", lr = 1e-2 }
"#;

#[test]
fn a_model_of_words_predicts_by_the_words_and_means_of_its_file() {
    let site = Site::start();
    let _client = site.client("client-1");
    let colors = ["red", "dark, green", "blue", ""];
    let sizes = ["S", "M", "L"];
    let row = |row: usize| {
        let color = colors[row % 4];
        let color = if color.is_empty() { color.to_owned() } else { format!("\"{color}\"") };
        let price = if row % 7 == 3 { "NA".to_owned() } else { row.to_string() };
        (color, price, sizes[row % 3], ["yes", "no"][row % 2])
    };
    let lines: String = (0..90)
        .map(|at| {
            let (color, price, size, sold) = row(at);
            format!("{color},{price},{size},{sold}\n")
        })
        .collect();
    let turned: String = (0..90)
        .map(|at| {
            let (color, price, size, _) = row(at);
            format!("{size};{color};{price}\n")
        })
        .collect();
    for (name, text) in [
        ("shirts.csv", format!("color,price,size,sold\n{lines}")),
        ("turned.csv", format!("size;color;price\n{turned}")),
        ("other.csv", format!("size;color;price\nXL;red;1\n{turned}")),
        ("job.toml", WITH_WORDS.to_owned()),
        ("predict.py", example()),
    ] {
        fs::write(site.path().join(name), text).unwrap();
    }
    let job = site.json(&["submit", "job.toml"])["job"].to_string();
    site.wait(&job, |view| view["state"] == "finished");
    site.json(&["export", &job, "-o", "m.safetensors"]);
    let output = site.run(&["predict", "m.safetensors", "shirts.csv"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ours = String::from_utf8(output.stdout).unwrap();
    assert_eq!(ours.lines().count(), 91);
    let turned = site.run(&["predict", "m.safetensors", "turned.csv"]);
    assert_eq!(String::from_utf8_lossy(&turned.stdout), ours);
    assert_same(&ours, &python(&site, &["predict.py", "m.safetensors", "shirts.csv"]));
    assert_same(&ours, &python(&site, &["predict.py", "m.safetensors", "turned.csv"]));
    let other = site.run(&["predict", "m.safetensors", "other.csv"]);
    let told = String::from_utf8_lossy(&other.stderr);
    assert!(told.contains("column `size`: `XL` is none of the column's words"), "{told}");
    // A job that starts from the model must have its words, in its order.
    let more = WITH_WORDS
        .replace("\"S\", \"M\", \"L\"", "\"L\", \"M\", \"S\"")
        .replace("arch = \"mlp\"\nhidden = [4]", "init = \"m.safetensors\"");
    fs::write(site.path().join("more.toml"), more).unwrap();
    let refused = site.run(&["validate", "more.toml"]);
    let told = String::from_utf8_lossy(&refused.stderr);
    let words = "was trained on other words of column `size`; give its own in `data.categories`, in this order: \
                 { ordinal = [\"S\", \"M\", \"L\"] }";
    assert!(told.contains(words), "{told}");
    // Nor may the column be taken as numbers.
    let numbers = fs::read_to_string(site.path().join("shirts.csv")).unwrap();
    let numbers = numbers.replace(",S,", ",0,").replace(",M,", ",1,").replace(",L,", ",2,");
    fs::write(site.path().join("shirts.csv"), numbers).unwrap();
    let plain = WITH_WORDS
        .replace(", size = { ordinal = [\"S\", \"M\", \"L\"] }", "")
        .replace("arch = \"mlp\"\nhidden = [4]", "init = \"m.safetensors\"");
    fs::write(site.path().join("plain.toml"), plain).unwrap();
    let refused = site.run(&["validate", "plain.toml"]);
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains(words), "{told}");
}

/// Images of two channels, in training as `[height, width, channels]`, later also in other ways.
const ARRAYS: &str = r#"
import gzip, struct, sys
import numpy as np
table = np.loadtxt(sys.argv[1], delimiter=",", skiprows=1).astype(np.uint8)
first = np.stack([table[:, :64], 16 - table[:, :64]], axis=1).reshape(-1, 2, 8, 8)
last, labels = first.transpose(0, 2, 3, 1), table[:, 64].astype(np.int64)
train, valid = np.arange(len(table)) % 5 > 0, np.arange(len(table)) % 5 == 0
arrays = lambda rows: dict(pixels=np.ascontiguousarray(last[rows]), digits=labels[rows])
np.savez("train.npz", **arrays(train))
np.savez("valid.npz", **arrays(valid))
np.savez("other.npz", images=np.ascontiguousarray(last[valid]))
np.save("first.npy", first[valid])
np.save("flat.npy", first[valid].reshape(-1, 128))
packed = struct.pack(">2xBB4I", 8, 4, *first[valid].shape) + first[valid].tobytes()
open("valid-images-idx4-ubyte", "wb").write(packed)
gzip.open("packed-images-idx4-ubyte.gz", "wb").write(packed)
gzip.open("valid.npz.gz", "wb").write(open("valid.npz", "rb").read())
"#;

const OF_ARRAYS: &str = r#"name = "arrays"
[data]
train = "train.npz"
valid = "valid.npz"
features = "pixels"
label = "digits"
channels = "last"
scale = 0.0625
shards = 2
[[model]]
arch = "cnn"
channels = [4]
[training]
epochs = 1
batch_size = 32
optimizer = { name = "adam", lr = 3e-3 }
"#;

#[test]
fn a_model_of_arrays_predicts_with_any_names_and_layouts() {
    let site = Site::start();
    let _client = site.client("client-1");
    for (name, text) in [("arrays.py", ARRAYS), ("job.toml", OF_ARRAYS), ("predict.py", &example())]
    {
        fs::write(site.path().join(name), text).unwrap();
    }
    let digits = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/digits/digits.csv");
    python(&site, &["arrays.py", digits]);
    let job = site.json(&["submit", "job.toml"])["job"].to_string();
    site.wait(&job, |view| view["state"] == "finished");
    let exported = site.json(&["export", &job, "-o", "m.safetensors"]);
    let predict = |more: &[&str]| {
        let call = [&["predict", "m.safetensors"], more, &["-o", "p.csv"]].concat();
        let said = site.json(&call);
        assert_eq!(said["rows"], 360, "{said}");
        (said, fs::read_to_string(site.path().join("p.csv")).unwrap())
    };
    let (said, ours) = predict(&["valid.npz"]);
    assert_eq!(said["accuracy"], exported["value"], "as it was evaluated");
    for more in [
        &["other.npz", "--features", "images"][..],
        &["valid.npz", "--channels", "last"],
        &["first.npy"],
        &["first.npy", "--channels", "first"],
        &["flat.npy"],
        &["valid-images-idx4-ubyte"],
    ] {
        assert_eq!(predict(more).1, ours, "{more:?}");
    }
    for data in [
        "valid.npz",
        "valid.npz.gz",
        "flat.npy",
        "valid-images-idx4-ubyte",
        "packed-images-idx4-ubyte.gz",
    ] {
        assert_same(&ours, &python(&site, &["predict.py", "m.safetensors", data]));
    }
    fs::write(site.path().join("t.csv"), "a,b\n1,2\n").unwrap();
    for (more, problem) in [
        (
            &["other.npz"][..],
            "no array `pixels` (`features`); it has `images`; `--features` names another",
        ),
        (
            &["valid.npz", "--channels", "first"],
            "rows of shape [8, 8, 2], the model takes [2, 8, 8]",
        ),
        (&["flat.npy", "--channels", "last"], "a row is [128]"),
        (&["t.csv", "--channels", "last"], "`--channels` is for arrays"),
        (&["t.csv", "--features", "x"], "`--features` is for arrays"),
    ] {
        let output = site.run(&[&["predict", "m.safetensors"], more].concat());
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(problem), "{told}");
    }
}

/// The output of a Python program in the site's folder.
pub(crate) fn python(site: &Site, arguments: &[&str]) -> String {
    let python = concat!(env!("CARGO_MANIFEST_DIR"), "/.cache/python/bin/python");
    let output = Command::new(python)
        .args(arguments)
        .current_dir(site.path())
        .output()
        .expect("`make setup` makes the Python environment");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The example that runs a model with numpy alone.
pub(crate) fn example() -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/predict.py");
    fs::read_to_string(file).unwrap()
}

/// Refuses tables that differ in a word, or by more than rounding in a number.
pub(crate) fn assert_same(ours: &str, theirs: &str) {
    assert_eq!(ours.lines().count(), theirs.lines().count());
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        let numbers = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
        let (ours, theirs) = (numbers(ours), numbers(theirs));
        assert_eq!(ours.len(), theirs.len());
        for (our, their) in ours.iter().zip(&theirs) {
            match (our.parse::<f64>(), their.parse::<f64>()) {
                (Ok(a), Ok(b)) => {
                    let rounding = 1e-5 * b.abs().max(1.0);
                    assert!((a - b).abs() <= rounding, "{ours:?} {theirs:?}");
                }
                _ => assert_eq!(our, their),
            }
        }
    }
}

/// Exit code, stdout and stderr of `predict m DATA` with more arguments.
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

#[test]
fn columns_are_found_by_their_names_and_labels_are_compared() {
    let folder = Folder::with(&[
        ("t.csv", "a,b,y\n1,2,1\n3,4,0\n5,-6,0\n"),
        ("moved.csv", "y,more,b,a\n1,x,2,1\n0,x,4,3\nz,x,-6,5\n"),
        ("bare.csv", "a,b\n1,2\n3,4\n5,-6\n"),
        ("lacking.csv", "a,y\n1,0\n"),
        ("broken.csv", "a,b\n1,2\n3,none\n"),
    ]);
    fs::write(folder.path().join("m"), sample(&["a", "b"], &["0", "1"])).unwrap();
    let (code, table, told) = predict(&folder, &["t.csv"]);
    assert_eq!(code, Some(0), "{told}");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!((lines[0], lines.len()), ("row,prediction,p_0,p_1", 4));
    assert!(told.starts_with("accuracy ") && told.ends_with(" over 3 labelled rows\n"), "{told}");

    let (_, moved, told) = predict(&folder, &["moved.csv"]);
    assert_eq!(moved, table);
    assert!(told.contains("1 column ignored: `more`"), "{told}");
    assert!(told.contains("over 2 labelled rows; 1 row with labels that the model doesn't know"));
    assert_eq!(predict(&folder, &["bare.csv"]), (Some(0), table.clone(), String::new()));
    let (_, one_by_one, _) = predict(&folder, &["t.csv", "--batch", "1"]);
    assert_same(&one_by_one, &table);
    let (code, said, told) = predict(&folder, &["t.csv", "-o", "p.csv", "--json"]);
    assert_eq!((code, told.as_str()), (Some(0), ""));
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&said["rows"], &said["labelled"]), (&3.into(), &3.into()));
    assert_eq!(fs::read_to_string(folder.path().join("p.csv")).unwrap(), table);

    for (arguments, problem) in [
        (&["lacking.csv"][..], "`b`"),
        (&["bare.csv", "--label", "z"], "`z`"),
        (&["none.csv"], "none.csv"),
        (&["t.csv", "-o", "no/p.csv"], "there is no folder `no`"),
        (&["broken.csv", "-o", "p.csv"], "broken.csv:3: column `b`: `none` is no number"),
        (&["t.csv", "--json"], "--output"),
    ] {
        let (code, said, told) = predict(&folder, arguments);
        assert_eq!((code, said.as_str()), (Some(2), ""), "{told}");
        assert!(told.contains(problem), "{told}");
    }
    let kept = fs::read_to_string(folder.path().join("p.csv")).unwrap();
    assert_eq!(kept, table, "a run that fails leaves the old file");
    fs::write(folder.path().join("m"), "no model").unwrap();
    let (code, _, told) = predict(&folder, &["t.csv"]);
    assert_eq!(code, Some(2));
    let no_model = |what| {
        format!("error: `m` is no model file, but {what}; `sojourn export` writes model files\n")
    };
    assert_eq!(told, no_model("text"));
    fs::write(folder.path().join("m"), b"PK\x03\x04\x2d\0\0\0\0\0x.npy").unwrap();
    let (_, _, told) = predict(&folder, &["t.csv"]);
    assert_eq!(told, no_model("a ZIP archive, as NPZ files and PyTorch's `.pt` are"));
}

/// An mlp without hidden layers, as a file.
fn sample(features: &[&str], classes: &[&str]) -> Vec<u8> {
    use sojourn_model::{Lineage, initial_checkpoint, portable};
    use sojourn_protocol::{
        digest::Digest,
        ids::{JobId, TrialId},
        manifest::{Labels, Scaling},
        spec::{Architecture, Channels, Dialect, Loss, Missing, Precision},
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let description = portable::Description {
        format: portable::FORMAT,
        architecture: Architecture::mlp([]),
        columns: Vec::new(),
        shape: vec![u32::try_from(features.len()).unwrap()],
        outputs: u32::try_from(classes.len()).unwrap(),
        labels: Labels::Classes(names(classes)),
        label: Some("y".into()),
        array: None,
        channels: Channels::First,
        features: names(features),
        categories: Vec::new(),
        missing: Missing::Refuse,
        dialect: Dialect::default(),
        fill: Vec::new(),
        scaling: portable::FileScaling::Constant(0.5),
        label_scaling: None,
        loss: Loss::CrossEntropy,
        precision: Precision::F32,
        origin: portable::Origin {
            job: JobId(1),
            name: "sample".into(),
            trial: TrialId(0),
            epoch: None,
            steps: 0,
            metric: "valid/accuracy".into(),
            value: None,
            checkpoint: Digest::of(b""),
        },
    };
    let context = description.context(Scaling::None);
    let checkpoint = initial_checkpoint(&context, 1, Lineage::initial(1)).unwrap();
    let parts = portable::Parts { checkpoint: &checkpoint, ..Default::default() };
    portable::write_model(&description, parts).unwrap()
}
