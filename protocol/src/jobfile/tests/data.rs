//! The keys of `[data]` by kind of file.

use super::*;
use crate::spec::{
    DataSpec, DateFeatures, DecimalSign, Dialect, Header, Notation, OnBad, TextEncoding,
    ThousandsSign,
};

#[test]
fn arrays_need_fewer_words_and_may_need_others() {
    let npz = parse(&SMALL.replace("x.csv", "x.npz").replace("label = \"y\"\n", "")).unwrap();
    assert_eq!((npz.data.label.as_deref(), npz.data.features), (Some("y"), None));
    // The file itself knows its rows' shape.
    let cnn = SMALL.replace("arch = \"mlp\"\nhidden = [8]", "arch = \"cnn\"\nchannels = [8]");
    assert!(
        parse(&cnn.replace("x.csv", "train-images-idx3-ubyte.gz").replace("label = \"y\"", ""))
            .is_ok()
    );
    let keras = SMALL.replace("x.csv", "https://example.org/mnist.npz").replace(
        "label = \"y\"",
        "features = \"x_train\"\nlabel = \"y_train\"\nchannels = \"last\"\n\
         test = { data = \"mnist.npz\", features = \"x_test\", label = \"y_test\" }",
    );
    let data = parse(&keras).unwrap().data;
    assert_eq!((data.features.as_deref(), data.channels), (Some("x_train"), Channels::Last));
    let test = SourceSpec {
        data: "mnist.npz".into(),
        features: Some("x_test".into()),
        label: Some("y_test".into()),
        labels: None,
    };
    assert_eq!(data.test, Some(Split::Source(test)));
}

#[test]
fn rows_may_be_dealt_by_a_seed_of_their_own() {
    let with = |root: &str, data: &str| {
        let text = SMALL.replace("label = \"y\"\n", &format!("label = \"y\"\n{data}\n"));
        parse(&format!("{root}\n{text}")).unwrap()
    };
    // As it is in a stored job: without a word it is the job's.
    let plain = with("seed = 7", "");
    assert_eq!((plain.data.seed, plain.data_seed()), (None, 7));
    assert_eq!(with("seed = 7", "seed = 3").data_seed(), 3);
    // In a job file it is the same for all seeds of the job.
    let named = |root, data| {
        let mut spec = with(root, data);
        spec.name_data_seed();
        let text = serde_json::to_string(&spec.data).unwrap();
        assert_eq!(text.contains("\"seed\""), spec.data.seed.is_some(), "{text}");
        (spec.data.seed, spec.data_seed())
    };
    assert_eq!(named("seed = 7", ""), (Some(0), 0));
    assert_eq!(named("seed = { choice = [8, 9] }", ""), (Some(0), 0));
    assert_eq!(named("seed = 7", "seed = 3"), (Some(3), 3));
    assert_eq!(named("seed = 7", "seed = 7"), (None, 7), "as jobs from before have it");
    assert_eq!(named("", ""), (None, 0), "as jobs from before have it");
    let refused = errors_with("label = \"y\"", "label = \"y\"\nseed = -1");
    assert!(refused.contains("`data.seed`"), "{refused}");
}

