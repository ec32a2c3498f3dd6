//! The event files of sample jobs; that TensorBoard itself reads them is tested by `tests/whole/exports.rs`.

use super::{
    TensorBoard,
    event::Events,
    hparams::{Kind, Status, kinds, session_end},
    run,
};
use crate::cli::model::export::{
    answers::Answers,
    samples::{Sample, answers, fresh},
    tables::hyper_parameters::HyperParameters,
};
use serde_json::{Value, json};
use sojourn_protocol::{ids::JobId, time::UnixMillis};
use std::{collections::BTreeMap, fs, path::Path};

fn job(epochs: &[u32]) -> Answers {
    let sample =
        |epochs: &u32| Sample { name: "mlp hidden=[4], lr=1e-3/x".into(), epochs: *epochs };
    answers(&epochs.iter().map(sample).collect::<Vec<_>>())
}

/// The event files in a folder and the folders in it, by path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            found.insert(name, fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn each_trial_has_a_folder_with_a_safe_name() {
    let answers = job(&[9, 1]);
    let folder = tempfile::tempdir().unwrap();
    let mut board = TensorBoard::open(folder.path(), &answers).unwrap();
    assert_eq!(board.update(&answers).unwrap(), 2);
    let file = "events.out.tfevents.1699999999.sojourn-job-1.0000";
    let names: Vec<String> = files(folder.path()).into_keys().collect();
    let run = |trial: u32| format!("trial-{trial}-mlp_hidden=_4_lr=1e-3_x/{file}");
    assert_eq!(names, [file.to_owned(), run(0), run(1)]);
    let mut trial = answers.trials[0].clone();
    for (name, safe) in [("../..", "trial-0-"), ("", "trial-0-mlp"), ("ü", "trial-0-")] {
        trial.name = name.into();
        assert!(run::folder_name(&trial).starts_with(safe), "{}", run::folder_name(&trial));
        assert!(!run::folder_name(&trial).contains(['/', 'ü']));
    }
}

/// The records of a file, without their framing.
fn records(mut file: &[u8]) -> Vec<&[u8]> {
    let mut records = Vec::new();
    while let Some((length, rest)) = file.split_first_chunk::<8>() {
        let end = 4 + usize::try_from(u64::from_le_bytes(*length)).unwrap();
        records.push(&rest[4..end]);
        file = &rest[end + 4..];
    }
    records
}

#[test]
fn messages_have_the_fields_and_bytes_of_tensorboards_definitions() {
    let at = UnixMillis(1500);
    let time = 1.5_f64.to_le_bytes();
    let mut events = Events::begin(at);
    events.scalar(at, 300, "a", 1.5);
    session_end(&mut events, at, Status::Unknown);
    let file = events.into_bytes();
    let first = [b"\x09", &time[..], b"\x10\0\x1a\x0dbrain.Event:2"].concat();
    let number = 1.5_f32.to_le_bytes();
    let scalar =
        [b"\x09", &time[..], b"\x10\xac\x02\x2a\x0a\x0a\x08\x0a\x01a\x15", &number].concat();
    let plugin = [b"\x0a\x07hparams\x12\x0d\x22\x0b\x08\0\x11", &time[..]].concat();
    let tag = b"\x2a\x3a\x0a\x38\x0a\x1a_hparams_/session_end_info";
    let end = [b"\x09", &time[..], b"\x10\0", tag, b"\x4a\x1a\x0a\x18", &plugin].concat();
    assert_eq!(records(&file), [first, scalar, end]);
}

#[test]
fn a_running_job_is_appended_to_and_ends_as_if_it_were_written_at_once() {
    let at_once = tempfile::tempdir().unwrap();
    let ended = job(&[9]);
    TensorBoard::open(at_once.path(), &ended).unwrap().update(&ended).unwrap();
    for again in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let mut board = TensorBoard::open(folder.path(), &ended).unwrap();
        let mut before: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for epochs in 0..=9 {
            if again {
                // Another call, which finds the files.
                board = TensorBoard::open(folder.path(), &ended).unwrap();
            }
            board.update(&job(&[epochs])).unwrap();
            let now = files(folder.path());
            for (name, bytes) in &before {
                assert!(now[name].starts_with(bytes), "{name} after {epochs} epochs");
            }
            before = now;
        }
        assert_eq!(files(folder.path()), files(at_once.path()));
    }
}

#[test]
fn a_torn_end_is_made_whole_and_a_trial_that_was_taken_back_gets_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let (short, long) = (job(&[2]), job(&[9]));
    TensorBoard::open(folder.path(), &long).unwrap().update(&long).unwrap();
    let whole = files(folder.path());
    let name = whole.keys().find(|name| name.starts_with("trial-0")).unwrap();
    let path = folder.path().join(name);
    fs::write(&path, &whole[name][..whole[name].len() - 3]).unwrap();
    TensorBoard::open(folder.path(), &long).unwrap().update(&long).unwrap();
    assert_eq!(files(folder.path()), whole);
    TensorBoard::open(folder.path(), &short).unwrap().update(&short).unwrap();
    let now = files(folder.path());
    let runs: Vec<&String> = now.keys().filter(|name| name.starts_with("trial-0")).collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert!(runs[0].ends_with(".0001"), "{runs:?}");
}

#[test]
fn the_folder_of_another_job_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let first = job(&[9]);
    TensorBoard::open(folder.path(), &first).unwrap().update(&first).unwrap();
    let before = files(folder.path());
    let (mut fresh, costs) = fresh(&[]);
    fresh.detail.summary.job = JobId(11);
    let other = Answers::of(JobId(11), fresh, &[], &costs).unwrap();
    let refused = TensorBoard::open(folder.path(), &other).map(|_| ()).unwrap_err();
    assert!(refused.messages()[0].contains("event files of another job"), "{refused:?}");
    assert_eq!(files(folder.path()), before);
}

#[test]
fn the_experiment_has_what_differs_or_all() {
    let of = |lr: Value, hidden: Value| -> HyperParameters {
        [("lr".to_owned(), lr), ("hidden".to_owned(), hidden), ("same".to_owned(), true.into())]
            .into()
    };
    let (one, two) = (of(json!(1), json!([4])), of(json!(0.5), json!([8])));
    let shown = |of: &[HyperParameters]| -> Vec<(String, Kind)> {
        kinds(of).into_iter().map(|(name, kind)| (name.to_owned(), kind)).collect()
    };
    let varied = [("hidden".to_owned(), Kind::Text), ("lr".to_owned(), Kind::Number)];
    assert_eq!(shown(&[one.clone(), two]), varied);
    let switch = [("same".to_owned(), Kind::Switch)];
    assert_eq!(shown(&[one.clone(), one]), [varied.to_vec(), switch.to_vec()].concat());
    // Missing in one trial, a word in another.
    let words = [of(json!(1), json!(1)), of(json!("a"), json!(1)), HyperParameters::new()];
    assert_eq!(shown(&words)[1], ("lr".to_owned(), Kind::Text));
}
