//! Tables as people have them: labels and values that are missing, no header, other notations of numbers, columns without names.

use super::{folder, job, made, numbers, refused, told, write::gzip};
use sojourn_ingest::{Progress, ReadOptions, Reader, check, ingest};
use sojourn_protocol::{
    jobfile,
    manifest::Labels,
    spec::{Channels, Dialect, Missing, SourceSpec},
};
use tempfile::TempDir;

const PLAIN: &str = "train = \"t.csv\"\nlabel = \"y\"\nshards = 1\nvalid = 0.5";

/// The data of a job with these lines of `[data]` in this folder, the numbers of its rows, and the remarks on it.
fn read(data: &str, dir: &TempDir) -> (Result<Read, String>, Vec<String>) {
    let out = TempDir::new().unwrap();
    let mut said = Vec::new();
    let mut tell = |progress: Progress<'_>| match progress {
        Progress::Unlabelled { from, rows, of, words } => {
            said.push(format!("{from}: {rows} of {of} without a label {words:?}"));
        }
        Progress::Dropped { from, rows, of } => {
            said.push(format!("{from}: {rows} of {of} dropped"))
        }
        Progress::SameClass { class, labels } => said.push(format!("{class}: {labels:?}")),
        Progress::Unnamed { from, column, last, is_index } => {
            said.push(format!("{from}: columns {column} to {last}, index: {is_index}"));
        }
        Progress::Separated { file, by } => said.push(format!("{file}: {}", by.name())),
        _ => {}
    };
    let made = ingest(&job(data), dir.path(), out.path(), &mut tell);
    let made = made.map_err(|error| told(&error)).map(|made| Read {
        rows: numbers(&made, made.manifest.features.len()),
        features: made.manifest.features.clone(),
        labels: made.manifest.labels,
    });
    (made, said)
}

#[derive(Debug)]
struct Read {
    rows: Vec<Vec<f32>>,
    features: Vec<String>,
    labels: Labels,
}

impl Read {
    fn classes(&self) -> &[String] {
        match &self.labels {
            Labels::Classes(names) => names,
            other => panic!("{other:?}"),
        }
    }
}

/// The same of one file.
fn said(data: &str, text: &[u8]) -> (Result<Read, String>, Vec<String>) {
    read(data, &folder(&[("t.csv", text.to_vec())]))
}

fn rows(data: &str, text: &str) -> Vec<Vec<f32>> {
    said(data, text.as_bytes()).0.unwrap().rows
}

/// The message on this file.
fn wrong(data: &str, text: &str) -> String {
    refused(data, &[("t.csv", text.as_bytes().to_vec())])
}

#[test]
fn rows_without_a_label_are_left_out_of_all_data_whatever_is_done_about_missing_features() {
    let table = |word: &str| {
        let row = |n: u32| match n % 10 {
            0 => format!("{n},{},{word}\n", n + 1),
            _ => format!("{n},{},{}\n", n + 1, n % 2),
        };
        format!("a,b,y\n{}", (0..40).map(row).collect::<String>())
    };
    for word in ["NA", "N/A", "null", "?", "NaN", "nan", "none", "None", ""] {
        for missing in ["refuse", "zero", "mean", "drop-row"] {
            for loss in ["mse", "cross-entropy"] {
                let data = format!("{PLAIN}\ntest = \"t.csv\"\nmissing = \"{missing}\"");
                let data = format!(
                    "{data}\n[[model]]\narch = \"mlp\"\nhidden = [4]\n[training]\nepochs = 1\nloss = \"{loss}\""
                );
                let text = format!("name = \"t\"\n[data]\n{data}\n");
                let spec = jobfile::parse(&text).unwrap();
                let dir = folder(&[("t.csv", table(word).into_bytes())]);
                let mut said = Vec::new();
                let summary = check(&spec, dir.path(), dir.path(), &mut |progress| {
                    if let Progress::Unlabelled { rows, of, words, .. } = progress {
                        said.push((rows, of, words.to_vec()));
                    }
                })
                .unwrap();
                let rows = |shards: &[u32]| shards.iter().sum::<u32>();
                assert_eq!(rows(&summary.train) + rows(&summary.valid), 36, "{word} {missing}");
                assert_eq!(rows(&summary.test), 36, "{word} {missing}");
                let words: Vec<String> =
                    Some(word.to_owned()).filter(|word| !word.is_empty()).into_iter().collect();
                assert_eq!(said, [(4, 40, words.clone()), (4, 40, words)], "{word} {missing}");
            }
        }
    }
}

