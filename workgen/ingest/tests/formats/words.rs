//! Columns of words, and missing values that become the mean.

use super::{folder, job, made, numbers, refused, told};
use sojourn_ingest::{ReadOptions, Reader, check, ingest, survey};
use sojourn_protocol::{
    manifest::DataManifest,
    spec::{Channels, Coding, Dialect, Missing, SourceSpec},
};
use std::path::Path;
use tempfile::TempDir;

const TABLE: &str = "size,age,color,y\n\
    S,10,red,u\nM,20,blue,v\nL,30,\"dark, green\",u\nM,40,red,v\nS,50,blue,u\nL,60,red,v\n";

fn with(more: &str) -> String {
    format!("train = \"t.csv\"\nlabel = \"y\"\nshards = 2\nvalid = 0.34\n{more}")
}

/// The data as it is cut, with the numbers of all rows.
struct Cut {
    manifest: DataManifest,
    rows: Vec<Vec<f32>>,
}

fn cut(data: &str, files: &[(&str, Vec<u8>)]) -> Cut {
    let (dir, out) = (folder(files), TempDir::new().unwrap());
    let made = ingest(&job(data), dir.path(), out.path(), &mut |_| {}).unwrap();
    let rows = numbers(&made, made.manifest.features.len());
    Cut { manifest: made.manifest, rows }
}

fn of(text: &str, more: &str) -> Cut {
    cut(&with(more), &[("t.csv", text.into())])
}

#[test]
fn words_become_a_feature_each_or_a_number_by_their_place() {
    let made = of(
        TABLE,
        "categories = { color = \"one-hot\", size = { ordinal = [\"S\", \"M\", \"L\"] } }",
    );
    let manifest = &made.manifest;
    assert_eq!(manifest.features, ["size", "age", "color=blue", "color=dark, green", "color=red"]);
    assert_eq!(manifest.shape, [5]);
    let coded: Vec<(&str, Coding, u32)> = manifest
        .categories
        .iter()
        .map(|coded| (coded.column.as_str(), coded.coding, coded.first))
        .collect();
    assert_eq!(coded, [("size", Coding::Ordinal, 0), ("color", Coding::OneHot, 2)]);
    assert_eq!(manifest.categories[1].words, ["blue", "dark, green", "red"]);
    let expected = [
        [0.0, 10.0, 0.0, 0.0, 1.0],
        [0.0, 50.0, 1.0, 0.0, 0.0],
        [1.0, 20.0, 1.0, 0.0, 0.0],
        [1.0, 40.0, 0.0, 0.0, 1.0],
        [2.0, 30.0, 0.0, 1.0, 0.0],
        [2.0, 60.0, 0.0, 0.0, 1.0],
    ];
    assert_eq!(made.rows, expected);
    // Without a list the words are in the order of their bytes, and whole numbers in their own.
    let made = of(TABLE, "categories = { color = \"one-hot\", size = \"ordinal\" }");
    assert_eq!(made.manifest.categories[0].words, ["L", "M", "S"]);
    let codes = TABLE.replace("red", "10").replace("blue", "9").replace("\"dark, green\"", "-1");
    let made = of(&codes, "categories = { color = \"one-hot\", size = \"ordinal\" }");
    assert_eq!(made.manifest.categories[1].words, ["-1", "9", "10"]);
}

#[test]
fn a_table_of_numbers_written_as_words_trains_on_the_same_bytes() {
    let text = TABLE.replace("S,", "0,").replace("M,", "1,").replace("L,", "2,");
    let by_words =
        of(&text, "categories = { size = \"ordinal\" }\ncolumns = { drop = [\"color\"] }");
    let by_numbers = of(&text, "columns = { drop = [\"color\"] }");
    assert_eq!(by_words.manifest.train, by_numbers.manifest.train);
    assert_eq!(by_words.manifest.valid, by_numbers.manifest.valid);
}

#[test]
fn a_column_of_words_that_nothing_is_said_about_names_the_key() {
    let data = with("columns = { drop = [\"size\"] }");
    assert_eq!(
        refused(&data, &[("t.csv", TABLE.into())]),
        "t.csv: column `color`: 6 values are no numbers: line 2 `red`, line 3 `blue`, line 4 `dark, green`, line 5 `red`, line 6 \
         `blue`, line 7 `red`; if `color` holds words, name it in `data.categories` (`{ color = \"one-hot\" }`), or leave it out by `data.columns`"
    );
    let told = |more: &str, text: &str| refused(&with(more), &[("t.csv", text.into())]);
    let both = "categories = { color = \"one-hot\", sise = \"ordinal\" }";
    assert_eq!(
        told(both, TABLE),
        "t.csv:1: no column `sise` among the features (`data.categories`); did you mean `size`?"
    );
    let list = "categories = { color = { one-hot = [\"red\", \"blue\"] }, size = \"ordinal\" }";
    assert_eq!(
        told(list, TABLE),
        "t.csv:4: column `color`: `dark, green` is none of the column's words"
    );
    let twice = TABLE.replace("age", "color=red");
    let both = "categories = { color = \"one-hot\", size = \"ordinal\" }";
    assert_eq!(
        told(both, &twice),
        "t.csv: two features would be called `color=red`; rename a column"
    );
    let many: String = (0..5000).map(|row| format!("{row}x,{}\n", row % 2)).collect();
    assert_eq!(
        told("categories = { a = \"ordinal\" }", &format!("a,y\n{many}")),
        "t.csv:4098: column `a`: over 4096 different words; leave the column out by `data.columns`, or give its words \
         in `data.categories`"
    );
}

