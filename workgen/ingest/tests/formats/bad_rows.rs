//! Rows and images that can't be read: left out where the job says so, and all told at once where it doesn't.

use super::{folder, images::plain, job, made, parquet::words_of, refused, told, write::gzip};
use proptest::prelude::*;
use sojourn_ingest::{BadRows, Ingested, Progress, Reason, check, ingest};
use sojourn_protocol::{digest::Digest, jobfile};
use std::{collections::BTreeMap, fmt::Write as _};
use tempfile::TempDir;

/// A number, a word, a date, a truth value and a class.
const MIXED: &str = "train = \"t.csv\"\nlabel = \"y\"\nshards = 2\nvalid = 0.2\nscale = \"standard\"\n\
                     categories = { word = \"one-hot\" }\ndates = { day = \"parts\" }";
const HEADER: &str = "n,word,day,flag,y\n";

/// The data of a job in a folder, and how many rows of how many were left out of each source.
fn skipped(data: &str, dir: &TempDir) -> (Result<Ingested, String>, Vec<(BadRows, u64)>) {
    let out = TempDir::new().unwrap();
    let mut bad = Vec::new();
    let mut tell = |progress: Progress<'_>| {
        if let Progress::Bad { bad: rows, of, .. } = progress {
            bad.push((rows.clone(), of));
        }
    };
    let made = ingest(&job(data), dir.path(), out.path(), &mut tell);
    (made.map_err(|error| told(&error)), bad)
}

fn blobs(made: &Ingested) -> Vec<Digest> {
    made.files.keys().copied().collect()
}

/// Good rows of the table, of which the number is the `n`th.
fn good(n: usize) -> String {
    let word = match n % 3 {
        0 => "red",
        1 => "green",
        _ => "blue",
    };
    let day = 1 + n % 28;
    let flag = n.is_multiple_of(2);
    format!(
        "{n}.5,{word},2024-03-{day:02},{flag},{}\n",
        if (n / 2).is_multiple_of(2) { "a" } else { "b" }
    )
}

/// Rows that can't be read, each for its reason.
const BAD: [(Reason, &[u8]); 14] = [
    (Reason::NoNumber, b"x1,red,2024-03-01,true,a\n"),
    (Reason::OtherNotation, b"\"1,5\",red,2024-03-01,true,a\n"),
    (Reason::DateForNumber, b"2024-03-01,red,2024-03-01,true,a\n"),
    (Reason::NotFinite, b"1e99,red,2024-03-01,true,a\n"),
    (Reason::NoDate, b"1,red,31.3.2024,true,a\n"),
    (Reason::NumberOfValues, b"1,red\n"),
    (Reason::NumberOfValues, b"1,red,2024-03-01,true,a,7\n"),
    (Reason::Quotes, b"1,\"red,2024-03-01,true,a\n"),
    (Reason::Quotes, b"1,\"red\"x,2024-03-01,true,a\n"),
    (Reason::NoText, b"1,gr\xfcn,2024-03-01,true,a\n"),
    (Reason::NoText, b"1,red,2024-03-01,true,\xfc\n"),
    // The first to show a word, and a time: the features of good rows don't have them.
    (Reason::NoNumber, b"x,purple,2024-03-01T13:05,true,c\n"),
    (Reason::NotFinite, b"inf,red,2024-03-01,true,a\n"),
    (Reason::NoTruthValue, b"1,red,2024-03-01,7,a\n"),
];

#[test]
fn rows_that_cannot_be_read_are_left_out_and_counted_by_reason() {
    let (mut dirty, mut clean) = (HEADER.as_bytes().to_vec(), HEADER.to_owned());
    let mut expected: BTreeMap<Reason, u64> = BTreeMap::new();
    // Where no row before it shows that they are truth values, the flag of the first bad row is a number.
    dirty.extend(b"x,red,2024-03-01,1,a\n");
    *expected.entry(Reason::NoNumber).or_default() += 1;
    for n in 0..40 {
        dirty.extend(good(n).as_bytes());
        clean.push_str(&good(n));
        if let Some((reason, row)) = BAD.get(n) {
            dirty.extend(*row);
            *expected.entry(*reason).or_default() += 1;
        }
    }
    let clean = made(MIXED, folder(&[("t.csv", clean.into_bytes())]).path()).unwrap();
    let data = format!("{MIXED}\non_bad_row = \"skip\"");
    let (found, bad) = skipped(&data, &folder(&[("t.csv", dirty.clone())]));
    let found = found.unwrap();
    assert_eq!(found.manifest, clean.manifest);
    assert_eq!(blobs(&found), blobs(&clean));
    assert!(
        !found.manifest.features.iter().any(|name| name == "word=purple" || name == "day.hour")
    );
    let [(bad, of)] = bad.as_slice() else { panic!("{bad:?}") };
    assert_eq!((bad.rows, *of, &bad.reasons), (15, 55, &expected));
    let shown: Vec<String> =
        bad.first.iter().map(|row| format!("{}{}", row.at, row.problem)).take(4).collect();
    assert!(
        shown[0].starts_with("t.csv:2: column `n`: `x` is no number; if `n` holds"),
        "{shown:?}"
    );
    assert!(shown[1].starts_with("t.csv:4: column `n`: `x1` is no number"), "{shown:?}");
    assert_eq!(bad.first.len(), 15);
    // Without the key the file is refused.
    assert!(refused(MIXED, &[("t.csv", dirty.clone())]).contains("line 4 `x1`"));
    // However the rows lie in files.
    let (packed, _) =
        skipped(&data.replace("t.csv", "t.csv.gz"), &folder(&[("t.csv.gz", gzip(&dirty))]));
    assert_eq!(packed.unwrap().manifest, found.manifest);
}