#[test]
fn a_row_without_a_label_may_have_anything_else() {
    let text = "a,b,y\nx,,\n1,2,u\n3,4,v\n,,NA\ntrue,5,?\n";
    let (made, said) = said(PLAIN, text.as_bytes());
    assert_eq!(made.unwrap().rows, [[1.0, 2.0], [3.0, 4.0]]);
    assert_eq!(said, ["t.csv: 3 of 5 without a label [\"?\", \"NA\"]"]);
}

#[test]
fn a_job_says_which_words_are_missing_values() {
    let text = "a,b,y\n1,-,NA\n-999,2,u\n3,4,u\n5,6,NA\n7,8,-\n";
    let data = format!("{PLAIN}\nmissing = \"drop-row\"\nmissing_values = [\"-\", -999]");
    let (made, said) = said(&data, text.as_bytes());
    let made = made.unwrap();
    assert_eq!(made.rows, [[3.0, 4.0], [5.0, 6.0]]);
    assert_eq!(made.classes(), ["NA", "u"]);
    assert_eq!(said, ["t.csv: 1 of 5 without a label [\"-\"]", "t.csv: 2 of 5 dropped"]);
    // In columns of words too.
    let data = format!("{PLAIN}\nmissing = \"drop-row\"\ncategories = {{ a = \"one-hot\" }}");
    let made = |more: &str| {
        let dir = folder(&[("t.csv", b"a,y\nNone,u\nred,v\nblue,u\n".to_vec())]);
        super::made(&format!("{data}\n{more}"), dir.path()).unwrap().manifest.features
    };
    assert_eq!(made(""), ["a=blue", "a=red"]);
    assert_eq!(made("missing_values = []"), ["a=None", "a=blue", "a=red"]);
}

#[test]
fn numbers_for_missing_values_are_written_as_the_other_numbers_are() {
    let with = |keys: &str| format!("{PLAIN}\nmissing = \"zero\"\n{keys}");
    let comma = with("decimal = \",\"\nmissing_values = [-999]");
    let text = "a;b;y\n-999,0;1,5;u\n2,5;-999;v\n";
    assert_eq!(rows(&comma, text), [[0.0, 1.5], [2.5, 0.0]]);
    let grouped = with("thousands = \",\"\nmissing_values = [-9999]");
    let text = "a,b,y\n\"-9,999\",1,u\n2,\"1,234\",v\n";
    assert_eq!(rows(&grouped, text), [[0.0, 1.0], [2.0, 1234.0]]);
    assert!(wrong(&grouped, "a,y\n\"0,123\",u\n2,v\n").contains("0,123"));
}

