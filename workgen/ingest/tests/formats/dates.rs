//! Columns of dates, in tables of either kind.

use super::{folder, job, numbers, refused, told};
use sojourn_ingest::{ReadOptions, Reader, check, ingest};
use sojourn_protocol::{
    jobfile,
    spec::{Channels, Missing, SourceSpec},
};
use std::path::Path;
use tempfile::TempDir;

const TABLE: &str = "\
a,sold_on,y
1,2024-03-31,u
2,2024-02-29T13:05:00Z,v
3,1970-01-01 00:00:00,u
4,2024-12-30T23:59:59.5,v
5,1969-12-31,u
";

fn with(more: &str) -> String {
    format!("train = \"t.csv\"\nlabel = \"y\"\nshards = 1\nvalid = 0.2\n{more}")
}

/// The names of the features, and the numbers of all rows.
fn rows(data: &str, base: &Path) -> (Vec<String>, Vec<Vec<f32>>) {
    let out = TempDir::new().unwrap();
    let made = ingest(&job(&with(data)), base, out.path(), &mut |_| {}).unwrap();
    let rows = numbers(&made, made.manifest.features.len());
    (made.manifest.features, rows)
}

#[test]
fn parts_of_dates_are_features_with_the_hour_where_some_date_has_a_time() {
    let dir = folder(&[("t.csv", TABLE.into())]);
    let (features, found) = rows("dates = { sold_on = \"parts\" }", dir.path());
    let names = ["a", "sold_on.year", "sold_on.month", "sold_on.day", "sold_on.weekday"];
    assert_eq!(features[..5], names.map(str::to_owned));
    assert_eq!(features[5..], ["sold_on.hour".to_owned()]);
    assert_eq!(
        found,
        [
            [1.0, 2024.0, 3.0, 31.0, 6.0, 0.0],
            [2.0, 2024.0, 2.0, 29.0, 3.0, 13.0],
            [3.0, 1970.0, 1.0, 1.0, 3.0, 0.0],
            [4.0, 2024.0, 12.0, 30.0, 0.0, 23.0],
            [5.0, 1969.0, 12.0, 31.0, 2.0, 0.0],
        ]
    );
    let checked =
        check(&job(&with("dates = { sold_on = \"parts\" }")), dir.path(), dir.path(), &mut |_| {});
    assert_eq!(checked.unwrap().width, 6);
    // Midnight is no time.
    let days = "a,sold_on,y\n1,2024-03-31 00:00:00,u\n2,2024-04-01T00:00:00Z,v\n3,2024-04-02,u\n";
    let dir = folder(&[("t.csv", days.into())]);
    let (features, _) = rows("dates = { sold_on = \"parts\" }", dir.path());
    assert_eq!(features.len(), 5);
}

#[test]
fn days_are_one_feature() {
    let dir = folder(&[("t.csv", TABLE.into())]);
    let (features, found) = rows("dates = { sold_on = \"days\" }", dir.path());
    assert_eq!(features, ["a", "sold_on"]);
    let days: Vec<f32> = found.iter().map(|row| row[1]).collect();
    assert_eq!([days[0], days[2], days[4]], [19_813.0, 0.0, -1.0]);
    assert!((days[1] - (19_782.0 + 785.0 / 1440.0)).abs() < 0.002, "{days:?}");
}

