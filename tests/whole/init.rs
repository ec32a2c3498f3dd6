//! `sojourn init`, whole process: a job file out of data that nobody described.

use crate::support::{Folder, sojourn};
use serde_json::Value;
use std::{fs, process::Output};

/// Twenty rows with the numbers of rows, a column of words, missing values and a label of three classes.
fn csv() -> String {
    let row = |row: u32| {
        let length = if row.is_multiple_of(7) { String::new() } else { format!("{}.5", row % 5) };
        let (place, kind) = (["sea", "hill"][row as usize % 2], ["a", "b", "c"][row as usize % 3]);
        format!("{},{length},{place},{kind}\n", row + 1)
    };
    let rows: String = (0..60).map(row).collect();
    format!("id,length,place,kind\n{rows}")
}

fn run(folder: &Folder, args: &[&str]) -> Output {
    sojourn(args).current_dir(folder.path()).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_table_becomes_a_job_that_is_accepted_as_it_is() {
    let folder = Folder::with(&[("shells.csv", &csv())]);
    let output = run(&folder, &["init", "shells.csv", "--yes"]);
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}{}", stderr(&output));
    for part in [
        "60 rows, 4 columns",
        "left out: it counts the rows",
        "a feature for each word",
        "the label: classes",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let job = fs::read_to_string(folder.path().join("job.toml")).unwrap();
    assert!(job.contains("name = \"shells\"") && job.contains("missing = \"mean\""), "{job}");
    let output = run(&folder, &["validate", "job.toml", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["trials"], &report["classes"]), (&4.into(), &3.into()));
    assert_eq!(report["warnings"], Value::Null, "{report}");
}

#[test]
fn thousands_of_columns_without_a_name_have_one_line() {
    // As a cell in the last column of a sheet makes them.
    let far = ",".repeat(16_000);
    let table: String = csv().lines().map(|line| format!("{line}{far}\n")).collect();
    let folder = Folder::with(&[("shells.csv", &table)]);
    let output = run(&folder, &["init", "shells.csv", "--yes"]);
    let said = String::from_utf8(output.stdout.clone()).unwrap() + &stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains(" 5 to 16004 ") && said.contains("it has no name"), "{said}");
    assert!(said.contains("columns 5 to 16004 have no name, and are left out"), "{said}");
    assert!(said.lines().count() < 30, "{said}");
}

#[test]
fn nothing_is_guessed_unasked_where_nobody_can_be_asked() {
    let folder = Folder::with(&[("shells.csv", &csv())]);
    let output = run(&folder, &["init", "shells.csv"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(
        said.contains("`kind`") && said.contains("`--label`") && said.contains("`--yes`"),
        "{said}"
    );
    assert_eq!(folder.names(), ["shells.csv"]);
    let output =
        run(&folder, &["init", "shells.csv", "--label", "place", "--json", "-o", "j.toml"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["file"], "j.toml");
    assert_eq!(report["columns"][2]["taken"]["label"], "classes", "{report}");
    assert_eq!(
        report["job"].as_str().unwrap(),
        fs::read_to_string(folder.path().join("j.toml")).unwrap()
    );
}

#[test]
fn a_file_that_is_there_stays_unless_force_is_said() {
    let folder = Folder::with(&[("shells.csv", &csv()), ("job.toml", "mine")]);
    let output = run(&folder, &["init", "shells.csv", "--yes"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("`--force`"), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(folder.path().join("job.toml")).unwrap(), "mine");
    assert_eq!(run(&folder, &["init", "shells.csv", "--yes", "--force"]).status.code(), Some(0));
    assert_ne!(fs::read_to_string(folder.path().join("job.toml")).unwrap(), "mine");
}

#[test]
fn all_problems_are_said_and_nothing_is_written() {
    let folder = Folder::with(&[("t.csv", "a,a,y\n1,2,x\n3,4\n")]);
    let output = run(&folder, &["init", "t.csv", "--label", "z"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    for part in [
        "two columns are called `a`",
        "line 3 (2 fields, where the first has 3)",
        "there is no column `z`",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(folder.names(), ["t.csv"]);
    let output = run(&folder, &["init", "t.csv", "--label", "z", "--json"]);
    let problems: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(problems["problems"].as_array().unwrap().len() > 3, "{problems}");
    let missing = run(&folder, &["init", "nowhere.csv", "--yes"]);
    assert!(stderr(&missing).contains("nowhere.csv"), "{}", stderr(&missing));
}