#[test]
fn words_about_data_that_do_not_fit_its_kind_are_refused() {
    let with = |train: &str, more: &str| {
        errors_with("train = \"x.csv\"\nlabel = \"y\"", &format!("train = \"{train}\"\n{more}"))
    };
    assert_eq!(
        with("x.csv", "label = \"y\"\nfeatures = \"x\""),
        "5: `data.features` names an array; of a CSV file every column beside the label is a feature, unless `columns` says which are"
    );
    assert_eq!(
        with("x.npz", "labels = \"y.npz\""),
        "4: `data.labels` is the file of labels beside an IDX or NPY file; here the labels are in the same file, and `label` names them"
    );
    assert_eq!(
        with("x-ubyte.gz", "label = \"y\""),
        "4: `data.label` names an array of an NPZ, HDF5 or safetensors file"
    );
    assert_eq!(
        with("x.npz", "channels = \"lst\""),
        "4: `data.channels` is `\"lst\"`; did you mean `last`? one of `first`, `last` is wanted"
    );
    assert_eq!(
        with("s3:///x.npz", "label = \"y\""),
        "3: `data.train` is `\"s3:///x.npz\"`, which names no bucket"
    );
    assert_eq!(
        with("cat.jpg", ""),
        "3: `data.train` is one image; a folder that has a folder of images for each class is wanted"
    );
    assert_eq!(
        with("x.parquet", "separator = \";\""),
        "4: `data.separator` is for CSV files; a Parquet file has its columns apart"
    );
    assert_eq!(
        with("x.parquet", "labels = \"y.npz\""),
        "4: `data.labels` is the file of labels beside an IDX or NPY file; here the labels are in the same file, and `label` names them"
    );
    assert_eq!(
        with("x.npz", "valid = { date = \"v.npz\" }"),
        "4: `data.valid.date` is no known key; did you mean `data`?\n\
         4: `data.valid.data` is missing: a data file, a folder of them, or a URL"
    );
    assert_eq!(
        with("x.npz", "test = [\"v.npz\"]"),
        "4: `data.test` is a list; a share above 0 and below 1, a path or URL, or `{ data = \"...\" }` is wanted"
    );
    assert_eq!(
        with("x.npz", "features = 3"),
        "4: `data.features` is a whole number (`3`); the name of an array is wanted"
    );
    assert_eq!(with("x.npz", "features = \"\""), "4: `data.features` is empty");
}

#[test]
fn stratified_shards_are_of_equal_sizes_and_need_classes() {
    let with = |more: &str| SMALL.replace("label = \"y\"", &format!("label = \"y\"\n{more}"));
    let data = parse(&with("stratified = true")).unwrap().data;
    assert_eq!((data.stratified, data.shard_sizes), (true, Some(ShardSizes::Equal)));
    let data = parse(&with("stratified = false")).unwrap().data;
    assert_eq!((data.stratified, data.shard_sizes), (false, None));
    let refused = |more: &str| errors_with("label = \"y\"", &format!("label = \"y\"\n{more}"));
    let said = refused("stratified = true\nshard_sizes = \"speed\"\nshards = 2");
    assert!(said.contains("`data.stratified` can't go with `shard_sizes = \"speed\"`"), "{said}");
    let text = with("stratified = true").replace("epochs = 2", "epochs = 2\nloss = \"mse\"");
    let said = errors_of(&text);
    assert!(said.contains("`data.stratified` needs labels that are classes"), "{said}");
}

#[test]
fn what_a_table_is_told_is_read_and_checked() {
    let with = |more: &str| SMALL.replace("label = \"y\"", &format!("label = \"y\"\n{more}"));
    let data = parse(&with(
        "separator = \"tab\"\ncolumns = { use = [\"b\", \"a\"] }\nmissing = \"drop-row\"",
    ))
    .unwrap()
    .data;
    assert_eq!(data.separator, Some(Separator::Tab));
    assert_eq!(data.columns, Some(Columns::Use(vec!["b".into(), "a".into()])));
    assert_eq!(data.missing, Missing::DropRow);
    let plain = parse(SMALL).unwrap().data;
    assert_eq!((plain.separator, plain.columns, plain.missing), (None, None, Missing::Refuse));
    let refused = |more: &str| errors_with("label = \"y\"", &format!("label = \"y\"\n{more}"));
    for (more, told) in [
        ("separator = \":\"", "`data.separator` is `\":\"`; one of `,`, `;`, `tab`, `|` is wanted"),
        (
            "missing = \"zeros\"",
            "`data.missing` is `\"zeros\"`; did you mean `zero`? one of `refuse`, `zero`, `mean`, `drop-row` is wanted",
        ),
        (
            "columns = [\"a\"]",
            "`data.columns` is a list; `{ use = [\"...\"] }` or `{ drop = [\"...\"] }` is wanted",
        ),
        (
            "columns = {}",
            "`data.columns` is empty; `use` or `drop` with a list of columns is wanted",
        ),
        (
            "columns = { use = [\"a\"], drop = [\"b\"] }",
            "`data.columns` has `use` and `drop`; one of them says which columns are features",
        ),
        (
            "columns = { drop = [] }",
            "`data.columns.drop` is empty; leave `columns` out if every column is a feature",
        ),
        (
            "columns = { use = [\"y\"] }",
            "`data.columns.use[0]` is `\"y\"`, the label, which is no feature anyway",
        ),
        (
            "columns = { use = [\"a\", \"a\"] }",
            "`data.columns.use[1]` is `\"a\"`, which is there twice",
        ),
        (
            "columns = { used = [\"a\"] }",
            "`data.columns.used` is no known key; did you mean `use`?\n5: `data.columns` is empty; `use` or `drop` with a list of columns is wanted",
        ),
    ] {
        assert_eq!(refused(more), format!("5: {told}"));
    }
    for key in [
        "separator = \";\"",
        "columns = { use = [\"a\"] }",
        "missing = \"zero\"",
        "categories = { a = \"ordinal\" }",
    ] {
        let arrays = SMALL.replace("x.csv", "x.npz").replace("label = \"y\"", key);
        let told = parse(&arrays).unwrap_err().to_string();
        assert!(told.contains("CSV file") || told.contains("table"), "{told}");
    }
}

