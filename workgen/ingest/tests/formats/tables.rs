//! Tables as spreadsheets and data frames write them: separators, quotes, columns that are no features, missing values.

use super::{folder, job, made, numbers, refused, told};
use sojourn_ingest::{Progress, ReadOptions, Reader, check, ingest};
use sojourn_protocol::spec::{Channels, Dialect, Missing, SourceSpec};
use std::path::Path;
use tempfile::TempDir;

const ROWS: [(&str, &str, &str); 12] = [
    ("5.1", "3.5", "setosa"),
    ("4.9", "3", "setosa"),
    ("7", "3.2", "versicolor, red"),
    ("6.4", "3.25", "versicolor, red"),
    ("6.3", "3.3", "virginica"),
    ("5.8", "2.7", "virginica"),
    ("5", "3.4", "setosa"),
    ("4.4", "2.9", "setosa"),
    ("6.5", "2.8", "versicolor, red"),
    ("5.7", "-2.5e0", "versicolor, red"),
    ("7.1", "3", "virginica"),
    ("6.3", "2.9", "virginica"),
];
const JOB: &str = "train = \"t.csv\"\nlabel = \"species\"\nshards = 2\nscale = \"standard\"";

/// The rows with a header, each field written by `write`.
fn table(separator: &str, end: &str, write: impl Fn(&str) -> String) -> String {
    let header = ("length (cm)", "width (cm)", "species");
    let lines = std::iter::once(&header).chain(&ROWS);
    let line = |(a, b, c): &(&str, &str, &str)| [*a, *b, *c].map(&write).join(separator) + end;
    lines.map(line).collect()
}

fn quoted(field: &str) -> String {
    format!("\"{field}\"")
}

/// Quotes only what has a comma.
fn bare(field: &str) -> String {
    if field.contains(',') { quoted(field) } else { field.to_owned() }
}

fn text_quoted(field: &str) -> String {
    if field.parse::<f32>().is_ok() { field.to_owned() } else { quoted(field) }
}

#[test]
fn spreadsheets_write_the_same_rows_in_many_manners() {
    let plain = table(",", "\n", bare);
    let dir = folder(&[("t.csv", plain.into_bytes())]);
    let expected = made(JOB, dir.path()).unwrap().manifest;
    let mark = "\u{feff}";
    let manners = [
        ("CSV with a byte order mark", format!("{mark}{}", table(",", "\r\n", bare))),
        ("all in quotes", table(",", "\n", quoted)),
        ("words in quotes", table(",", "\n", text_quoted)),
        ("without an end of the last line", table(",", "\r\n", bare).trim_end().to_owned()),
        ("semicolons", format!("{mark}{}", table(";", "\r\n", str::to_owned))),
        ("semicolons and quotes", table(";", "\n", quoted)),
        ("tabs", table("\t", "\r\n", str::to_owned)),
        ("pipes", table("|", "\n", str::to_owned)),
    ];
    for (manner, text) in manners {
        let dir = folder(&[("t.csv", text.into_bytes())]);
        assert_eq!(made(JOB, dir.path()).unwrap().manifest, expected, "{manner}");
    }
}

#[test]
fn a_separator_is_found_out_and_said_unless_the_job_says_it() {
    let said = |data: &str, text: &str| {
        let dir = folder(&[("t.csv", text.as_bytes().to_vec())]);
        let mut said = Vec::new();
        let mut tell = |progress: Progress<'_>| {
            if let Progress::Separated { file, by } = progress {
                said.push(format!("{file}: {}", by.name()));
            }
        };
        let checked = check(&job(data), dir.path(), dir.path(), &mut tell);
        (checked.map(|summary| summary.features).map_err(|error| told(&error)), said)
    };
    let names = |names: &[&str]| Ok(names.iter().map(|name| (*name).to_owned()).collect());
    let job = "train = \"t.csv\"\nlabel = \"y\"\nshards = 1\nvalid = 0.5";
    let rows = "1;2;0\n3;4;1\n";
    let found = (names(&["a", "b"]), vec!["t.csv: `;`".to_owned()]);
    assert_eq!(said(job, &format!("a;b;y\n{rows}")), found);
    let found = (names(&["a, cm", "b, cm"]), vec!["t.csv: `;`".to_owned()]);
    assert_eq!(said(job, &format!("a, cm;b, cm;y\n{rows}")), found, "commas in names");
    let found = (names(&["a", "b"]), vec!["t.csv: tabs".to_owned()]);
    assert_eq!(said(job, &format!("a\tb\ty\n{}", rows.replace(';', "\t"))), found);
    let commas = rows.replace(';', ",");
    assert_eq!(said(job, &format!("a,b,y\n{commas}")), (names(&["a", "b"]), vec![]));
    // The key wins, and then nothing is said.
    for separator in ["\\t", "tab"] {
        let job = format!("{job}\nseparator = \"{separator}\"");
        let text = format!("a;b,c\ty\n{}", "1\t0\n2\t1\n");
        assert_eq!(said(&job, &text), (names(&["a;b,c"]), vec![]));
    }
    let job = format!("{job}\nseparator = \",\"");
    let (refused, _) = said(&job, &format!("a;b;y\n{rows}"));
    assert!(refused.unwrap_err().contains("no column `y`"));
}