#[test]
fn a_table_without_a_header_has_columns_by_position_or_by_names_of_the_job() {
    let text = "1,2,0\n3,4,1\n";
    let expected = [[1.0, 2.0], [3.0, 4.0]];
    let by_position = "train = \"t.csv\"\nlabel = 3\nheader = false\nshards = 1\nvalid = 0.5";
    assert_eq!(rows(by_position, text), expected);
    assert_eq!(rows(&by_position.replace("label = 3", "label = \"3\""), text), expected);
    let named =
        "train = \"t.csv\"\nlabel = \"y\"\nheader = [\"a\", \"b\", \"y\"]\nshards = 1\nvalid = 0.5";
    assert_eq!(rows(named, text), expected);
    let (made, _) = said(by_position, text.as_bytes());
    assert_eq!(made.unwrap().features, ["1", "2"]);
    let (made, _) = said(named, b"1;2;0\n3;4;1\n");
    assert_eq!(made.unwrap().features, ["a", "b"]);
    // One of them may be left out, by its name or its position.
    let (made, _) = said(&format!("{by_position}\ncolumns = {{ drop = [1] }}"), text.as_bytes());
    assert_eq!(made.unwrap().features, ["2"]);
    assert_eq!(wrong(named, "1,2\n"), "t.csv:1: 2 values, `data.header` names 3 columns");
    assert_eq!(wrong(named, "1,2,0\n1,2\n"), "t.csv:2: 2 values, `data.header` names 3 columns");
    assert_eq!(
        wrong(&by_position.replace("label = 3", "label = 4"), text),
        "t.csv:1: no column `4` (`data.label`); there are 3 columns: `1`, `2`, `3`; without a header columns are named by \
         their positions, from 1"
    );
}

#[test]
fn a_first_line_of_numbers_is_no_header_unless_the_job_says_so() {
    let text = "1,2,0\n3,4,1\n5,6,0\n";
    let told = wrong(PLAIN, text);
    assert!(told.starts_with("t.csv:1: the first line has numbers alone"), "{told}");
    for remedy in ["`data.header = false`", "`data.header = [", "`data.header = true`"] {
        assert!(told.contains(remedy), "{told}");
    }
    let data = "train = \"t.csv\"\nlabel = \"0\"\nheader = true\nshards = 1\nvalid = 0.5";
    let (made, _) = said(data, text.as_bytes());
    assert_eq!(made.unwrap().features, ["1", "2"]);
    let told = wrong(PLAIN, "5.1,3.5,setosa\n4.9,3,virginica\n");
    assert!(told.contains("the first line was taken for the names of the columns"), "{told}");
}

#[test]
fn labels_that_are_equal_as_numbers_are_one_class() {
    let (found, remarks) = said(PLAIN, b"a,y\n1,0\n2,0.0\n3,1\n4,1e0\n5,2\n6,2\n");
    assert_eq!(found.unwrap().classes(), ["0", "1", "2"]);
    assert_eq!(remarks, ["0: [\"0\", \"0.0\"]", "1: [\"1\", \"1e0\"]"]);
    // Labels in one manner keep it, and other data may write them otherwise.
    let dir = folder(&[
        ("t.csv", b"a,y\n1,0.0\n2,1.0\n3,0.0\n".to_vec()),
        ("v.csv", b"a,y\n1,1\n2,0\n".to_vec()),
    ]);
    let data = "train = \"t.csv\"\nlabel = \"y\"\nshards = 1\nvalid = \"v.csv\"";
    let found = made(data, dir.path()).unwrap();
    let names = ["0.0", "1.0"].map(str::to_owned).to_vec();
    assert_eq!(found.manifest.labels, Labels::Classes(names));
    assert_eq!(found.manifest.valid[0].rows, 2);
}

#[test]
fn prices_as_classes_are_a_question() {
    let table: String = (0..50).map(|n| format!("{n},{}.5\n", n % 40)).collect();
    assert_eq!(
        wrong(PLAIN, &format!("a,y\n{table}")),
        "t.csv: column `y`: 40 different numbers with decimals in 50 rows, and each would be a class; are they to be \
         predicted as numbers? then set `training.loss = \"mse\"`"
    );
    let few: String = (0..50).map(|n| format!("{n},{}.5\n", n % 25)).collect();
    assert_eq!(said(PLAIN, format!("a,y\n{few}").as_bytes()).0.unwrap().classes().len(), 25);
}

