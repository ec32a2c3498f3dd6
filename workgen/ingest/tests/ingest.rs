//! Files in, shards out: what is made, that it is the same everywhere, and what bad data is told.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use sojourn_codec::decode;
use sojourn_ingest::{IngestError, Ingested, Progress, check, ingest};
use sojourn_protocol::{
    digest::Digest,
    jobfile,
    manifest::{LabelScaling, Labels, Scaling, Shard, Targets},
    spec::JobSpec,
};
use std::{collections::BTreeMap, error::Error, fs, path::Path};
use tempfile::TempDir;

/// A job over files that the test writes; `extra` are lines for `[data]`.
fn job(extra: &str) -> JobSpec {
    job_with(extra, "")
}

fn job_with(data: &str, training: &str) -> JobSpec {
    let text = format!(
        "name = \"t\"\nseed = 7\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n{data}\n\
         [[model]]\narch = \"mlp\"\nhidden = [4]\n[training]\nepochs = 1\n{training}"
    );
    jobfile::parse(&text).unwrap()
}

/// `rows` rows of two features: `x0` is the row's number, `x1` is constant, `y` is `x0 % 3`.
fn rows(range: std::ops::Range<u32>) -> String {
    range.map(|i| format!("{i},0.1,{}\n", i % 3)).collect()
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn make(spec: &JobSpec, files: &[(&str, &str)]) -> Result<(Ingested, TempDir), IngestError> {
    let dir = folder(files);
    let out = TempDir::new().unwrap();
    let made = ingest(spec, dir.path(), out.path(), &mut |_| {});
    let checked = check(spec, dir.path(), dir.path(), &mut |_| {});
    match made {
        Ok(made) => {
            let checked = checked.expect("what can be ingested passes the check");
            let counts =
                |shards: &[Shard]| shards.iter().map(|shard| shard.rows).collect::<Vec<_>>();
            assert_eq!(checked.train, counts(&made.manifest.train));
            assert_eq!(checked.valid, counts(&made.manifest.valid));
            assert_eq!(checked.test, counts(&made.manifest.test));
            assert_eq!(checked.shape, made.manifest.shape);
            assert_eq!(checked.labels, made.manifest.labels);
            Ok((made, out))
        }
        Err(error) => {
            assert_eq!(names(out.path()), Vec::<String>::new(), "nothing half-made is left");
            assert_eq!(told(&checked.unwrap_err()), told(&error), "check says the same");
            Err(error)
        }
    }
}

fn told(error: &dyn Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn refused(spec: &JobSpec, files: &[(&str, &str)]) -> String {
    told(&make(spec, files).expect_err("the data is bad"))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The `x0` values of a shard.
fn first_feature(made: &Ingested, shard: &Shard) -> Vec<f32> {
    let bytes = fs::read(&made.files[&shard.blob.sha256]).unwrap();
    assert_eq!(Digest::of(&bytes), shard.blob.sha256);
    assert_eq!(bytes.len() as u64, shard.blob.bytes);
    let tensors = decode(&bytes).unwrap();
    let x = tensors.iter().find(|tensor| tensor.name == "x").unwrap();
    assert_eq!(x.shape[0], u64::from(shard.rows));
    let width = usize::try_from(x.shape[1]).unwrap() * 4;
    x.data.chunks_exact(width).map(|row| f32::from_le_bytes(row[..4].try_into().unwrap())).collect()
}

#[test]
fn the_seed_of_the_data_deals_the_rows_and_is_the_job_s_where_there_is_none() {
    let csv = format!("x0,x1,y\n{}", rows(0..103));
    let manifest = |seed, data| {
        let mut spec = job("shards = 4\nscale = \"standard\"");
        spec.seed = seed;
        spec.data.seed = data;
        make(&spec, &[("t.csv", &csv)]).unwrap().0.manifest
    };
    assert_eq!(manifest(8, Some(7)), manifest(7, None));
    assert_eq!(manifest(8, Some(7)), manifest(9, Some(7)));
    assert_ne!(manifest(8, None).train, manifest(7, None).train);
}

/// Labels of a shard.
fn labels_of(made: &Ingested, shard: &Shard) -> Vec<i64> {
    let bytes = fs::read(&made.files[&shard.blob.sha256]).unwrap();
    let tensors = decode(&bytes).unwrap();
    let y = tensors.iter().find(|tensor| tensor.name == "y").unwrap();
    y.data.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn stratified_rows_of_each_class_are_in_every_shard_and_split_alike() {
    // Class 1 has 20 rows of 200, all of them at the end; one value is missing.
    let line =
        |n: u32| format!("{n},{},{}\n", if n == 7 { "" } else { "0.1" }, u32::from(n >= 180));
    let csv: String = std::iter::once("x0,x1,y\n".to_owned()).chain((0..200).map(line)).collect();
    for missing in ["mean", "zero"] {
        let keys = format!("shards = 5\nvalid = 0.2\ntest = 0.1\nmissing = \"{missing}\"");
        let spec = job(&format!("{keys}\nstratified = true"));
        let (made, _out) = make(&spec, &[("t.csv", &csv)]).unwrap();
        let of_class = |shards: &[Shard]| -> Vec<(usize, usize)> {
            let count = |labels: &[i64]| labels.iter().filter(|label| **label == 1).count();
            let labels = shards.iter().map(|shard| labels_of(&made, shard));
            labels.map(|labels| (labels.len(), count(&labels))).collect()
        };
        let manifest = &made.manifest;
        let train = of_class(&manifest.train);
        assert!(train.iter().all(|(rows, _)| *rows == 28), "{train:?}");
        assert!(train.iter().all(|(_, rare)| (2..=3).contains(rare)), "{train:?}");
        let all =
            |shards: &[Shard]| of_class(shards).iter().fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        assert_eq!(
            (all(&manifest.train), all(&manifest.valid), all(&manifest.test)),
            ((140, 14), (40, 4), (20, 2))
        );
        let mut seen: Vec<f32> = Vec::new();
        for shard in manifest.train.iter().chain(&manifest.valid).chain(&manifest.test) {
            seen.extend(first_feature(&made, shard));
        }
        seen.sort_by(f32::total_cmp);
        assert!(seen.into_iter().eq((0_u16..200).map(f32::from)));
        let plain = make(&job(&keys), &[("t.csv", &csv)]).unwrap().0;
        assert_ne!(plain.manifest.train, manifest.train);
    }
}

#[test]
fn folds_leave_no_validation_rows() {
    let text = "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshards = 6\ntest = 0.1\n[[model]]\narch = \"mlp\"\nhidden = [4]\n[training]\nepochs = 1\n[search]\nfolds = 3\n";
    let csv = format!("x0,x1,y\n{}", rows(0..100));
    let (made, _out) = make(&jobfile::parse(text).unwrap(), &[("t.csv", &csv)]).unwrap();
    let rows = |shards: &[Shard]| shards.iter().map(|shard| shard.rows).sum::<u32>();
    let manifest = &made.manifest;
    assert_eq!((rows(&manifest.train), manifest.valid.len(), rows(&manifest.test)), (90, 0, 10));
}

/// A table of visits of patients: patient `p` has `visits(p)` rows in a row, whose first feature is the patient's number.
fn visits(patients: u32, visits: impl Fn(u32) -> u32) -> String {
    let of = |patient: u32| {
        let line = |visit: u32| format!("{patient},{patient},{visit},{}\n", (patient + visit) % 3);
        (0..visits(patient)).map(line).collect::<String>()
    };
    format!("id,x0,x1,y\n{}", (0..patients).map(of).collect::<String>())
}

#[test]
fn rows_of_a_group_are_in_one_fold() {
    let csv = visits(60, |patient| 1 + patient % 7);
    let spec = |keys: &str, seed: u64| {
        let text = format!(
            "name = \"t\"\nseed = {seed}\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\ngroups = \"id\"\nseed = {seed}\n{keys}\n[[model]]\narch = \"mlp\"\nhidden = [4]\n[training]\nepochs = 1\n[search]\nfolds = 3\n"
        );
        jobfile::parse(&text).unwrap()
    };
    let mut dealt = Vec::new();
    for (keys, seed) in [
        ("shards = 6\ntest = 0.15", 1),
        ("shards = 7\nmissing = \"mean\"", 1),
        ("shards = 6\ntest = 0.15", 2),
    ] {
        let (made, _out) = make(&spec(keys, seed), &[("t.csv", &csv)]).unwrap();
        let manifest = &made.manifest;
        assert_eq!(manifest.features, ["x0", "x1"], "the group is no feature");
        let mut place: BTreeMap<i64, usize> = BTreeMap::new();
        let mut rows = [0; 4];
        let train = manifest.train.iter().enumerate().map(|(shard, of)| (shard % 3, of));
        for (bucket, shard) in train.chain(manifest.test.iter().map(|of| (3, of))) {
            rows[bucket] += shard.rows;
            for patient in first_feature(&made, shard) {
                let first = *place.entry(patient as i64).or_insert(bucket);
                assert_eq!(first, bucket, "patient {patient} is in two");
            }
        }
        assert_eq!(rows.iter().sum::<u32>(), csv.lines().count() as u32 - 1);
        let (least, most) = (rows[..3].iter().min().unwrap(), rows[..3].iter().max().unwrap());
        assert!(most - least <= 3, "folds are of nearly equal size: {rows:?}");
        let of_fold =
            |fold: usize| manifest.train.iter().skip(fold).step_by(3).map(|shard| shard.rows);
        for fold in 0..3 {
            let (least, most) = (of_fold(fold).min().unwrap(), of_fold(fold).max().unwrap());
            assert!(most - least <= 1, "shards of a fold are alike");
        }
        dealt.push(place);
    }
    assert_ne!(dealt[0], dealt[2], "another seed, other folds");
}

#[test]
fn rows_of_a_group_are_in_one_part() {
    let csv = visits(50, |_| 4);
    let spec =
        job("groups = \"id\"\nshards = 3\nvalid = 0.2\ntest = 0.1\ncolumns = { drop = [\"x1\"] }");
    let (made, _out) = make(&spec, &[("t.csv", &csv)]).unwrap();
    let manifest = &made.manifest;
    let patients = |shards: &[Shard]| -> std::collections::BTreeSet<i64> {
        shards.iter().flat_map(|shard| first_feature(&made, shard)).map(|of| of as i64).collect()
    };
    let (train, valid, test) =
        (patients(&manifest.train), patients(&manifest.valid), patients(&manifest.test));
    assert_eq!((train.len(), valid.len(), test.len()), (35, 10, 5));
    assert!(train.is_disjoint(&valid) && train.is_disjoint(&test) && valid.is_disjoint(&test));
}

#[test]
fn groups_that_cannot_be_kept_together_are_told() {
    let csv = visits(2, |_| 30);
    let three = job("groups = \"id\"\nvalid = 0.2\ntest = 0.1\nshards = 1");
    let told = refused(&three, &[("t.csv", &csv)]);
    assert!(told.contains("2 groups (`data.groups`) are too few: 3 folds or shares"), "{told}");
    let told = refused(&job("groups = \"patient\""), &[("t.csv", &csv)]);
    assert!(told.contains("no column `patient` (`data.groups`)"), "{told}");
    let gap = format!("{csv},5,5,1\n");
    let told = refused(&job("groups = \"id\"\nshards = 1"), &[("t.csv", &gap)]);
    assert!(told.contains("t.csv:62: column `id`:"), "{told}");
    let dropped = job("groups = \"id\"\nshards = 1\nmissing = \"drop-row\"");
    let made = make(&dropped, &[("t.csv", &gap)]).unwrap().0.manifest;
    let rows = made.train.iter().chain(&made.valid).map(|shard| shard.rows).sum::<u32>();
    assert_eq!(rows, 60);
    let arrays = job("groups = \"id\"").data;
    assert_eq!(arrays.groups.as_deref(), Some("id"));
}

#[test]
fn every_row_lands_in_one_shard_with_its_label_and_in_file_order() {
    let csv = format!("x0,x1,y\n{}", rows(0..103));
    let (made, out) = make(&job("shards = 4\ntest = 0.1"), &[("t.csv", &csv)]).unwrap();
    let manifest = &made.manifest;
    assert_eq!(manifest.features, ["x0", "x1"]);
    assert_eq!(manifest.shape, [2]);
    assert_eq!(manifest.labels, Labels::Classes(vec!["0".into(), "1".into(), "2".into()]));
    assert_eq!(manifest.scaling, Scaling::None);
    let counts = |shards: &[Shard]| shards.iter().map(|shard| shard.rows).collect::<Vec<_>>();
    assert_eq!(counts(&manifest.train), [18, 18, 18, 18]);
    assert_eq!(counts(&manifest.valid), [11, 10]);
    assert_eq!(counts(&manifest.test), [10]);
    let mut seen = Vec::new();
    for shard in manifest.train.iter().chain(&manifest.valid).chain(&manifest.test) {
        let values = first_feature(&made, shard);
        assert!(values.is_sorted(), "rows are in file order");
        let bytes = fs::read(&made.files[&shard.blob.sha256]).unwrap();
        let tensors = decode(&bytes).unwrap();
        let y = tensors.iter().find(|tensor| tensor.name == "y").unwrap();
        let labels = y.data.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap()));
        for (value, label) in values.iter().zip(labels) {
            assert_eq!(*value as i64 % 3, label);
        }
        seen.extend(values);
    }
    seen.sort_by(f32::total_cmp);
    assert_eq!(seen, (0..103u8).map(f32::from).collect::<Vec<_>>());
    assert_eq!(names(out.path()).len(), manifest.blobs().count(), "only blobs are left");
}

#[test]
fn digests_stay_and_do_not_depend_on_how_rows_are_spread_over_files() {
    let spec = job("shards = 2\nscale = \"standard\"");
    let whole = format!("x0,x1,y\n{}", rows(0..40));
    let (made, _out) = make(&spec, &[("t.csv", &whole)]).unwrap();
    let digests: Vec<String> = made.manifest.blobs().map(|blob| blob.sha256.short()).collect();
    // Written down once; a change here makes every submitted data set another one.
    assert_eq!(digests, PINNED);

    let parts = [
        ("t.csv/b.csv", format!("x0,x1,y\n{}", rows(11..40))),
        (
            "t.csv/a.CSV",
            format!("\u{feff}x0,x1,\"y\"\r\n{}\r\n", rows(0..11).replace('\n', "\r\n")),
        ),
        ("t.csv/notes.txt", "not data".to_owned()),
    ];
    let parts: Vec<(&str, &str)> =
        parts.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let (again, _out) = make(&spec, &parts).unwrap();
    assert_eq!(again.manifest, made.manifest);
}

const PINNED: [&str; 4] = ["58b9a5e6a39b", "cd741767643d", "c48a58892488", "2e2fb3837e4c"];

#[test]
fn scaling_is_of_the_rows_that_are_trained_on() {
    let csv = format!("x0,x1,y\n{}", rows(0..50));
    let (made, _out) = make(&job("scale = \"standard\""), &[("t.csv", &csv)]).unwrap();
    let Scaling::Standard(blob) = made.manifest.scaling else { panic!("a scaling blob") };
    let bytes = fs::read(&made.files[&blob.sha256]).unwrap();
    let tensors: BTreeMap<String, Vec<f32>> = decode(&bytes)
        .unwrap()
        .iter()
        .map(|tensor| {
            let values = tensor.data.chunks_exact(4);
            let values = values.map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
            (tensor.name.to_string(), values)
        })
        .collect();
    let trained: Vec<f64> = (made.manifest.train.iter())
        .flat_map(|shard| first_feature(&made, shard))
        .map(f64::from)
        .collect();
    let mean = trained.iter().sum::<f64>() / 40.0;
    let variance = trained.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 40.0;
    assert!((f64::from(tensors["mean"][0]) - mean).abs() < 1e-5);
    assert!((f64::from(tensors["std"][0]) - variance.sqrt()).abs() < 1e-5);
    assert_eq!((tensors["mean"][1], tensors["std"][1]), (0.1, 1.0), "a constant feature");
}

#[test]
fn own_files_numbers_as_labels_and_a_shape() {
    let train = format!("x0,x1,y\n{}", rows(0..20));
    let valid = format!("x0,x1,y\n{}", rows(0..7));
    let spec = job_with("valid = \"v.csv\"\nshape = [1, 2]\nshards = 4", "loss = \"mse\"");
    let (made, _out) = make(&spec, &[("t.csv", &train), ("v.csv", &valid)]).unwrap();
    assert_eq!(made.manifest.shape, [1, 2]);
    assert_eq!(made.manifest.labels, Labels::Number);
    assert_eq!(made.manifest.valid.iter().map(|shard| shard.rows).collect::<Vec<_>>(), [4, 3]);
    let bytes = fs::read(&made.files[&made.manifest.valid[0].blob.sha256]).unwrap();
    let tensors = decode(&bytes).unwrap();
    assert_eq!(tensors.iter().map(|tensor| tensor.data.len()).collect::<Vec<_>>(), [32, 16]);
}

#[test]
fn numbers_as_labels_are_scaled_by_the_training_rows_alone() {
    let train: String = (0..20).map(|row| format!("{row},0.1,{}\n", 100 + row)).collect();
    let train = format!("x0,x1,y\n{train}");
    let files = [("t.csv", train.as_str()), ("v.csv", "x0,x1,y\n1,2,9999\n")];
    let with = |data: &str| {
        let data = format!("valid = \"v.csv\"\nshards = 4\n{data}");
        make(&job_with(&data, "loss = \"mse\""), &files).unwrap().0.manifest
    };
    let (standard, none) = (with(""), with("scale_label = \"none\""));
    let std = (399.0f64 / 12.0).sqrt();
    assert_eq!(standard.targets, Targets::Standard(LabelScaling { mean: 109.5, std }));
    assert_eq!(none.targets, Targets::Plain);
    // Shards hold the labels as they are.
    assert_eq!((standard.train, standard.valid), (none.train, none.valid));
    let constant = [("t.csv", "x0,x1,y\n1,2,5\n3,4,5\n5,6,5\n7,8,5\n9,0,5\n")];
    let made = make(&job_with("shards = 1", "loss = \"mse\""), &constant).unwrap().0;
    assert_eq!(
        made.manifest.targets,
        Targets::Standard(LabelScaling { mean: 5.0, std: 1.0 }),
        "nothing is divided by 0"
    );
}

#[test]
fn class_weights_are_those_of_all_training_rows() {
    // Of the 24 rows 16 are of class `a`; the validation file, with others, isn't counted.
    let train: String =
        (0..24).map(|row| format!("{row},{}\n", ["a", "b", "a"][row % 3])).collect();
    let train = format!("x,y\n{train}");
    let files = [("t.csv", train.as_str()), ("v.csv", "x,y\n1,b\n2,b\n3,b\n")];
    let with = |training: &str, shards: u32| {
        let data = format!("valid = \"v.csv\"\nshards = {shards}");
        make(&job_with(&data, training), &files).unwrap().0.manifest.targets
    };
    for shards in [1, 5] {
        let balanced = with("class_weights = \"balanced\"", shards);
        assert_eq!(balanced, Targets::Weighted(vec![0.75, 1.5]), "{shards} shards");
    }
    assert_eq!(with("class_weights = { b = 4 }", 1), Targets::Weighted(vec![1.0, 4.0]));
    assert_eq!(with("", 1), Targets::Plain);
}

#[test]
fn progress_rises_to_the_end() {
    let csv = format!("x0,x1,y\n{}", rows(0..50));
    let dir = folder(&[("t.csv", &csv)]);
    let mut told = Vec::new();
    let mut tell = |progress: Progress<'_>| match progress {
        Progress::Reading { bytes, of } => told.push((bytes, of)),
        other => panic!("nothing is copied: {other:?}"),
    };
    check(&job(""), dir.path(), dir.path(), &mut tell).unwrap();
    assert!(told.is_sorted());
    assert_eq!(told.last(), Some(&(2 * csv.len() as u64, 2 * csv.len() as u64)));
}

#[test]
fn bad_files_are_told_with_file_line_and_column() {
    let spec = job("");
    let one = |text: &str| refused(&spec, &[("t.csv", text)]);
    let good = rows(0..30);
    assert_eq!(one(""), "t.csv: the file is empty");
    assert_eq!(one("x0,x1,y\n"), "t.csv: there is a header and no row");
    assert_eq!(one("x0,x1,y"), "t.csv: there is a header and no row");
    assert_eq!(
        one(&format!("x0,x1,Y\n{good}")),
        "t.csv:1: no column `y` (`data.label`); did you mean `Y`?"
    );
    assert_eq!(
        one(&format!("x0,x1,class\n{good}")),
        "t.csv:1: no column `y` (`data.label`); there are 3 columns: `x0`, `x1`, `class`; the first line was taken for the \
         names of the columns: if it is a row, say `data.header = false`, or give the names, `data.header = [\"a\", \"b\", \
         ...]`; if it is a title above them, leave it out: `tail -n +2 FILE > NEW_FILE`"
    );
    assert_eq!(
        one("x0:x1:y\n1:2:3\n"),
        "t.csv:1: no column `y` (`data.label`); the only one is `x0:x1:y`: what separates columns is said by \
         `data.separator`"
    );
    for (text, what) in
        [(" \n = Robert Boulter = \n", "empty"), ("= Robert Boulter =\n\n", "`= Robert Boulter =`")]
    {
        assert_eq!(
            one(text),
            format!(
                "t.csv:1: the first line is {what}, no names of columns; if this is text, models of your own are trained on it by `data.window`"
            )
        );
    }
    assert_eq!(one("y\n1\n"), "t.csv:1: no feature column beside the label");
    assert_eq!(
        one("x0,,y\n1,2,3\n"),
        "t.csv:1: column 2 has no name; name it, or leave it out: `data.columns = { drop = [2] }`"
    );
    assert_eq!(one("x0,x0,y\n1,2,3\n"), "t.csv:1: column `x0` is there twice, as number 1 and 2");
    assert_eq!(one("x0,x1,y\n1,2,0\n1,2\n"), "t.csv:3: 2 values, the header has 3 columns");
    assert_eq!(
        one("x0,x1,y\n1,2,0\n1,2,3,4\n"),
        "t.csv:3: 4 values, the header has 3 columns; a value with a comma must be in quotes, and decimals need a point"
    );
    assert_eq!(
        one(&format!("x0,x1,y\n{good}7,one,2\n")),
        "t.csv:32: column `x1`: `one` is no number; if `x1` holds words, name it in `data.categories` (`{ x1 = \"one-hot\" }`), or leave it \
         out by `data.columns`"
    );
    let missing = "`data.missing` says what to do about it: `\"drop-row\"` leaves such rows out, `\"zero\"` takes 0, `\"mean\"` the \
                   column's mean";
    assert_eq!(
        one(&format!("x0,x1,y\n{good}7,,2\n7,,2\n")),
        format!("t.csv: column `x1`: 2 values are missing: line 32, line 33; {missing}")
    );
    assert_eq!(
        one(&format!("x0,x1,y\n{good}NaN,1,2\n")),
        format!("t.csv:32: column `x0`: a value is missing (`NaN`); {missing}")
    );
    assert_eq!(
        one(&format!("x0,x1,y\n{good}1,-inf,2\n")),
        "t.csv:32: column `x1`: `-inf` is not finite"
    );
    assert_eq!(
        one(&format!("x0,x1,y\n{good}1,1e40,2\n")),
        "t.csv:32: column `x1`: `1e40` is too large for single precision"
    );
    assert_eq!(
        one("x0,x1,y\n1,2,\n3,4,nan\n"),
        "t.csv: column `y`: no row has a label: it is empty, or a word for what is missing; `data.missing_values` says which \
         words these are"
    );
    assert_eq!(
        one(&format!("x0,x1,y\n{good}1,\"2,1\n")),
        "t.csv:32: column `x1`: a quote that is opened in this line isn't closed"
    );
    assert_eq!(
        one("x0,x1,y\n1,2,a\n3,4,a\n"),
        "t.csv: column `y`: every row has the label `a`; at least two classes are needed"
    );
    assert_eq!(
        one("\u{1f}\u{8b}"),
        "t.csv:1: no column `y` (`data.label`); the only one is `\\u{1f}\\u{8b}`: what separates columns is said by \
         `data.separator`"
    );
    assert_eq!(one("PAR1\n"), "t.csv: the file is a Parquet file, no CSV text");
    let classes: String = (0..65_537).map(|i| format!("1,2,c{i}\n")).collect();
    assert_eq!(
        one(&format!("x0,x1,y\n{classes}")),
        "t.csv:65538: column `y`: over 65536 different labels; for numbers to predict, set `training.loss = \"mse\"`"
    );
}

#[test]
fn binary_and_endless_lines_are_refused() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("t.csv");
    let said = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        told(&check(&job(""), dir.path(), dir.path(), &mut |_| {}).unwrap_err())
    };
    assert_eq!(
        said(b"PK\x03\x04"),
        "t.csv: the file is a ZIP archive or a spreadsheet, no CSV text"
    );
    assert_eq!(said(b"<!DOCTYPE html><p>"), "t.csv: the file is an HTML page, no CSV text");
    assert_eq!(
        said(b"\x93NUMPY\x01\x00"),
        "t.csv: the file isn't CSV, as its name or the files beside it say"
    );
    assert_eq!(
        said(b"\xff\xfex\x00"),
        "t.csv: the text is UTF-16, which `data.encoding = \"utf-16\"` reads"
    );
    assert_eq!(
        said(b"x\xff,y\n1,2\n"),
        "t.csv:1: the text isn't UTF-8; `data.encoding` says another encoding, such as \"windows-1252\", the usual one of Windows"
    );
    assert_eq!(
        said(b"x,y\n1,\xff\n"),
        "t.csv:2: column `y`: the text isn't UTF-8; `data.encoding` says another encoding, such as \"windows-1252\", the usual one of Windows"
    );
    assert_eq!(
        said(&vec![b'1'; 65 << 20]),
        "t.csv:1: a line of over 67108864 bytes; is this a CSV file?"
    );
}