#[test]
fn decimal_commas_are_refused_with_what_to_do() {
    let german = table(";", "\r\n", |field| field.replace('.', ","));
    let said = refused(JOB, &[("t.csv", german.into_bytes())]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    for (line, column, first, advice) in [
        (lines[0], "length (cm)", "line 2 `5,1`, line 3 `4,9`", "`5,1` is 5.1"),
        (lines[1], "width (cm)", "line 2 `3,5`, line 4 `3,2`", "`3,5` is 3.5"),
    ] {
        let begin =
            format!("t.csv: column `{column}`: 10 values are numbers in another notation: {first}");
        let end = format!("; {advice} by `data.decimal = \",\"`");
        assert!(line.starts_with(&begin) && line.ends_with(&end), "{line}");
    }
    // Without quotes each is two values.
    let broken = "a,b,species\n1,5,2,5,x\n";
    assert_eq!(
        refused(JOB, &[("t.csv", broken.into())]),
        "t.csv:2: 5 values, the header has 3 columns; a value with a comma must be in quotes, and decimals need a point"
    );
}

#[test]
fn columns_that_are_no_features_are_named() {
    let rows: String = (0..10).map(|n| format!("name {n},{n},{},7\n", n % 2)).collect();
    let all = format!("id,a,y,b\n{rows}");
    let dir = folder(&[("t.csv", all.clone().into_bytes())]);
    let with = |columns: &str| {
        format!("train = \"t.csv\"\nlabel = \"y\"\nshards = 1\ncolumns = {columns}")
    };
    let features = |columns: &str| made(&with(columns), dir.path()).unwrap().manifest.features;
    assert_eq!(features("{ drop = [\"id\"] }"), ["a", "b"]);
    assert_eq!(features("{ use = [\"b\", \"a\"] }"), ["b", "a"]);
    assert_eq!(features("{ use = [\"a\"] }"), ["a"]);
    let bare: String = (0..10).map(|n| format!("{n},{},7\n", n % 2)).collect();
    let without = folder(&[("t.csv", format!("a,y,b\n{bare}").into_bytes())]);
    let same = made("train = \"t.csv\"\nlabel = \"y\"\nshards = 1", without.path()).unwrap();
    assert_eq!(made(&with("{ drop = [\"id\"] }"), dir.path()).unwrap().manifest, same.manifest);
    let told = |columns: &str| refused(&with(columns), &[("t.csv", all.clone().into_bytes())]);
    assert_eq!(
        told("{ drop = [\"idx\"] }"),
        "t.csv:1: no column `idx` (`data.columns`); did you mean `id`?"
    );
    assert_eq!(
        told("{ drop = [\"id\", \"a\", \"b\"] }"),
        "t.csv:1: no feature column beside the label"
    );
}

#[test]
fn missing_values_are_refused_put_to_zero_or_left_out_with_their_rows() {
    let text = "a,b,note,y\n1,2,,u\n?,3,,v\n4,,x,u\n5,6,,\n7,NA,,v\n8,9,x,v\n";
    let dir = folder(&[("t.csv", text.into())]);
    let with = |missing: &str| {
        format!(
            "train = \"t.csv\"\nlabel = \"y\"\nshards = 1\nvalid = 0.5\ncolumns = {{ drop = [\"note\"] }}\n{missing}"
        )
    };
    let out = TempDir::new().unwrap();
    let mut said = Vec::new();
    let mut tell = |progress: Progress<'_>| match progress {
        Progress::Dropped { from, rows, of } => said.push((from.to_owned(), rows, of)),
        Progress::Unlabelled { from, rows, of, words: [] } => {
            said.push((format!("{from}, without a label"), rows, of));
        }
        _ => {}
    };
    let spec = job(&with("missing = \"drop-row\""));
    let whole = ingest(&spec, dir.path(), out.path(), &mut tell).unwrap();
    assert_eq!(numbers(&whole, 2), [[1.0, 2.0], [8.0, 9.0]]);
    assert_eq!(said, [("t.csv, without a label".to_owned(), 1, 6), ("t.csv".to_owned(), 3, 6)]);
    // A label is never made up.
    let labelled = text.replace("5,6,,\n", "");
    let zero = ingest(&job(&with("missing = \"zero\"")), dir.path(), out.path(), &mut |_| {});
    let expected = [[0.0, 3.0], [1.0, 2.0], [4.0, 0.0], [7.0, 0.0], [8.0, 9.0]];
    assert_eq!(numbers(&zero.unwrap(), 2), expected);
    let remedy = "; `data.missing` says what to do about it: `\"drop-row\"` leaves such rows out, `\"zero\"` takes 0, `\"mean\"` \
                  the column's mean";
    for missing in ["", "missing = \"refuse\""] {
        assert_eq!(
            refused(&with(missing), &[("t.csv", labelled.clone().into_bytes())]),
            format!(
                "t.csv:3: column `a`: a value is missing (`?`){remedy}\n\
                 t.csv: column `b`: 2 values are missing: line 4, line 5 `NA`{remedy}"
            )
        );
    }
    assert_eq!(
        refused(&with("missing = \"drop-row\""), &[("t.csv", "a,b,note,y\n,1,,u\n".into())]),
        "t.csv: every row has a missing value, and `data.missing` leaves such rows out"
    );
    assert!(
        refused(&with("missing = \"zero\""), &[("t.csv", "a,b,note,y\n-,1,,u\n2,3,,v\n".into())])
            .contains("`-` is no number")
    );
}