#[test]
fn numbers_are_read_with_the_signs_of_the_job() {
    let german = "a;b;y\n1,5;1.234,5;u\n-2;7;v\n";
    let data = format!("{PLAIN}\ndecimal = \",\"\nthousands = \".\"");
    assert_eq!(rows(&data, german), [[-2.0, 7.0], [1.5, 1234.5]]);
    let english = "a,b,y\n1.5,\"1,234.5\",u\n-2,7,v\n";
    assert_eq!(rows(&format!("{PLAIN}\nthousands = \",\""), english), [[-2.0, 7.0], [1.5, 1234.5]]);
    let french = "a;b;y\n1,5;1\u{202f}234,5;u\n-2;7;v\n";
    let data = format!("{PLAIN}\ndecimal = \",\"\nthousands = \"no-break space\"");
    assert_eq!(rows(&data, french), [[-2.0, 7.0], [1.5, 1234.5]]);
    // Without a header, semicolons are the separator though commas are there too.
    let data =
        "train = \"t.csv\"\nlabel = 3\nheader = false\nshards = 1\nvalid = 0.5\ndecimal = \",\"";
    assert_eq!(rows(data, "1,5;2,5;0\n3;4;1\n"), [[1.5, 2.5], [3.0, 4.0]]);
    // The advice is what the file is read by.
    let told = wrong(PLAIN, english);
    assert!(told.ends_with("it is 1234.5 by `data.thousands = \",\"`"), "{told}");
    let told = wrong(PLAIN, german);
    let (a, b) = told.split_once('\n').unwrap();
    assert!(a.ends_with("it is 1.5 by `data.decimal = \",\"`"), "{told}");
    let both = "it is 1234.5 by `data.decimal = \",\"` and `data.thousands = \".\"`";
    assert!(b.ends_with(both), "{told}");
    let told = wrong(&format!("{PLAIN}\ndecimal = \",\""), "a;y\n1.5;u\n2;v\n");
    assert!(told.ends_with("`1.5` is no number with a decimal comma"), "{told}");
}

#[test]
fn labels_that_are_numbers_are_read_with_these_signs_too() {
    let read = |text: &str| {
        let job = format!(
            "name = \"t\"\n[data]\n{PLAIN}\ndecimal = \",\"\n[[model]]\narch = \"mlp\"\nhidden = [4]\n[training]\nepochs = 1\n\
             loss = \"mse\"\n"
        );
        let dir = folder(&[("t.csv", text.as_bytes().to_vec())]);
        let spec = jobfile::parse(&job).unwrap();
        let summary = check(&spec, dir.path(), dir.path(), &mut |_| {});
        summary.map(|summary| summary.labels).map_err(|error| super::told(&error))
    };
    assert_eq!(read("a;y\n1;2,5\n2;3\n"), Ok(Labels::Number));
    let told = read("a;y\n1;2,5\n2;3.5\n").unwrap_err();
    assert!(
        told.ends_with("t.csv:3: column `y`: `3.5` is no number with a decimal comma"),
        "{told}"
    );
}