#[test]
fn validation_data_of_its_own_has_the_words_of_the_training_data() {
    let data = "train = \"t.csv\"\nlabel = \"y\"\nshards = 1\nvalid = \"v.csv\"\n\
                categories = { color = \"one-hot\", size = \"ordinal\" }";
    let valid = "size,age,color,y\nM,1,blue,u\n";
    let files = |valid: &str| [("t.csv", TABLE.into()), ("v.csv", valid.into())];
    let dir = folder(&files(valid));
    assert_eq!(made(data, dir.path()).unwrap().manifest.shape, [5]);
    assert_eq!(
        refused(data, &files(&valid.replace("blue", "pink"))),
        "v.csv:2: column `color`: `pink` is none of the column's words"
    );
}

#[test]
fn a_missing_value_is_the_mean_of_the_rows_that_are_trained_on() {
    let gaps =
        "a,color,y\n1,red,u\n,blue,v\n4,,u\nNA,red,v\n7,red,u\n10,blue,v\n2,red,u\n3,blue,v\n";
    let spec = "categories = { color = \"one-hot\" }\nmissing = \"mean\"\nvalid = \"v.csv\"";
    let data = with(spec).replace("valid = 0.34\n", "");
    let valid = "a,color,y\n,?,u\n100,blue,v\n";
    let made = cut(&data, &[("t.csv", gaps.into()), ("v.csv", valid.into())]);
    // Of the training rows alone: (1 + 4 + 7 + 10 + 2 + 3) / 6, and three of seven colors are blue.
    let means = [4.5, 3.0 / 7.0, 4.0 / 7.0];
    assert_eq!(made.manifest.fill, means);
    let rows = &made.rows;
    assert!(rows.contains(&means.to_vec()), "the row of validation without values: {rows:?}");
    assert!(rows.contains(&vec![4.5, 1.0, 0.0]) && rows.contains(&vec![4.0, means[1], means[2]]));
    let empty =
        gaps.replace("1,red", ",red").replace("4,,", ",,").replace("7,", ",").replace("10,", ",");
    let empty = empty.replace("\n2,", "\n,").replace("\n3,", "\n,");
    assert_eq!(
        refused(&data, &[("t.csv", empty.into()), ("v.csv", valid.into())]),
        "t.csv: column `a` has no value in any row that is trained on, so it has no mean; leave it out by `data.columns`"
    );
}

#[test]
fn missing_words_follow_the_rule_of_missing_values() {
    let gaps = TABLE.replace("M,20,blue", "M,20,").replace("L,60,red", "NA,60,red");
    let codes = "categories = { color = \"one-hot\", size = \"ordinal\" }\n";
    let told = refused(&with(codes), &[("t.csv", gaps.clone().into())]);
    assert!(
        told.starts_with("t.csv:3: column `color`: a value is missing; `data.missing`"),
        "{told}"
    );
    let zero = of(&gaps, &format!("{codes}missing = \"zero\""));
    assert!(zero.rows.contains(&vec![1.0, 20.0, 0.0, 0.0, 0.0]), "no color at all");
    let whole = of(&gaps, &format!("{codes}missing = \"drop-row\""));
    assert_eq!(whole.rows.len(), 4);
    // A word that is said to be one is none that is missing.
    let said = "categories = { color = \"one-hot\", size = { ordinal = [\"NA\", \"S\", \"M\", \"L\"] } }\n";
    let whole = of(&gaps, &format!("{said}missing = \"drop-row\""));
    assert_eq!(whole.rows.len(), 5);
}

#[test]
fn rows_to_predict_are_coded_as_the_model_was_trained() {
    let spec = job(&with(
        "categories = { color = \"one-hot\", size = { ordinal = [\"S\", \"M\", \"L\"] } }\nmissing = \"mean\"",
    ));
    let dir = folder(&[
        ("t.csv", TABLE.into()),
        ("p.csv", b"color;size;age\nred;L;5\n;S;6\nblue;;\n".to_vec()),
        ("other.csv", b"color;size;age\npink;L;5\n".to_vec()),
    ]);
    let surveyed = survey(&spec, dir.path(), dir.path(), &mut |_| {}).unwrap();
    let (features, categories) = (surveyed.features().to_vec(), surveyed.categories().to_vec());
    let fill = [1.0, 35.0, 0.25, 0.25, 0.5];
    let read = |data: &str| -> Result<Vec<Vec<f32>>, String> {
        let options = ReadOptions {
            features: &features,
            channels: Channels::First,
            in_order: &[],
            categories: &categories,
            missing: Missing::Mean,
            fill: &fill,
            dialect: &Dialect::default(),
            base_dir: Path::new(dir.path()),
            spool: dir.path(),
        };
        let source =
            SourceSpec { data: data.into(), features: None, label: Some("y".into()), labels: None };
        let reader = Reader::open(&source, &options, &mut |_| {}).map_err(|error| told(&error))?;
        assert_eq!((reader.shape(), reader.features()), (&[5][..], features.as_slice()));
        let mut rows = reader.rows().unwrap();
        let mut found = Vec::new();
        while let Some(row) = rows.next_row().map_err(|error| told(&error))? {
            found.push(row.numbers.to_vec());
        }
        Ok(found)
    };
    let expected = [
        vec![2.0, 5.0, 0.0, 0.0, 1.0],
        vec![0.0, 6.0, 0.25, 0.25, 0.5],
        vec![1.0, 35.0, 1.0, 0.0, 0.0],
    ];
    assert_eq!(read("p.csv").unwrap(), expected);
    assert!(read("other.csv").unwrap_err().contains("`pink` is none of the column's words"));
    // What `check` says of the job is what is cut.
    let summary = check(&spec, dir.path(), dir.path(), &mut |_| {}).unwrap();
    assert_eq!((summary.features, summary.width), (features.clone(), 5));
}
