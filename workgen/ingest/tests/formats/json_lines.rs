//! Tables in JSON lines: equal rows are those of a CSV file, whatever the order of keys.

use super::{folder, job, made, refused, told, write::gzip};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use sojourn_ingest::{Ingested, Progress, Reason, check, ingest};
use sojourn_protocol::{digest::Digest, manifest::DataManifest};
use std::fmt::Write as _;
use tempfile::TempDir;

const TABLE: &str = "label = \"y\"\nshards = 2\nvalid = 0.25\nmissing = \"mean\"\n\
                     categories = { word = \"one-hot\" }\ndates = { day = \"parts\" }";

fn blobs(made: &Ingested) -> (Vec<Digest>, &DataManifest) {
    (made.files.keys().copied().collect(), &made.manifest)
}

/// A row of a table; `None` is a missing value.
#[derive(Debug, Clone)]
struct Row {
    n: Option<f64>,
    count: i64,
    word: Option<String>,
    day: u8,
    flag: Option<bool>,
    y: bool,
    /// The order of its keys.
    turn: usize,
    /// Is what is missing left out, and not null?
    is_left_out: bool,
}

impl Row {
    fn members(&self) -> Vec<(&'static str, Value)> {
        let Row { n, count, word, day, flag, y, .. } = self;
        vec![
            ("n", json!(n)),
            ("count", json!(count)),
            ("word", json!(word)),
            ("day", json!(format!("2024-03-{day:02}"))),
            ("flag", json!(flag)),
            ("y", json!(if *y { "a" } else { "b, c" })),
        ]
    }

    fn object(&self, is_first: bool) -> String {
        let mut members = self.members();
        // The first object says the order of the columns, as a header does.
        if !is_first {
            let turn = self.turn % members.len();
            members.rotate_left(turn);
            members.retain(|(_, value)| !self.is_left_out || !value.is_null());
        }
        let members = members.iter().map(|(key, value)| format!("{}: {value}", json!(key)));
        format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
    }

    fn line(&self) -> String {
        let field = |value: &Value| match value {
            Value::Null => String::new(),
            Value::String(text) => format!("\"{}\"", text.replace('"', "\"\"")),
            other => other.to_string(),
        };
        self.members().iter().map(|(_, value)| field(value)).collect::<Vec<_>>().join(",")
    }
}

fn row() -> impl Strategy<Value = Row> {
    let word = prop::sample::select(vec!["red", "grün", "say \"hi\"", "a, b"]);
    (
        prop::option::weighted(0.9, prop::num::f32::NORMAL.prop_map(f64::from)),
        any::<i32>().prop_map(i64::from),
        prop::option::weighted(0.9, word.prop_map(str::to_owned)),
        1..29u8,
        prop::option::weighted(0.9, any::<bool>()),
        any::<bool>(),
        (0..6usize, any::<bool>()),
    )
        .prop_map(|(n, count, word, day, flag, y, (turn, is_left_out))| Row {
            n,
            count,
            word,
            day,
            flag,
            y,
            turn,
            is_left_out,
        })
}