#[test]
fn columns_of_words_are_read_and_checked() {
    let with = |more: &str| SMALL.replace("label = \"y\"", &format!("label = \"y\"\n{more}"));
    let both = "{ \"the size\" = { ordinal = [\"S\", \"M\"] }, color = \"one-hot\" }";
    let data = parse(&with(&format!("missing = \"mean\"\ncategories = {both}"))).unwrap().data;
    let words = Some(vec!["S".to_owned(), "M".to_owned()]);
    let expected = [
        CategoriesSpec { column: "color".into(), coding: Coding::OneHot, words: None },
        CategoriesSpec { column: "the size".into(), coding: Coding::Ordinal, words },
    ];
    assert_eq!((data.categories.as_slice(), data.missing), (&expected[..], Missing::Mean));
    let refused = |more: &str| errors_with("label = \"y\"", &format!("label = \"y\"\n{more}"));
    for (more, told) in [
        (
            "categories = \"one-hot\"",
            "`data.categories` is a string (`\"one-hot\"`); columns with their coding are wanted, e.g. \
             `{ color = \"one-hot\" }`",
        ),
        ("categories = {}", "`data.categories` is empty; leave it out if no column holds words"),
        (
            "categories = { a = \"onehot\" }",
            "`data.categories.a` is `\"onehot\"`; did you mean `one-hot`? one of `one-hot`, `ordinal` is wanted",
        ),
        (
            "categories = { y = \"ordinal\" }",
            "`data.categories.y` is the label, whose words are classes anyway",
        ),
        (
            "categories = { a = {} }",
            "`data.categories.a` needs `one-hot` or `ordinal`, with a list of words in their order",
        ),
        (
            "categories = { a = { ordinal = [] } }",
            "`data.categories.a.ordinal` is empty; leave the list out to take the words of the training file",
        ),
        (
            "categories = { a = { ordinal = [\"S\", \"S\"] } }",
            "`data.categories.a.ordinal[1]` is `\"S\"`, which is there twice",
        ),
        (
            "categories = { a = { ordinal = [1, 2] } }",
            "`data.categories.a.ordinal[0]` is a whole number (`1`); a word, in quotes, is wanted",
        ),
        (
            "categories = { a = \"ordinal\" }\ncolumns = { drop = [\"a\"] }",
            "`data.categories` has `a`, which `columns` leaves out",
        ),
        (
            "categories = { a = \"ordinal\" }\ncolumns = { use = [\"b\"] }",
            "`data.categories` has `a`, which `columns` leaves out",
        ),
    ] {
        assert_eq!(refused(more), format!("5: {told}"));
    }
}