#[test]
fn lines_and_records_end_as_programs_end_them() {
    let expected = [[1.0, 2.0], [3.0, 4.0]];
    for text in [
        "a,b,y\r1,2,u\r3,4,v\r",
        "a,b,y\r1,2,u\r3,4,v",
        "sep=;\na;b;y\n1;2;u\n3;4;v\n",
        "\u{feff}sep=;\r\na;b;y\r\n1;2;u\r\n3;4;v\r\n",
        "\"a\",\"b\",\"y\"\n1,2,\"u\nand more\"\n3,4,\"v\"\n",
        "\"a\nof it\",b,y\n1,2,u\n3,4,v\n",
        "a,b,y,\n1,2,u,\n3,4,v,\n",
        "a,b,y,,\n1,2,u,,\n3,4,v, ,\n",
        "id#,b,y\n1,2,u\n3,4,v\n",
    ] {
        assert_eq!(rows(PLAIN, text), expected, "{text:?}");
    }
    let (made, remarks) = said(PLAIN, b"a,b,y,\n1,2,u,\n3,4,v,\n");
    assert_eq!(made.unwrap().features, ["a", "b"]);
    assert_eq!(remarks, ["t.csv: columns 4 to 4, index: false"]);
    // A cell far to the right of a sheet makes thousands of them.
    let (_, remarks) = said(PLAIN, b"a,b,y,,,,\n1,2,u,,,,\n3,4,v,,,,\n");
    assert_eq!(remarks, ["t.csv: columns 4 to 7, index: false"]);
    assert_eq!(
        wrong(PLAIN, "a,b,y,\n1,2,u,\n3,4,v,5\n"),
        "t.csv:3: column 4 has no name, and it isn't empty throughout, as it would be if lines only ended in a separator; \
         name it, or leave it out: `data.columns = { drop = [4] }`"
    );
    assert_eq!(
        wrong(PLAIN, "a,b,y\n1,2,u,\n"),
        "t.csv:2: 4 values, the header has 3 columns; the line ends in a separator, and the header doesn't"
    );
    assert_eq!(
        wrong(PLAIN, "sep=:\na:b:y\n1:2:u\n"),
        "t.csv:1: the line says that columns are separated by `:`; of separators `,`, `;`, tab and `|` are read"
    );
    assert_eq!(
        wrong(PLAIN, "# made by a script\na,b,y\n1,2,u\n"),
        "t.csv:1: the first line is a comment, and names of columns are wanted; leave such lines out: `grep -v '^#' FILE > \
         NEW_FILE`"
    );
    // The line of a record is its first one.
    let told = wrong(PLAIN, "a,b,y\n1,2,\"u\nx\"\n3,4,v\n5,z,v\n");
    assert!(told.starts_with("t.csv:5: column `b`: `z` is no number"), "{told}");
}

#[test]
fn a_stray_quote_is_told_where_it_is() {
    assert_eq!(
        wrong(PLAIN, "a,b,y\n1,2,u\n3,\"4,v\n5,6,u\n"),
        "t.csv:3: column `b`: a quote that is opened in this line isn't closed"
    );
    assert_eq!(
        wrong(PLAIN, "a,b,y\n1,2,u\n3,4,\"v\n5,6,\"u\n"),
        "t.csv: column `y`: 2 rows have quotes that aren't closed, or text behind them: line 3, line 4"
    );
    let told = wrong(PLAIN, "a,b,y\n1,2,\"u\n3,4\",v\n");
    let closed = "t.csv:2: 4 values, the header has 3 columns; a quote that is opened in this line is closed 1 lines below";
    assert_eq!(told.lines().next(), Some(closed), "{told}");
    let rows = "5,6,u\n".repeat(2000);
    assert_eq!(
        wrong(PLAIN, &format!("a,b,y\n1,\"2,u\n{rows}")),
        "t.csv:2: column `b`: a quote that is opened in this line isn't closed"
    );
}

#[test]
fn the_numbers_of_rows_are_no_feature() {
    for text in [
        ",a,b,y\n0,1,2,u\n1,3,4,v\n",
        "\"\",\"a\",\"b\",\"y\"\n\"1\",1,2,\"u\"\n\"2\",3,4,\"v\"\n",
        ",a,b,y\nfirst,1,2,u\nsecond,3,4,v\n",
    ] {
        let (made, remarks) = said(PLAIN, text.as_bytes());
        assert_eq!(made.unwrap().rows, [[1.0, 2.0], [3.0, 4.0]], "{text:?}");
        assert_eq!(remarks, ["t.csv: columns 1 to 1, index: true"]);
    }
    // Other data may be without them.
    let dir = folder(&[
        ("t.csv", b",a,y\n0,1,u\n1,3,v\n".to_vec()),
        ("v.csv", b"a,y\n5,u\n6,v\n".to_vec()),
    ]);
    let data = "train = \"t.csv\"\nlabel = \"y\"\nshards = 1\nvalid = \"v.csv\"";
    assert_eq!(read(data, &dir).0.unwrap().rows, [[1.0], [3.0], [5.0], [6.0]]);
    // Then a position means two columns.
    let dir = folder(&[
        ("t.csv", b",a,b,y\n0,1,2,u\n1,3,4,v\n".to_vec()),
        ("v.csv", b"a,b,y\n5,6,u\n7,8,v\n".to_vec()),
    ]);
    let told = read(&format!("{data}\ncolumns = {{ drop = [2] }}"), &dir).0.unwrap_err();
    assert!(told.contains("leave out `b` here and `a` of `t.csv`"), "{told}");
}