/// Rows that show all columns, so that each has a mean, words and two classes.
fn whole() -> Vec<Row> {
    let row = |n: f64, word: &str, y| Row {
        n: Some(n),
        count: 3,
        word: Some(word.to_owned()),
        day: 7,
        flag: Some(y),
        y,
        turn: 0,
        is_left_out: false,
    };
    (0..8).map(|n| row(f64::from(n), if n < 4 { "red" } else { "a, b" }, n % 2 == 0)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn equal_rows_are_equal_shards_whatever_the_order_of_keys(
        more in prop::collection::vec(row(), 0..20),
        ends in prop::sample::select(vec!["\n", "\r\n", "\n\n"]),
        is_packed in any::<bool>(),
    ) {
        let rows: Vec<Row> = whole().into_iter().chain(more).collect();
        let mut csv = "n,count,word,day,flag,y\n".to_owned();
        let mut json = String::new();
        for (index, row) in rows.iter().enumerate() {
            writeln!(csv, "{}", row.line()).unwrap();
            json += &(row.object(index == 0) + ends);
        }
        let (name, json) = match is_packed {
            true => ("t.jsonl.gz", gzip(json.as_bytes())),
            false => ("t.jsonl", json.into_bytes()),
        };
        let dir = folder(&[("t.csv", csv.into_bytes()), (name, json)]);
        let of = |file: &str| {
            made(&format!("train = \"{file}\"\n{TABLE}"), dir.path()).map_err(|error| told(&error))
        };
        let (csv, json) = (of("t.csv"), of(name));
        prop_assert!(json.is_ok(), "{json:?}");
        let (csv, json) = (csv.unwrap(), json.unwrap());
        prop_assert_eq!(blobs(&json), blobs(&csv));
    }
}

fn objects(count: i64) -> String {
    let object = |n: i64| format!("{}\n", json!({ "a": n, "b": n * n, "y": n % 2 }));
    (0..count).map(object).collect()
}

#[test]
fn parts_and_validation_data_may_have_keys_in_any_order_and_leave_some_out() {
    let valid: String = (0..4)
        .map(|n| {
            let mut object = Map::new();
            object.insert("y".into(), json!(n % 2));
            object.insert("a".into(), json!(n));
            format!("{}\n", Value::from(object))
        })
        .collect();
    let dir = folder(&[
        ("train/1.jsonl", objects(6).into()),
        ("train/2.ndjson", objects(6).into()),
        ("valid.jsonl", valid.into()),
    ]);
    let data =
        "train = \"train\"\nlabel = \"y\"\nvalid = \"valid.jsonl\"\nshards = 1\nmissing = \"zero\"";
    let made = made(data, dir.path()).map_err(|error| told(&error)).unwrap();
    assert_eq!(made.manifest.train.iter().map(|shard| shard.rows).sum::<u32>(), 12);
    assert_eq!(made.manifest.valid.iter().map(|shard| shard.rows).sum::<u32>(), 4);
    let names: Vec<&str> = made.manifest.features.iter().map(String::as_str).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn a_file_is_known_by_its_first_object_where_its_name_says_nothing() {
    let dir = folder(&[("rows", objects(8).into()), ("rows.jsonl", objects(8).into())]);
    let of = |file: &str| {
        let data = format!("train = \"{file}\"\nlabel = \"y\"\nshards = 1\nvalid = 0.25");
        made(&data, dir.path()).map(|made| made.manifest).map_err(|error| told(&error))
    };
    assert!(of("rows").is_ok(), "{:?}", of("rows"));
    assert_eq!(of("rows"), of("rows.jsonl"));
}

#[test]
fn lines_that_are_no_objects_are_refused_by_their_place_or_left_out() {
    let good = objects(8);
    let bad = good.clone()
        + "{\"a\": NaN, \"b\": 1, \"y\": 0}\n[1, 2, 0]\n{\"a\": 1, \"a\": 2, \"b\": 1, \"y\": 0}\n";
    let data = "train = \"t.jsonl\"\nlabel = \"y\"\nshards = 1\nvalid = 0.25";
    let said = refused(data, &[("t.jsonl", bad.clone().into())]);
    assert_eq!(
        said.lines().collect::<Vec<_>>(),
        [
            "t.jsonl: 2 lines are no JSON object with each key once: line 9, line 10",
            "t.jsonl:11: column `a`: the key `a` is there twice",
            "t.jsonl: `data.on_bad_row = \"skip\"` leaves out what can't be read",
        ]
    );
    let dir = folder(&[("t.jsonl", bad.into()), ("good.jsonl", good.into())]);
    let skips = format!("{data}\non_bad_row = \"skip\"");
    let (out, mut counts) = (TempDir::new().unwrap(), Vec::new());
    let skipped = ingest(&job(&skips), dir.path(), out.path(), &mut |progress| {
        if let Progress::Bad { bad, .. } = progress {
            counts.push(bad.reasons.clone());
        }
    });
    let skipped = skipped.map_err(|error| told(&error)).unwrap();
    assert_eq!(counts, [[(Reason::NoObject, 3)].into()]);
    let whole = made(&data.replace("t.jsonl", "good.jsonl"), dir.path()).unwrap();
    assert_eq!(blobs(&skipped), blobs(&whole));
}

#[test]
fn what_can_be_no_feature_is_told_with_its_first_line() {
    let rows: String =
        (0..8).map(|n| format!("{}\n", json!({ "a": n, "tags": [n], "y": n % 2 }))).collect();
    let data = |more: &str| {
        format!("train = \"t.jsonl\"\nlabel = \"y\"\nshards = 1\nvalid = 0.25\n{more}")
    };
    assert_eq!(
        refused(&data(""), &[("t.jsonl", rows.clone().into())]),
        "t.jsonl:1: column `tags`: it holds lists, which can be no feature and no label; leave it out by `data.columns`"
    );
    let dir = folder(&[("t.jsonl", rows.into())]);
    let dropped = data("columns = { drop = [\"tags\"] }");
    assert!(check(&job(&dropped), dir.path(), dir.path(), &mut |_| {}).is_ok());
    let list = b"[\n  {\"a\": 1, \"y\": 0},\n  {\"a\": 2, \"y\": 1}\n]\n".to_vec();
    assert_eq!(
        refused(&data(""), &[("t.jsonl", list)]),
        "t.jsonl: the file is one JSON list; JSON lines are wanted, an object in each line: `jq -c '.[]' FILE > NEW_FILE.jsonl`"
    );
    let document = b"{\n  \"a\": 1,\n  \"y\": 0\n}\n".to_vec();
    assert_eq!(
        refused(&data(""), &[("t.jsonl", document)]),
        "t.jsonl: its objects go on over several lines; JSON lines are wanted, an object in each line: `jq -c . FILE > \
         NEW_FILE.jsonl`"
    );
}
