//! Tables that are changed by chance, as this reader and others read them: Python's csv, pandas and polars. Where they differ, the reason
//! is in a list, which docs/data-and-shards.md has in words.

use super::{folder, told};
use serde::Deserialize;
use sojourn_ingest::{ReadOptions, Reader};
use sojourn_protocol::spec::{Channels, Dialect, Missing, SourceSpec};
use std::{path::Path, process::Command};

/// Tables by chance. `SOJOURN_TABLES` names another number, `SOJOURN_TABLES_SEED` others.
const TABLES: &str = "10000";
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.cache/python/bin/python");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/formats/beside.py");

/// A table, and the columns that others find in it.
#[derive(Debug, Deserialize)]
struct Given {
    text: String,
    /// Names of its changes.
    changes: Vec<String>,
    csv: Option<Columns>,
    pandas: Option<Columns>,
    polars: Option<Columns>,
}

#[derive(Debug, Deserialize)]
struct Columns {
    a: Vec<Value>,
    b: Vec<Value>,
    y: Vec<Option<String>>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum Value {
    Missing(()),
    Number(f64),
    /// An infinite number, or none.
    Word(String),
}

/// The usual words for what is missing.
const MISSING: [&str; 6] = ["na", "n/a", "nan", "null", "?", "none"];

/// A row as this reader reads it: both numbers, not a number where one is missing, and the label.
type Row = ([f32; 2], String);

fn ours(given: &Given) -> Result<Vec<Row>, String> {
    let dir = folder(&[("t.csv", given.text.clone().into_bytes())]);
    let features = ["a", "b"].map(str::to_owned);
    let options = ReadOptions {
        features: &features,
        channels: Channels::First,
        in_order: &[],
        categories: &[],
        missing: Missing::Mean,
        fill: &[f32::NAN, f32::NAN],
        dialect: &Dialect::default(),
        base_dir: Path::new(dir.path()),
        spool: dir.path(),
    };
    let label = Some("y".to_owned());
    let source = SourceSpec { data: "t.csv".to_owned(), features: None, label, labels: None };
    let reader = Reader::open(&source, &options, &mut |_| {}).map_err(|error| told(&error))?;
    let mut rows = reader.rows().map_err(|error| told(&error))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next_row().map_err(|error| told(&error))? {
        let label = row.label.map(|label| String::from_utf8_lossy(label).into_owned());
        found.push((row.numbers.try_into().unwrap(), label.unwrap_or_default()));
    }
    Ok(found)
}

/// How this reader and another differ over a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Differ {
    /// Only the other one reads it.
    Refused,
    /// Only this one reads it.
    Taken,
    /// Other numbers, labels or rows are found.
    Found,
}

fn differ(ours: &Result<Vec<Row>, String>, theirs: Option<&Columns>) -> Option<Differ> {
    let (rows, theirs) = match (ours, theirs) {
        (Err(_), None) => return None,
        (Err(_), Some(_)) => return Some(Differ::Refused),
        (Ok(_), None) => return Some(Differ::Taken),
        (Ok(rows), Some(theirs)) => (rows, theirs),
    };
    let is_number = |ours: f32, theirs: &Value| match theirs {
        Value::Missing(()) => ours.is_nan(),
        // Others go by way of f64, and pandas rounds in its own way.
        Value::Number(number) => {
            let (ours, number) = (f64::from(ours), *number);
            ours == number || (ours - number).abs() <= 2e-7 * number.abs() + 1e-45
        }
        Value::Word(_) => false,
    };
    let is_label = |ours: &str, theirs: &Option<String>| match theirs {
        // A model may know a class of this name, so that labels to compare with are given as they are.
        None => {
            ours.is_empty() || MISSING.iter().any(|word| word.eq_ignore_ascii_case(ours.trim()))
        }
        Some(theirs) => ours == theirs.trim(),
    };
    let columns = theirs.a.iter().zip(&theirs.b).zip(&theirs.y);
    let is_same = rows.len() == theirs.a.len()
        && rows.iter().zip(columns).all(|(([a, b], y), ((of_a, of_b), of_y))| {
            is_number(*a, of_a) && is_number(*b, of_b) && is_label(y, of_y)
        });
    (!is_same).then_some(Differ::Found)
}

/// The readers that differ, in the order in which they read.
const CSV: u8 = 1;
const PANDAS: u8 = 2;
const POLARS: u8 = 4;