#[test]
fn files_that_are_not_there_and_parts_that_differ() {
    let spec = job("");
    let dir = folder(&[]);
    let path = dir.path().join("t.csv");
    let error = check(&spec, dir.path(), dir.path(), &mut |_| {}).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("`data.train`: there is no file or folder `{}`", path.display())
    );
    fs::create_dir(&path).unwrap();
    let error = check(&spec, dir.path(), dir.path(), &mut |_| {}).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "`data.train`: the folder `{}` holds no `.csv`, `.jsonl`, `.libsvm`, `.tfrecord`, `.parquet`, `.xlsx`, `.npz`, `.h5` or `.safetensors` file, no JPEG, PNG, TIFF or WebP image, and no `.txt` file, \
             which `data.window` would cut",
            path.display()
        )
    );
    let a = format!("x0,x1,y\n{}", rows(0..9));
    assert_eq!(
        refused(&spec, &[("t.csv/a.csv", &a), ("t.csv/b.csv", "x0,y,x1\n1,2,3\n")]),
        "t.csv/b.csv:1: column 2 is `y`, but `x1` in `t.csv/a.csv`"
    );
    assert_eq!(
        refused(&spec, &[("t.csv/a.csv", &a), ("t.csv/b.csv", "")]),
        "t.csv/b.csv: the file is empty"
    );
    assert_eq!(
        refused(&spec, &[("t.csv/a.csv", &a), ("t.csv/b.csv", "x0,x1,y\n1,z,1\n")]),
        "t.csv/b.csv:2: column `x1`: `z` is no number; if `x1` holds words, name it in `data.categories` (`{ x1 = \"one-hot\" }`), or leave it \
         out by `data.columns`"
    );
}