#[test]
fn keys_of_tables_are_refused_for_arrays_that_no_name_gives_away() {
    let dir = folder(&[("t", super::write::npz_of_both(zip::CompressionMethod::Stored))]);
    for (key, value) in
        [("separator", "\";\""), ("columns", "{ drop = [\"a\"] }"), ("missing", "\"zero\"")]
    {
        let data = format!("train = \"t\"\nlabel = \"y\"\n{key} = {value}");
        let error = made(&data, dir.path()).unwrap_err();
        let files = if key == "separator" {
            "CSV files"
        } else {
            "tables (CSV, JSON lines, Parquet, Excel, libsvm and TFRecord)"
        };
        assert_eq!(told(&error), format!("t: `data.{key}` is for {files}, and this is none"));
    }
}

#[test]
fn rows_to_predict_are_separated_as_their_own_header_shows_and_filled_as_the_model_says() {
    let dir = folder(&[("t.csv", b"y;b;id;a\nu;1;7;\nv;2;8;3\n".to_vec())]);
    let read = |missing: Missing| -> Result<Vec<Vec<f32>>, String> {
        let features = ["a", "b"].map(str::to_owned);
        let options = ReadOptions {
            features: &features,
            channels: Channels::First,
            in_order: &[],
            categories: &[],
            missing,
            fill: &[],
            dialect: &Dialect::default(),
            base_dir: Path::new(dir.path()),
            spool: dir.path(),
        };
        let source = SourceSpec {
            data: "t.csv".into(),
            features: None,
            label: Some("y".into()),
            labels: None,
        };
        let reader = Reader::open(&source, &options, &mut |_| {}).map_err(|error| told(&error))?;
        assert!(reader.has_labels());
        let mut rows = reader.rows().unwrap();
        let mut found = Vec::new();
        while let Some(row) = rows.next_row().map_err(|error| told(&error))? {
            found.push(row.numbers.to_vec());
        }
        Ok(found)
    };
    assert_eq!(read(Missing::Zero), Ok(vec![vec![0.0, 1.0], vec![3.0, 2.0]]));
    assert_eq!(
        read(Missing::Refuse),
        Err("t.csv:2: column `a`: a value is missing".to_owned()),
        "a model's rows are no job's: its key isn't named"
    );
}

#[test]
fn columns_of_truth_values_are_those_of_1_and_0() {
    let data = "train = \"t.csv\"\nlabel = \"y\"\nmissing = \"zero\"";
    let table = |words: [&str; 3]| {
        let rows = (0..30).map(|row| format!("{},{},c{}\n", words[row * 7 % 3], row, row % 2));
        ["a,b,y\n".to_owned()].into_iter().chain(rows).collect::<String>().into_bytes()
    };
    let of = |words| {
        let dir = folder(&[("t.csv", table(words))]);
        made(data, dir.path()).unwrap().manifest
    };
    let expected = of(["1", "0", ""]);
    for words in [["true", "false", ""], ["True", "False", "NA"], [" TRUE ", "FALSE", "nan"]] {
        assert_eq!(of(words), expected);
    }
    let said = |words| refused(data, &[("t.csv", table(words))]);
    let wrong = said(["true", "0", "0"]);
    let begin = "t.csv: column `a`: 20 values are no truth values, as those above them are: line 3 `0`, line 4 `0`";
    assert!(wrong.starts_with(begin), "{wrong}");
    assert!(wrong.ends_with("; a column has either such words or numbers"), "{wrong}");
    let wrong = said(["1", "false", "0"]);
    let begin = "t.csv: column `a`: 10 values are no numbers: line 3 `false`, line 6 `false`";
    let remedy = "; if `a` holds words, name it in `data.categories` (`{ a = \"one-hot\" }`), or leave it out by `data.columns`";
    assert!(wrong.starts_with(begin) && wrong.contains(remedy), "{wrong}");
    assert!(
        wrong.ends_with("`data.on_bad_row = \"skip\"` leaves out what can't be read"),
        "{wrong}"
    );
    assert!(said(["true", "yes", "0"]).contains("line 3 `yes`"));
}