#[test]
fn numbers_as_labels_are_scaled_unless_the_file_says_otherwise() {
    let regression = SMALL.replace("epochs = 2", "epochs = 2\nloss = \"mse\"");
    let scaled = |text: &str| parse(text).unwrap().data;
    let with =
        |word: &str| regression.replace("label =", &format!("scale_label = \"{word}\"\nlabel ="));
    assert_eq!(scaled(&regression).scale_label, ScaleLabel::Standard);
    assert_eq!(scaled(&with("standard")).scale_label, ScaleLabel::Standard);
    assert_eq!(scaled(&with("none")).scale_label, ScaleLabel::None);
    assert_eq!(scaled(SMALL).scale_label, ScaleLabel::None, "classes");
    assert!(parse(&SMALL.replace("label =", "scale_label = \"none\"\nlabel =")).is_ok());
    // A job that was stored before there was the key is what it was.
    let stored = serde_json::to_string(&scaled(&with("none"))).unwrap();
    assert!(!stored.contains("scale_label"), "{stored}");
    let stored = serde_json::to_string(&scaled(&regression)).unwrap();
    assert!(stored.contains(r#""scale_label":"standard""#), "{stored}");
    assert_eq!(
        errors_with("label =", "scale_label = \"standard\"\nlabel ="),
        "4: `data.scale_label` is `\"standard\"`, which is for labels that are numbers; `training.loss` is `\"cross-entropy\"`, for classes"
    );
}

#[test]
fn a_job_over_the_data_of_another_needs_no_data_and_looks_at_none() {
    let earlier = parse(super::SMALL).unwrap();
    let without = super::SMALL.replace("[data]\ntrain = \"x.csv\"\nlabel = \"y\"\n", "");
    let over = |text: &str| crate::jobfile::parse_over(text, &earlier.data);
    assert_eq!(over(&without).unwrap(), earlier);
    assert!(parse(&without).unwrap_err().to_string().contains("data"));
    let other = super::SMALL.replace("x.csv", "elsewhere.csv").replace("label", "nonsense");
    assert_eq!(over(&other).unwrap(), earlier);
    let error = over(&without.replace("epochs", "epocs")).unwrap_err();
    assert!(error.problems().any(|problem| problem.key().contains("epocs")), "{error}");
}

#[test]
fn columns_of_dates_are_read_and_checked() {
    let with = |more: &str| SMALL.replace("label = \"y\"", &format!("label = \"y\"\n{more}"));
    let dates = parse(&with("dates = { on = \"parts\", \"sold at\" = \"days\" }")).unwrap();
    let expected = [("on", DateFeatures::Parts), ("sold at", DateFeatures::Days)];
    let expected = expected.map(|(name, features)| (name.to_owned(), features));
    assert_eq!(dates.data.dialect.dates, expected.into());
    for (more, told) in [
        (
            "dates = \"days\"",
            "`data.dates` is a string (`\"days\"`); columns with their features are wanted, e.g. `{ sold_on = \"parts\" }`",
        ),
        ("dates = {}", "`data.dates` is empty; leave it out if no column holds dates"),
        ("dates = { y = \"days\" }", "`data.dates.y` is the label, which can be no date"),
        (
            "dates = { a = \"day\" }",
            "`data.dates.a` is `\"day\"`; did you mean `days`? one of `parts`, `days` is wanted",
        ),
        (
            "dates = { a = \"days\" }\ncategories = { a = \"ordinal\" }",
            "`data.dates` has `a`, which `categories` takes as words",
        ),
        (
            "dates = { a = \"days\" }\ncolumns = { drop = [\"a\"] }",
            "`data.dates` has `a`, which `columns` leaves out",
        ),
    ] {
        let found = errors_with("label = \"y\"", &format!("label = \"y\"\n{more}"));
        let found = found.split_once(": ").map_or(found.as_str(), |(_, rest)| rest);
        assert_eq!(found, told, "{more}");
    }
}

#[test]
fn rows_and_images_that_cannot_be_read_are_refused_unless_the_job_says_so() {
    let data = |train: &str, more: &str| {
        let file = format!("train = \"{train}\"\nlabel = \"y\"\n{more}");
        parse(&SMALL.replace("train = \"x.csv\"\nlabel = \"y\"", &file)).map(|spec| spec.data)
    };
    let plain = data("x.csv", "").unwrap();
    assert_eq!((plain.on_bad_row, plain.on_bad_image), (OnBad::Refuse, OnBad::Refuse));
    assert_eq!(data("x.csv", "on_bad_row = \"refuse\"").unwrap(), plain);
    let stored = serde_json::to_string(&plain).unwrap();
    assert!(!stored.contains("on_bad"), "jobs of before are stored as they were: {stored}");
    for file in ["x.csv", "x.parquet", "rows"] {
        let skip = data(file, "on_bad_row = \"skip\"").unwrap();
        assert_eq!(skip.on_bad_row, OnBad::Skip);
        let stored = serde_json::to_string(&skip).unwrap();
        assert!(stored.contains("\"on_bad_row\":\"skip\""), "{stored}");
        assert_eq!(serde_json::from_str::<DataSpec>(&stored).unwrap(), skip);
    }
    assert_eq!(data("images", "on_bad_image = \"skip\"").unwrap().on_bad_image, OnBad::Skip);
    for (file, key, told) in [
        ("x.npz", "on_bad_row", "`data.on_bad_row` is for tables; arrays must hold finite numbers"),
        (
            "x.csv",
            "on_bad_image",
            "`data.on_bad_image` is for a folder of images; `on_bad_row` is for tables",
        ),
    ] {
        let found = data(file, &format!("{key} = \"skip\"")).unwrap_err().to_string();
        assert!(found.contains(told), "{found}");
    }
    let found = data("x.csv", "on_bad_row = \"drop\"").unwrap_err().to_string();
    assert!(found.contains("one of `refuse`, `skip` is wanted"), "{found}");
}

#[test]
fn the_manner_of_writing_a_table_is_read_and_checked() {
    let with = |more: &str| SMALL.replace("label = \"y\"", &format!("label = \"y\"\n{more}"));
    let data = parse(&with(
        "header = [\"a\", \"y\"]\nmissing_values = [\"-\", -999, 0.5]\ndecimal = \",\"\nthousands = \" \"\n\
         columns = { drop = [\"note_*\", 7] }",
    ))
    .unwrap()
    .data;
    let words = ["-", "-999", "0.5"].map(str::to_owned).to_vec();
    let numbers = Notation { decimal: DecimalSign::Comma, thousands: Some(ThousandsSign::Space) };
    let header = Some(Header::Names(vec!["a".into(), "y".into()]));
    assert_eq!(
        data.dialect,
        Dialect { header, missing_values: Some(words), numbers, ..Dialect::default() }
    );
    let dropped = Columns::DropAt { names: vec!["note_*".into()], positions: vec![7] };
    assert_eq!(data.columns, Some(dropped));
    let header = |more: &str| parse(&with(more)).unwrap().data.dialect.header;
    assert_eq!(header("header = false"), Some(Header::Position));
    assert_eq!(header("header = true"), Some(Header::First));
    let encoding =
        |word: &str| parse(&with(&format!("encoding = \"{word}\""))).unwrap().data.dialect.encoding;
    for known in TextEncoding::ALL {
        assert_eq!(encoding(known.text()), known);
    }
    assert!(parse(SMALL).unwrap().data.dialect.is_default());
    let by_position = SMALL.replace("label = \"y\"", "label = 3\nheader = false");
    assert_eq!(parse(&by_position).unwrap().data.label.as_deref(), Some("3"));
    let spaces = parse(&with("thousands = \"\\u202f\"")).unwrap().data.dialect.numbers.thousands;
    assert_eq!(spaces, Some(ThousandsSign::NoBreakSpace));
    let refused = |more: &str| errors_with("label = \"y\"", &format!("label = \"y\"\n{more}"));
    for (more, told) in [
        (
            "header = \"none\"",
            "`data.header` is a string (`\"none\"`); `false` where no line has the names of columns, or a list of these \
             names, is wanted",
        ),
        (
            "header = [\"a\"]",
            "`data.header` has 1 names; from 2 to 1024 are possible, and `false` names columns by their positions",
        ),
        ("header = [\"a\", \"a\"]", "`data.header[1]` is `\"a\"`, which is there twice"),
        ("header = [\"a\", \" b\"]", "`data.header[1]` is empty, or begins or ends with a space"),
        (
            "missing_values = [true]",
            "`data.missing_values[0]` is a boolean (`true`); a word, in quotes, or a number is wanted",
        ),
        (
            "encoding = \"cp1252\"",
            "`data.encoding` is `\"cp1252\"`; one of `utf-8`, `latin-1`, `windows-1252`, `utf-16` is wanted",
        ),
        ("decimal = \";\"", "`data.decimal` is `\";\"`; one of `.`, `,` is wanted"),
        (
            "thousands = \".\"",
            "`data.thousands` is `\".\"`, which is the decimal sign; `data.decimal` says another",
        ),
        (
            "columns = { drop = [0] }",
            "`data.columns.drop[0]` is 0; a whole number from 1 to 1048576 is wanted",
        ),
    ] {
        let found = refused(more);
        let found = found.split_once(": ").map_or(found.as_str(), |(_, rest)| rest);
        assert_eq!(found, told, "{more}");
    }
    let arrays = |more: &str| {
        let file = SMALL
            .replace("x.csv", "x.npz")
            .replace("label = \"y\"", &format!("label = \"y\"\n{more}"));
        parse(&file).unwrap_err().to_string()
    };
    for key in [
        "dates = { a = \"days\" }",
        "missing_values = []",
        "header = false",
        "encoding = \"utf-16\"",
        "decimal = \",\"",
        "thousands = \",\"",
    ] {
        let key_name = key.split(' ').next().unwrap();
        let told = arrays(key);
        let is_told = ["is for ", "names columns of a table"]
            .iter()
            .any(|reason| told.contains(&format!("`data.{key_name}` {reason}")));
        assert!(is_told, "{told}");
    }
}

#[test]
fn groups_are_named_by_a_column_that_is_neither_label_nor_feature() {
    let with = |data: &str, search: &str| {
        let text = SMALL.replace("[data]\n", &format!("[data]\n{data}\n"));
        text.replace("epochs = 2", &format!("epochs = 2\n[search]\n{search}"))
    };
    let label = parse(&with("", "")).unwrap().data.label.unwrap();
    for data in ["groups = \"patient\"", "groups = 3"] {
        let parsed = parse(&with(data, "folds = 3")).unwrap().data;
        assert!(parsed.groups.is_some() && parsed.shard_sizes == Some(ShardSizes::Equal));
        assert_eq!(parsed.group_folds, Some(3));
    }
    let parts = parse(&with("groups = \"patient\"", "repeat = 2")).unwrap().data;
    assert_eq!((parts.groups.as_deref(), parts.group_folds), (Some("patient"), None));
    for (data, told) in [
        (format!("groups = \"{label}\""), "`data.groups` is the label"),
        ("groups = \"\"".to_owned(), "`data.groups` is empty"),
        (
            "groups = \"g\"\ncolumns = { use = [\"g\", \"h\"] }".to_owned(),
            "a model would know the groups by it",
        ),
        (
            "groups = \"g\"\nstratified = true".to_owned(),
            "`data.groups` can't go with `stratified`",
        ),
        (
            "groups = \"g\"\nshards = 2\nshard_sizes = \"speed\"".to_owned(),
            "`data.groups` can't go with `shard_sizes",
        ),
        (
            "groups = \"g\"\nvalid = \"v.csv\"".to_owned(),
            "`data.groups` keeps rows together in one fold",
        ),
    ] {
        let refused = parse(&with(&data, "")).unwrap_err().to_string();
        assert!(refused.contains(told), "{refused}");
    }
}