#[test]
fn validation_that_does_not_fit_the_training_data() {
    let spec = job("valid = \"v.csv\"");
    let train = format!("x0,x1,y\n{}", rows(0..9));
    let with = |valid: &str| refused(&spec, &[("t.csv", &train), ("v.csv", valid)]);
    assert_eq!(with("x0,y\n1,2\n"), "v.csv:1: 2 columns, 3 as in `t.csv` are wanted");
    assert_eq!(with("x0,z,y\n1,2,0\n"), "v.csv:1: column 2 is `z`, but `x1` in `t.csv`");
    assert_eq!(with("x0,x1,y\n1,2,0\n1,0\n"), "v.csv:3: 2 values, the header has 3 columns");
    assert_eq!(
        with("x0,x1,y\n1,2,7\n"),
        "v.csv:2: column `y`: the label `7` doesn't occur in the training data"
    );
    assert_eq!(with("x0,x1,y\n"), "v.csv: there is a header and no row");
}

#[test]
fn a_job_that_does_not_fit_the_data() {
    let csv = format!("x0,x1,y\n{}", rows(0..10));
    assert_eq!(
        refused(&job("shape = [1, 3]"), &[("t.csv", &csv)]),
        "`data.shape` [1, 3] has 3 values, but `t.csv` has 2 feature columns"
    );
    assert_eq!(
        refused(&job("shards = 9"), &[("t.csv", &csv)]),
        "`data.shards` is 9, but only 8 of 10 rows are left to train on; at least one row a shard is needed"
    );
    assert_eq!(
        refused(&job_with("", "loss = \"mse\""), &[("t.csv", "x0,x1,y\n1,2,cat\n")]),
        "t.csv:2: column `y`: `cat` is no number, as labels must be with `training.loss = \"mse\"`"
    );
}