#[test]
fn missing_dates_are_dealt_with_as_other_missing_values() {
    let text = TABLE.replace("1970-01-01 00:00:00", "NA");
    let dir = folder(&[("t.csv", text.clone().into())]);
    let dates = "dates = { sold_on = \"parts\" }";
    let files = [("t.csv", text.into_bytes())];
    let said = refused(&with(dates), &files);
    assert!(said.starts_with("t.csv:4: column `sold_on`: a value is missing (`NA`)"), "{said}");
    let with = |missing: &str| rows(&format!("{dates}\nmissing = \"{missing}\""), dir.path()).1;
    assert_eq!(with("zero")[2], [3.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(with("drop-row").len(), 4);
    assert!(with("mean")[2][1] > 1969.0);
}

#[test]
fn dates_are_refused_as_dates_with_the_remedy() {
    let said = |more: &str, text: &str| refused(&with(more), &[("t.csv", text.into())]);
    assert_eq!(
        said("", TABLE),
        "t.csv: column `sold_on`: 5 values are dates, no numbers: line 2 `2024-03-31`, line 3 `2024-02-29T13:05:00Z`, line 4 \
         `1970-01-01 00:00:00`, line 5 `2024-12-30T23:59:59.5`, line 6 `1969-12-31`; `data.dates` (`{ sold_on = \"parts\" }`, \
         or \"days\") makes features of it, and `data.columns` leaves it out"
    );
    let german = "a,am,y\n1,31.3.2024,u\n2,1.4.2024,v\n3,2.4.2024,v\n";
    assert_eq!(
        said("", german),
        "t.csv: column `am`: 3 values are dates, no numbers: line 2 `31.3.2024`, line 3 `1.4.2024`, line 4 `2.4.2024`; dates as \
         ISO 8601 writes them (`2024-03-31`) are made features by `data.dates` (`{ am = \"parts\" }`), and `data.columns` leaves the column out"
    );
    assert_eq!(
        said("dates = { am = \"days\" }", german),
        "t.csv: column `am`: 3 values are no dates as ISO 8601 writes them: line 2 `31.3.2024`, line 3 `1.4.2024`, line 4 \
         `2.4.2024`"
    );
    assert_eq!(
        said("dates = { sold = \"days\" }", TABLE),
        "t.csv:1: no column `sold` among the features (`data.dates`); did you mean `sold_on`?"
    );
    let both = TABLE.replace("a,sold_on", "sold_on.day,sold_on");
    let said = said("dates = { sold_on = \"parts\" }", &both);
    assert!(said.contains("sold_on.day"), "{said}");
}

#[test]
fn rows_to_predict_have_the_features_of_the_training_data() {
    let read = |dates: &str, features: &[&str], text: &str| {
        let job = format!(
            "name = \"t\"\n[data]\n{}\n[[model]]\narch = \"mlp\"\nhidden = [1]\n[training]\nepochs = 1\n",
            with(dates)
        );
        let dialect = jobfile::parse(&job).unwrap().data.dialect;
        let dir = folder(&[("t.csv", text.into())]);
        let features: Vec<String> = features.iter().map(|name| (*name).to_owned()).collect();
        let options = ReadOptions {
            features: &features,
            channels: Channels::First,
            in_order: &[],
            categories: &[],
            missing: Missing::Refuse,
            fill: &[],
            dialect: &dialect,
            base_dir: dir.path(),
            spool: dir.path(),
        };
        let source = SourceSpec { data: "t.csv".into(), features: None, label: None, labels: None };
        let reader = Reader::open(&source, &options, &mut |_| {}).map_err(|error| told(&error))?;
        assert_eq!(reader.features(), features);
        let mut rows = reader.rows().unwrap();
        let row = rows.next_row().map_err(|error| told(&error))?;
        Ok::<_, String>(row.unwrap().numbers.to_vec())
    };
    let parts = "dates = { sold_on = \"parts\" }";
    let text = "sold_on,a\n2024-03-31T13:05:00,7\n";
    let short = ["sold_on.year", "sold_on.month", "sold_on.day", "sold_on.weekday"];
    let without = [&["a"], &short[..]].concat();
    assert_eq!(read(parts, &without, text), Ok(vec![7.0, 2024.0, 3.0, 31.0, 6.0]));
    let with_hour = [&short[..], &["sold_on.hour", "a"]].concat();
    assert_eq!(read(parts, &with_hour, text), Ok(vec![2024.0, 3.0, 31.0, 6.0, 13.0, 7.0]));
    let days = "dates = { sold_on = \"days\" }";
    assert_eq!(read(days, &["sold_on", "a"], "a,sold_on\n7,2024-03-31\n"), Ok(vec![19_813.0, 7.0]));
    assert_eq!(
        read(parts, &without, "a,sold_on\n7,yesterday\n"),
        Err("t.csv:2: column `sold_on`: `yesterday` is no date as ISO 8601 writes it, such as `2024-03-31` or \
             `2024-03-31T13:05:00`"
            .to_owned())
    );
}