#[test]
fn a_stray_quote_takes_one_line_and_not_those_below() {
    let data = "train = \"t.csv\"\nlabel = \"y\"\nshards = 1\nvalid = 0.5\non_bad_row = \"skip\"";
    let mut text = "a,b,y\n1,2,u\n3,\"4,u\n".to_owned();
    for n in 0..3000 {
        writeln!(text, "{n},{n},v").unwrap();
    }
    // Another quote far below, and one in the last line.
    text.push_str("5,\"6\",u\n7,\"8,v");
    let (made, bad) = skipped(data, &folder(&[("t.csv", text.into_bytes())]));
    let rows: u32 = made.unwrap().manifest.train.iter().map(|shard| shard.rows).sum();
    assert_eq!(rows, 1501, "half of 3002");
    let lines: Vec<_> = bad[0].0.first.iter().map(|row| row.at.line.unwrap()).collect();
    assert_eq!((lines, bad[0].1), (vec![3, 3005], 3004));
}

#[test]
fn a_record_of_several_lines_with_another_number_of_values_is_one_bad_row() {
    let data = "train = \"t.csv\"\nlabel = \"y\"\ncolumns = { drop = [\"note\"] }\nshards = 1\nvalid = 0.5\n\
                on_bad_row = \"skip\"";
    let text = "a,note,y\n1,\"two\nlines\",u\n2,\"x\ny\nz\"\n3,,v\n4,,v\n";
    let (made, bad) = skipped(data, &folder(&[("t.csv", text.as_bytes().to_vec())]));
    assert!(made.is_ok(), "{made:?}");
    assert_eq!((bad[0].0.rows, bad[0].1, bad[0].0.first[0].at.line), (1, 4, Some(4)));
}

#[test]
fn more_than_half_bad_rows_are_another_notation_and_refused() {
    let data = "train = \"t.csv\"\nlabel = \"y\"\nshards = 1\nvalid = 0.5\non_bad_row = \"skip\"";
    let text = "a,y\nx,u\n1,u\n2,v\nz,v\n";
    assert!(skipped(data, &folder(&[("t.csv", text.as_bytes().to_vec())])).0.is_ok(), "half");
    let said = refused(data, &[("t.csv", format!("{text}w,v\n").into_bytes())]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines[0],
        "t.csv: 3 of 5 rows can't be read, and `data.on_bad_row` leaves out at most half: the table is most likely written in \
         another way than the job says"
    );
    assert!(
        lines[1].starts_with("t.csv: column `a`: 3 values are no numbers: line 2 `x`, line 5 `z`, line 6 `w`; if `a` holds"),
        "{said}"
    );
}

#[test]
fn missing_values_and_labels_have_their_own_keys() {
    let data = "train = \"t.csv\"\nlabel = \"y\"\nshards = 1\nvalid = 0.5\non_bad_row = \"skip\"";
    let text = "a,b,y\n1,2,u\n,3,v\n4,x,v\n5,6,\n7,8,v\n9,1,u\n,y,u\n";
    let said = refused(data, &[("t.csv", text.as_bytes().to_vec())]);
    assert!(
        said.starts_with("t.csv:3: column `a`: a value is missing; `data.missing` says"),
        "{said}"
    );
    let (made, bad) = skipped(
        &format!("{data}\nmissing = \"zero\""),
        &folder(&[("t.csv", text.as_bytes().to_vec())]),
    );
    let rows = made.unwrap().manifest;
    assert_eq!(rows.train.iter().chain(&rows.valid).map(|shard| shard.rows).sum::<u32>(), 4);
    assert_eq!((bad[0].0.rows, bad[0].1), (2, 7));
}