#[test]
fn an_output_that_cannot_be_written_leaves_nothing() {
    let csv = format!("x0,x1,y\n{}", rows(0..10));
    let dir = folder(&[("t.csv", &csv), ("taken", "")]);
    let out = dir.path().join("taken").join("out");
    let error = ingest(&job(""), dir.path(), &out, &mut |_| {}).unwrap_err();
    assert!(matches!(error, IngestError::Io { action: "create", .. }), "{error}");
    // A blob's name is taken by a folder: the move fails, and what was moved before goes away again.
    let spec = job("");
    let good = TempDir::new().unwrap();
    let made = ingest(&spec, dir.path(), good.path(), &mut |_| {}).unwrap();
    let last = made.manifest.valid.last().unwrap().blob.sha256.to_string();
    let out = TempDir::new().unwrap();
    fs::create_dir_all(out.path().join(&last).join("full")).unwrap();
    let error = ingest(&spec, dir.path(), out.path(), &mut |_| {}).unwrap_err();
    assert!(matches!(error, IngestError::Io { action: "write", .. }), "{error}");
    assert_eq!(names(out.path()), [last]);
}

#[test]
fn more_shards_than_a_process_may_have_files_open() {
    let csv = format!("x0,x1,y\n{}", rows(0..5000));
    let (made, _out) = make(&job("shards = 3000\nvalid = 0.2"), &[("t.csv", &csv)]).unwrap();
    assert_eq!(made.manifest.train.len(), 3000);
    assert_eq!(made.manifest.valid.len(), 500);
    assert_eq!(made.manifest.train_rows(), 4000);
}