#[test]
fn columns_are_left_out_by_name_position_and_pattern_whatever_they_hold() {
    let text = b"id,note_1,a,note_2,,a,y\n1,x,1,\"\n\",?,,u\n2,\xff,3,,NA,z,v\n";
    let with = |drop: &str| format!("{PLAIN}\ncolumns = {{ drop = [{drop}] }}");
    let (made, remarks) = said(&with("\"id\", \"note_*\", 5, 6"), text);
    let made = made.unwrap();
    assert_eq!(
        (made.features.clone(), made.rows),
        (vec!["a".to_owned()], vec![vec![1.0], vec![3.0]])
    );
    assert_eq!(remarks, [""; 0]);
    let told = |drop: &str| refused(&with(drop), &[("t.csv", text.to_vec())]);
    assert_eq!(
        told("\"id\", \"note_*\", 5"),
        "t.csv:1: column `a` is there twice, as number 3 and 6"
    );
    assert_eq!(
        told("\"id\", \"note_*\", 6"),
        "t.csv:1: column 5 has no name; name it, or leave it out: `data.columns = { drop = [5] }`"
    );
    assert_eq!(told("8"), "t.csv:1: no column 8 (`data.columns`); there are 7");
    assert!(told("\"nota_*\"").starts_with("t.csv:1: no column `nota_*` (`data.columns`)"));
}

#[test]
fn rows_to_predict_are_read_as_those_were_that_the_model_was_trained_on() {
    let read = |dialect: &str, features: &[&str], label: &str, text: &str| {
        let job = format!(
            "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"{label}\"\n{dialect}\n[[model]]\narch = \"mlp\"\nhidden = [1]\n[training]\nepochs = 1\n"
        );
        let dialect: Dialect = jobfile::parse(&job).unwrap().data.dialect;
        let dir = folder(&[("t.csv", text.as_bytes().to_vec())]);
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
        let source = SourceSpec {
            data: "t.csv".into(),
            features: None,
            label: Some(label.to_owned()),
            labels: None,
        };
        let reader = Reader::open(&source, &options, &mut |_| {}).map_err(|error| told(&error))?;
        let mut rows = reader.rows().unwrap();
        let mut found = Vec::new();
        while let Some(row) = rows.next_row().map_err(|error| told(&error))? {
            let label = row.label.map(|label| String::from_utf8_lossy(label).into_owned());
            found.push((row.numbers.to_vec(), label));
        }
        Ok::<_, String>(found)
    };
    let label = |text: &str| Some(text.to_owned());
    let whole = vec![(vec![1.0, 2.0], label("u")), (vec![3.0, 4.0], label(""))];
    let bare = vec![(vec![1.0, 2.0], None), (vec![3.0, 4.0], None)];
    let by_position = "header = false";
    assert_eq!(read(by_position, &["1", "2"], "3", "1,2,u\n3,4,\n"), Ok(whole.clone()));
    assert_eq!(read(by_position, &["1", "2"], "3", "1,2\n3,4\n"), Ok(bare.clone()));
    let named = "header = [\"y\", \"a\", \"b\"]";
    assert_eq!(read(named, &["a", "b"], "y", "u,1,2\n,3,4\n"), Ok(whole));
    assert_eq!(read(named, &["a", "b"], "y", "1,2\n3,4\n"), Ok(bare));
    let told = read(by_position, &["2", "3"], "1", "1,2\n3,4\n").unwrap_err();
    assert!(told.contains("no column `3`") && told.contains("must be there too"), "{told}");
    // The separator is that which makes as many columns as the model knows.
    let smiths = "Smith, J;3;u\nDoe, K;4;v\n";
    let found = vec![(vec![3.0], label("u")), (vec![4.0], label("v"))];
    assert_eq!(read(by_position, &["2"], "3", smiths), Ok(found.clone()));
    assert_eq!(read("header = [\"n\", \"a\", \"y\"]", &["a"], "y", smiths), Ok(found));
    // Names that are numbers, as pandas writes them, are there where the model knows them.
    assert_eq!(read("", &["0", "1"], "y", "0,1\n5,6\n"), Ok(vec![(vec![5.0, 6.0], None)]));
    let twice = read("", &["a"], "y", "a,b,a,y\n1,2,3,u\n").unwrap_err();
    assert!(twice.contains("column `a` is there twice"), "{twice}");
    let signs = "decimal = \",\"";
    assert_eq!(read(signs, &["a"], "y", "a;y\n1,5;u\n"), Ok(vec![(vec![1.5], label("u"))]));
    // A label that the model may not know is no missing one.
    assert_eq!(read("", &["a"], "y", "a;y\n1;NA\n"), Ok(vec![(vec![1.0], label("NA"))]));
    assert_eq!(
        read("", &["a"], "y", "a;y\n1,5;u\n"),
        Err("t.csv:2: column `a`: `1,5` is no number with a decimal point".to_owned())
    );
}

