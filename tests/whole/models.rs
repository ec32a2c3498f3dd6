//! What an exported model is good for: the start of another job.

use crate::{
    site::Site,
    support::{Folder, sojourn},
};
use serde_json::Value;
use std::fs;

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
fn a_job_goes_on_from_exported_models_and_is_replayed() {
    let site = Site::start();
    let _client = site.client("client-1");
    let first = site.submit(99, 2);
    site.wait(&first, |view| view["state"] == "finished");
    let trials = site.json(&["trials", &first]);
    fs::create_dir(site.path().join("models")).unwrap();
    // Of the four trials, the first mlp and the first cnn.
    let values = [("mlp", "0"), ("cnn", "2")].map(|(name, trial)| {
        let file = format!("models/{name}.safetensors");
        let exported = site.json(&["export", &first, "--trial", trial, "-o", &file]);
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
fn a_model_that_cannot_be_a_start_is_refused_with_the_reason() {
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

/// An mlp without hidden layers, as a file.
fn sample(features: &[&str], classes: &[&str]) -> Vec<u8> {
    use sojourn_model::{Lineage, initial_checkpoint, portable};
    use sojourn_protocol::{
        digest::Digest,
        ids::{JobId, TrialId},
        manifest::{Labels, Scaling},
        spec::{Architecture, Loss, Precision},
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let description = portable::Description {
        format: portable::FORMAT,
        architecture: Architecture::mlp([]),
        shape: vec![u32::try_from(features.len()).unwrap()],
        outputs: u32::try_from(classes.len()).unwrap(),
        labels: Labels::Classes(names(classes)),
        label: "y".into(),
        features: names(features),
        scaling: portable::FileScaling::Constant(0.5),
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
    portable::write_model(&description, &checkpoint, None).unwrap()
}
