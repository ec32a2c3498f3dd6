//! Cross-validation with whole processes: a trial for each fold, whose bytes the job file alone gives again.

use crate::site::Site;
use serde_json::Value;
use std::{collections::BTreeMap, fs};

#[test]
fn folds_are_compared_by_their_means_and_replay_from_the_job_file() {
    let site = Site::start();
    let _client = site.client("one");
    site.submit_with(1, 2, "[1e-5, 3e-3]", "visits = \"fixed\"");
    let file = site.path().join("job.toml");
    let text = fs::read_to_string(&file).unwrap();
    let text = text.replace("valid = 0.2\n", "stratified = true\n");
    let text = text.replace("[placement]\n", "[search]\nfolds = 3\nrefit = true\n[placement]\n");
    fs::write(&file, text).unwrap();
    let job = site.json(&["submit", "job.toml"])["job"].to_string();
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!(view["state"], "finished", "{view}");
    let trials = site.json(&["trials", &job]);
    let (last, trials) = trials.as_array().unwrap().split_last().unwrap();
    let epochs = last["epochs"].as_u64().unwrap();
    assert_eq!(
        view["hops"],
        4 * 3 * 2 * 2 + 3 * epochs,
        "four configurations, three folds, two shards, two epochs; all shards for the final model"
    );
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for trial in trials {
        let mut choices = trial["choices"].clone();
        choices.as_object_mut().unwrap().remove("fold");
        let value = trial["best"]["value"].as_f64().unwrap();
        values.entry(format!("{} {choices}", trial["arch"])).or_default().push(value);
    }
    assert_eq!(values.values().map(Vec::len).collect::<Vec<_>>(), [3; 4]);
    let mean = |of: &[f64]| of.iter().sum::<f64>() / 3.0;
    let best = values.iter().max_by(|(_, a), (_, b)| mean(a).total_cmp(&mean(b))).unwrap();
    let chosen = &view["best"];
    assert_eq!((&chosen["trial"], &last["refit"].is_u64()), (&last["trial"], &true), "{last}");
    assert!((chosen["value"].as_f64().unwrap() - mean(best.1)).abs() < 1e-12, "{view} {best:?}");
    assert_eq!(
        (chosen["epoch"].as_u64().unwrap() + 1, last["curve"].as_array().unwrap().len()),
        (epochs, 0)
    );
    let said = String::from_utf8(site.run(&["trials", &job]).stdout).unwrap();
    let board: Vec<&str> = said.split("over folds\n").nth(1).expect(&said).lines().collect();
    assert!(board[0].contains("MEAN VALID/ACCURACY") && board.len() == 5, "{said}");
    assert!(board[1].contains(&format!("{:.4}", mean(best.1))), "{said}");
    let said = String::from_utf8(site.run(&["status", &job]).stdout).unwrap();
    let line = said.lines().find(|line| line.starts_with("over folds")).expect(&said);
    assert!(line.contains(&format!("{:.4} in the mean of 3 trials", mean(best.1))), "{line}");
    let line = said.lines().find(|line| line.starts_with("final model")).expect(&said);
    assert!(line.contains("trial 12, trained on all folds"), "{line}");
    let model = site.path().join("model.safetensors");
    let exported = site.json(&["export", &job, "-o", model.to_str().unwrap()]);
    assert_eq!(
        (exported["trial"].as_u64(), &exported["checkpoint"]),
        (Some(12), &last["checkpoint"]["sha256"])
    );
    let replayed = site.json(&["replay", &job, "--trial", "12"]);
    assert_eq!(replayed["verdict"], "identical", "{replayed}");
    let number = 7;
    let trial: &Value = &trials[number];
    let replayed = site.train_alone(number, &trial["numeric_class"]);
    assert_eq!(replayed["sha256"], trial["checkpoint"]["sha256"], "of fold {}", trial["choices"]);
}