#[test]
fn labels_that_are_no_numbers_are_bad_rows_of_a_job_that_predicts_numbers() {
    let text = "a,y\n1,2.5\n2,x\n3,1e99\n4,7\n5,8\n6,9\n";
    let spec = |more: &str| {
        jobfile::parse(&format!(
            "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshards = 1\nvalid = 0.5\n{more}\n\
             [[model]]\narch = \"mlp\"\nhidden = [4]\n[training]\nepochs = 1\nloss = \"mse\"\n"
        ))
        .unwrap()
    };
    let dir = folder(&[("t.csv", text.as_bytes().to_vec())]);
    let mut counted = Vec::new();
    let found = check(&spec("on_bad_row = \"skip\""), dir.path(), dir.path(), &mut |progress| {
        if let Progress::Bad { bad, of, .. } = progress {
            counted.push((bad.rows, of));
        }
    });
    assert_eq!((found.unwrap().train, counted), (vec![2], vec![(2, 6)]));
    let said = told(&check(&spec(""), dir.path(), dir.path(), &mut |_| {}).unwrap_err());
    assert_eq!(
        said,
        "t.csv:3: column `y`: `x` is no number, as labels must be with `training.loss = \"mse\"`\n\
         t.csv:4: column `y`: `1e99` is too large for single precision"
    );
}

#[test]
fn rows_of_validation_data_and_of_parquet_are_left_out_too() {
    let data = "train = \"t.csv\"\nlabel = \"y\"\nvalid = \"v.csv\"\nshards = 1\non_bad_row = \"skip\"\n\
                categories = { c = \"one-hot\" }";
    let files = [
        ("t.csv", b"a,c,y\n1,r,u\n2,g,v\n".to_vec()),
        ("v.csv", b"a,c,y\n1,r,u\n2,blue,v\nx,g,v\n3,g,v\n".to_vec()),
    ];
    let (made, bad) = skipped(data, &folder(&files));
    assert_eq!(made.unwrap().manifest.valid[0].rows, 2);
    assert_eq!((bad.len(), bad[0].0.rows, bad[0].1), (1, 2, 4));
    assert_eq!(bad[0].0.reasons[&Reason::UnknownWord], 1);
    // A label that no row to train on has is no row that can't be read.
    let (other, _) =
        skipped(data, &folder(&[files[0].clone(), ("v.csv", b"a,c,y\n1,r,w\n".to_vec())]));
    assert!(other.unwrap_err().contains("the label `w` doesn't occur"));

    let data =
        "train = \"t.parquet\"\nlabel = \"y\"\nshards = 1\nvalid = 0.5\non_bad_row = \"skip\"";
    let words = ["1", "x", "2.5", "3", "inf"];
    let (made, bad) = skipped(data, &folder(&[("t.parquet", words_of(&words))]));
    assert!(made.is_ok(), "{made:?}");
    let rows: Vec<_> = bad[0].0.first.iter().map(|row| row.at.row.unwrap()).collect();
    assert_eq!((rows, bad[0].1), (vec![2, 5], 5));
}

#[test]
fn images_that_cannot_be_read_are_left_out_and_counted() {
    let data = "train = \"images\"\nshape = [3, 2, 2]\nshards = 1\nvalid = 0.5";
    let whole = |name: &'static str, color| (name, plain([color; 3]));
    let good = [
        whole("images/a/1.png", 1),
        whole("images/a/2.png", 2),
        whole("images/b/1.png", 3),
        whole("images/b/2.png", 4),
    ];
    let cut = plain([5; 3])[..50].to_vec();
    let bad = [
        ("images/a/0.png", cut),
        ("images/a/3.png", Vec::new()),
        ("images/b/3.jpg", b"GIF89a".to_vec()),
        ("images/b/4.gif", b"GIF89a".to_vec()),
    ];
    let clean = made(data, folder(&good).path()).unwrap();
    let all: Vec<_> = good.iter().chain(&bad).cloned().collect();
    let skip = format!("{data}\non_bad_image = \"skip\"");
    let (found, counted) = skipped(&skip, &folder(&all));
    let found = found.unwrap();
    assert_eq!((&found.manifest, blobs(&found)), (&clean.manifest, blobs(&clean)));
    let [(counted, of)] = counted.as_slice() else { panic!("{counted:?}") };
    assert!(counted.are_images());
    assert_eq!((counted.rows, *of), (4, 8));
    let reasons = [(Reason::Empty, 1), (Reason::Damaged, 1), (Reason::OtherFormat, 2)];
    assert_eq!(counted.reasons, reasons.into());
    let said = refused(data, &all);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("images/a/0.png: the PNG image is damaged"), "{said}");
    assert_eq!(
        lines[1..],
        [
            "images/a/3.png: the file is empty",
            "2 files are no images that are read: `images/b/3.jpg`, `images/b/4.gif`",
            "images: `data.on_bad_image = \"skip\"` leaves out what can't be read",
        ]
    );
    let worse: Vec<_> = all.iter().cloned().chain([("images/b/5.png", Vec::new())]).collect();
    let said = refused(&skip, &worse);
    assert!(
        said.starts_with(
            "images: 5 of 9 images can't be read, and `data.on_bad_image` leaves out at most half\n"
        ),
        "{said}"
    );
}