#[test]
fn text_in_other_encodings_gives_the_same_shards() {
    let text = "größe,color,y\n1,weiß,gut\n2,grün,übel\n3,weiß,gut\n4,grün,übel\n";
    let latin: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let units = |text: &str, big: bool| -> Vec<u8> {
        let bytes = |unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() };
        text.encode_utf16().flat_map(bytes).collect()
    };
    let marked = format!("\u{feff}{text}");
    let with = |file: &str, encoding: &str| {
        let key = if encoding.is_empty() {
            String::new()
        } else {
            format!("encoding = \"{encoding}\"\n")
        };
        format!(
            "train = \"{file}\"\nlabel = \"y\"\nshards = 1\n{key}categories = {{ color = \"one-hot\" }}"
        )
    };
    let files = [
        ("t.csv", text.as_bytes().to_vec()),
        ("marked.csv", marked.as_bytes().to_vec()),
        ("latin.csv", latin.clone()),
        ("latin.csv.gz", gzip(&latin)),
        ("utf16.csv", units(&marked, false)),
        ("big.csv", units(&marked, true)),
        ("bare.csv", units(text, false)),
        ("odd.csv", [units(&marked, false), vec![0]].concat()),
    ];
    let dir = folder(&files);
    let read = |file: &str, encoding: &str| {
        made(&with(file, encoding), dir.path()).map(|made| made.manifest).map_err(|e| told(&e))
    };
    let expected = read("t.csv", "").unwrap();
    assert_eq!(expected.features, ["größe", "color=grün", "color=weiß"]);
    for (file, encoding) in [
        ("marked.csv", "windows-1252"),
        ("latin.csv", "latin-1"),
        ("latin.csv", "windows-1252"),
        ("latin.csv.gz", "windows-1252"),
        ("utf16.csv", "utf-16"),
        ("big.csv", "utf-16"),
        ("bare.csv", "utf-16"),
    ] {
        assert_eq!(read(file, encoding).unwrap(), expected, "{file}");
    }
    let no_text = "the text isn't `utf-16`, which `data.encoding` says";
    assert_eq!(read("odd.csv", "utf-16").unwrap_err(), format!("odd.csv: {no_text}"));
    assert_eq!(
        read("utf16.csv", "").unwrap_err(),
        "utf16.csv: the text is UTF-16, which `data.encoding = \"utf-16\"` reads"
    );
    assert_eq!(
        read("latin.csv", "").unwrap_err(),
        "latin.csv:1: the text isn't UTF-8; `data.encoding` says another encoding, such as \"windows-1252\", the usual one \
         of Windows"
    );
}