/// Differences that are meant: the readers, the change of the table, and how they differ. docs/data-and-shards.md says why.
const MEANT: &[(u8, &str, Differ)] = &[
    // A row of another width is refused: a value may lie in another column than it should.
    (PANDAS | POLARS, "row: a field fewer", Differ::Refused),
    (PANDAS, "row: a field more", Differ::Refused),
    (PANDAS | POLARS, "row: an empty field more", Differ::Refused),
    (PANDAS, "rows: an empty field more", Differ::Refused),
    (PANDAS, "field: other notation", Differ::Refused),
    (PANDAS, "column: other notation", Differ::Refused),
    (PANDAS, "label: blank before a quote", Differ::Refused),
    (PANDAS, "field: blanks", Differ::Refused),
    (PANDAS, "column: blanks", Differ::Refused),
    // So are broken quotes, and names that are there twice.
    (CSV | PANDAS | POLARS, "label: behind a quote", Differ::Refused),
    (CSV | PANDAS | POLARS, "line: a stray quote", Differ::Refused),
    (CSV | PANDAS | POLARS, "line: blanks behind", Differ::Refused),
    (CSV | PANDAS | POLARS, "line: a carriage return more", Differ::Refused),
    (PANDAS | POLARS, "header: a name twice", Differ::Refused),
    // Numbers that aren't finite in single precision.
    (CSV | PANDAS | POLARS, "field: infinite", Differ::Refused),
    (CSV | PANDAS | POLARS, "column: infinite", Differ::Refused),
    (CSV | PANDAS | POLARS, "field: large", Differ::Refused),
    (CSV | PANDAS | POLARS, "column: large", Differ::Refused),
    // Python takes digits of other scripts, and blanks that aren't ASCII around a number.
    (CSV, "field: word", Differ::Refused),
    (CSV, "column: word", Differ::Refused),
    (CSV, "field: blanks", Differ::Refused),
    (CSV, "column: blanks", Differ::Refused),
    // Blanks around a number, a plus sign, and any number of digits are read.
    (PANDAS | POLARS, "field: blanks", Differ::Taken),
    (PANDAS | POLARS, "column: blanks", Differ::Taken),
    (POLARS, "field: sign", Differ::Taken),
    (POLARS, "column: sign", Differ::Taken),
    (PANDAS | POLARS, "field: digits", Differ::Taken),
    (PANDAS | POLARS, "column: digits", Differ::Taken),
    // A column may be empty, or of truth values.
    (POLARS, "column: missing", Differ::Taken),
    (CSV, "column: truth", Differ::Taken),
    // A quote within a field is one of its signs.
    (POLARS, "label: quote inside", Differ::Taken),
    (CSV | PANDAS | POLARS, "line: a stray quote", Differ::Taken),
    // An empty line, or one of blanks, is no row.
    (POLARS, "line: empty", Differ::Found),
    (POLARS, "line: blanks", Differ::Found),
    (POLARS, "line: blanks", Differ::Taken),
];

#[test]
fn tables_are_read_as_others_read_them_but_for_what_is_meant() {
    let variable =
        |name: &str, otherwise: &str| std::env::var(name).unwrap_or_else(|_| otherwise.to_owned());
    let output = Command::new(PYTHON)
        .args([SCRIPT, &variable("SOJOURN_TABLES_SEED", "1"), &variable("SOJOURN_TABLES", TABLES)])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let (mut unexplained, mut read) = (Vec::new(), 0);
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let given: Given = serde_json::from_str(line).unwrap();
        let ours = ours(&given);
        read += usize::from(ours.is_ok());
        let others = [(CSV, &given.csv), (PANDAS, &given.pandas), (POLARS, &given.polars)];
        for (reader, theirs) in others {
            let Some(differ) = differ(&ours, theirs.as_ref()) else { continue };
            let is_meant = |change: &String| {
                let is_it = |(readers, of, how): &&(u8, &str, Differ)| {
                    readers & reader > 0 && of == change && *how == differ
                };
                MEANT.iter().any(|meant| is_it(&meant))
            };
            if !given.changes.iter().any(is_meant) {
                unexplained.push(format!(
                    "{:?}, reader {reader}, {differ:?}: {:?}\n  ours   {ours:?}\n  theirs {theirs:?}",
                    given.changes, given.text
                ));
            }
        }
    }
    assert!(read > 1000, "{read} tables were read");
    unexplained.truncate(20);
    assert!(unexplained.is_empty(), "differences that aren't meant:\n{}", unexplained.join("\n"));
}