#[test]
fn the_keys_are_for_tables_and_for_folders_of_images() {
    let said = refused(
        "train = \"t.csv\"\nlabel = \"y\"\non_bad_row = \"skip\"\nvalid = { data = \"v\", label = \"y\" }",
        &[
            ("t.csv", b"a,y\n1,u\n2,v\n".to_vec()),
            ("v/x.npz", super::write::npz_of_both(zip::CompressionMethod::Stored)),
        ],
    );
    assert!(
        said.contains(
            "`data.on_bad_row` is for tables (CSV, JSON lines, Parquet, Excel, libsvm and TFRecord), and this is none"
        ),
        "{said}"
    );
    let said = refused(
        "train = \"d\"\nlabel = \"y\"\non_bad_image = \"skip\"",
        &[("d/t.csv", b"a,y\n1,u\n2,v\n".to_vec())],
    );
    assert!(
        said.contains("`data.on_bad_image` is for a folder of images, and this is none"),
        "{said}"
    );
}

#[test]
fn all_problems_of_a_file_are_told_by_column() {
    let data = "train = \"t.csv\"\nlabel = \"y\"\nshards = 1\nvalid = 0.5";
    let text = "a,b,y\n1,2,u\nx,3,v\n4,,v\n5\n6,7,v\ny,8,u\n9,\"1\"x,u\n\"1,5\",z,u\n";
    let said = refused(data, &[("t.csv", text.as_bytes().to_vec())]);
    assert_eq!(
        said.lines().collect::<Vec<_>>(),
        [
            "t.csv: column `a`: 2 values are no numbers: line 3 `x`, line 7 `y`; if `a` holds words, name it in `data.categories` \
             (`{ a = \"one-hot\" }`), or leave it out by `data.columns`",
            "t.csv:4: column `b`: a value is missing; `data.missing` says what to do about it: `\"drop-row\"` leaves such rows \
             out, `\"zero\"` takes 0, `\"mean\"` the column's mean",
            "t.csv:5: 1 values, the header has 3 columns",
            "t.csv:8: column `b`: text after a closing quote",
            "t.csv:9: column `a`: `1,5` is no number with a decimal point; it is 1.5 by `data.decimal = \",\"`",
            "t.csv:9: column `b`: `z` is no number; if `b` holds words, name it in `data.categories` (`{ b = \"one-hot\" }`), or \
             leave it out by `data.columns`",
        ]
    );
    // The first 20, whatever comes behind them.
    let rows = (0..30).map(|n| format!("x{n},{n},u\n")).collect::<String>();
    let said = refused(data, &[("t.csv", format!("a,b,y\n1,1,v\n{rows}").into_bytes())]);
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        lines[0].starts_with("t.csv: column `a`: 20 values are no numbers: line 3 `x0`, line 4"),
        "{said}"
    );
    assert!(lines[0].contains("line 22 `x19`; if"), "{said}");
    assert_eq!(lines[1..], ["t.csv: these are the first 20 problems, and there are more"]);
}

#[test]
fn one_problem_is_told_as_it_was() {
    let data = "train = \"t.csv\"\nlabel = \"y\"\nshards = 1\nvalid = 0.5";
    assert_eq!(
        refused(data, &[("t.csv", b"a,y\n1,u\n2,v\n3\n".to_vec())]),
        "t.csv:4: 1 values, the header has 2 columns"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn shards_are_those_of_the_file_without_its_bad_rows(
        bad in prop::collection::vec((0usize..40, 0usize..BAD.len()), 1..20),
    ) {
        let (mut dirty, mut clean) = (HEADER.as_bytes().to_vec(), HEADER.to_owned());
        for n in 0..40 {
            for (_, which) in bad.iter().filter(|(at, _)| *at == n) {
                // A number in place of a truth value is wrong where there was one before.
                if n > 0 || BAD[*which].0 != Reason::NoTruthValue {
                    dirty.extend(BAD[*which].1);
                }
            }
            dirty.extend(good(n).as_bytes());
            clean.push_str(&good(n));
        }
        let clean = made(MIXED, folder(&[("t.csv", clean.into_bytes())]).path()).unwrap();
        let data = format!("{MIXED}\non_bad_row = \"skip\"");
        let (found, _) = skipped(&data, &folder(&[("t.csv", dirty)]));
        prop_assert_eq!(found.unwrap().manifest, clean.manifest);
    }
}
