//! Tables in Parquet: equal rows are those of a CSV file, and what is in no row is refused by its name.

use super::{folder, job, made, refused, told, write};
use ::parquet::{
    basic::{Compression, Encoding, GzipLevel, ZstdLevel},
    data_type::{
        BoolType, ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
        FloatType, Int32Type, Int64Type,
    },
    file::{
        properties::{WriterProperties, WriterVersion},
        writer::{SerializedColumnWriter, SerializedFileWriter},
    },
    schema::parser::parse_message_type,
};
use proptest::prelude::*;
use sojourn_ingest::{ReadOptions, Reader, check};
use sojourn_protocol::{
    manifest::{DataManifest, Labels},
    spec::{Channels, Dialect, Missing, SourceSpec},
};
use std::sync::Arc;

/// The values of a column, of a row group.
#[derive(Debug, Clone)]
enum Values {
    Truth(Vec<Option<bool>>),
    Int(Vec<Option<i32>>),
    Long(Vec<Option<i64>>),
    Single(Vec<Option<f32>>),
    Double(Vec<Option<f64>>),
    Text(Vec<Option<&'static str>>),
    Fixed(Vec<Option<Vec<u8>>>),
}

impl Values {
    fn write(&self, column: &mut SerializedColumnWriter<'_>) {
        fn split<T: Clone>(values: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
            let levels = values.iter().map(|value| i16::from(value.is_some())).collect();
            (values.iter().flatten().cloned().collect(), levels)
        }
        macro_rules! typed {
            ($type:ty, $values:expr) => {{
                let (values, levels) = split($values);
                column.typed::<$type>().write_batch(&values, Some(&levels), None).unwrap();
            }};
        }
        match self {
            Values::Truth(values) => typed!(BoolType, values),
            Values::Int(values) => typed!(Int32Type, values),
            Values::Long(values) => typed!(Int64Type, values),
            Values::Single(values) => typed!(FloatType, values),
            Values::Double(values) => typed!(DoubleType, values),
            Values::Text(values) => {
                let texts: Vec<Option<ByteArray>> =
                    values.iter().map(|text| text.map(ByteArray::from)).collect();
                typed!(ByteArrayType, &texts);
            }
            Values::Fixed(values) => {
                let bytes: Vec<Option<FixedLenByteArray>> =
                    values.iter().map(|bytes| bytes.clone().map(FixedLenByteArray::from)).collect();
                typed!(FixedLenByteArrayType, &bytes);
            }
        }
    }
}

fn properties() -> WriterProperties {
    WriterProperties::builder().build()
}

/// A file with these columns, and rows in groups.
fn file(schema: &str, groups: &[&[Values]], properties: WriterProperties) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(&format!("message m {{ {schema} }}")).unwrap());
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).unwrap();
    for group in groups {
        let mut rows = writer.next_row_group().unwrap();
        for values in *group {
            let mut column = rows.next_column().unwrap().unwrap();
            values.write(&mut column);
            column.close().unwrap();
        }
        rows.close().unwrap();
    }
    writer.close().unwrap();
    bytes
}

/// So many rows of two classes whose numbers are all the same.
pub(crate) fn equal_rows(rows: usize) -> Vec<u8> {
    let labels = (0..rows).map(|row| Some(if row < rows / 2 { "0" } else { "1" }));
    let columns = [Values::Int(vec![Some(7); rows]), Values::Text(labels.collect())];
    let schema = "required int32 a; required binary y (string);";
    file(schema, &[&columns], properties())
}

/// A row of two classes for each word.
pub(crate) fn words_of(words: &[&'static str]) -> Vec<u8> {
    let labels = (0..words.len()).map(|row| Some(if row % 2 == 0 { "0" } else { "1" }));
    let words = words.iter().map(|word| Some(*word));
    let columns = [Values::Text(words.collect()), Values::Text(labels.collect())];
    let schema = "required binary a (string); required binary y (string);";
    file(schema, &[&columns], properties())
}

const PIXELS: &str = "required int32 a; optional int64 b; required float c; optional double d; \
     required int32 e (integer(8, false)); optional int64 f (decimal(12, 2)); required binary y (string);";

/// The rows of the other formats' files, in groups of so many.
#[expect(clippy::indexing_slicing, reason = "a test fails by panicking")]
fn pixels(rows: std::ops::Range<usize>, group: usize, properties: WriterProperties) -> Vec<u8> {
    const LABELS: [&str; 3] = ["0", "1", "2"];
    let (all, labels) = (write::pixels(), write::labels());
    let rows: Vec<usize> = rows.collect();
    let groups: Vec<Vec<Values>> = rows
        .chunks(group)
        .map(|rows| {
            let at = |column: usize| rows.iter().map(move |row| row * 6 + column);
            let of = |column: usize| at(column).map(|at| all[at]);
            vec![
                Values::Int(of(0).map(|n| Some(i32::from(n))).collect()),
                Values::Long(of(1).map(|n| Some(i64::from(n))).collect()),
                Values::Single(of(2).map(|n| Some(f32::from(n))).collect()),
                Values::Double(of(3).map(|n| Some(f64::from(n))).collect()),
                Values::Int(of(4).map(|n| Some(i32::from(n))).collect()),
                Values::Long(of(5).map(|n| Some(i64::from(n) * 100)).collect()),
                Values::Text(
                    rows.iter().map(|row| Some(LABELS[usize::from(labels[*row])])).collect(),
                ),
            ]
        })
        .collect();
    let groups: Vec<&[Values]> = groups.iter().map(Vec::as_slice).collect();
    file(PIXELS, &groups, properties)
}

#[test]
fn every_way_to_write_a_file_gives_the_blobs_of_a_csv_file() {
    const REST: &str = "\nlabel = \"y\"\nscale = \"standard\"\nshards = 3\ntest = 0.1";
    let all = || 0..write::ROWS;
    let with = |compression| WriterProperties::builder().set_compression(compression).build();
    let encoded = |encoding| {
        let plain = WriterProperties::builder().set_dictionary_enabled(false);
        let plain = plain.set_writer_version(WriterVersion::PARQUET_2_0);
        plain.set_column_encoding("y".into(), encoding).build()
    };
    let tiny = WriterProperties::builder()
        .set_data_page_row_count_limit(5)
        .set_write_batch_size(5)
        .set_compression(Compression::SNAPPY)
        .build();
    let dir = folder(&[
        ("t.csv", write::csv()),
        ("plain.parquet", pixels(all(), 1000, properties())),
        ("groups.parquet", pixels(all(), 7, with(Compression::SNAPPY))),
        ("pages.parquet", pixels(all(), 1000, tiny)),
        ("zstd.parquet", pixels(all(), 1000, with(Compression::ZSTD(ZstdLevel::default())))),
        ("gzip.parquet", pixels(all(), 1000, with(Compression::GZIP(GzipLevel::default())))),
        ("lz4.parquet", pixels(all(), 1000, with(Compression::LZ4_RAW))),
        ("lengths.parquet", pixels(all(), 1000, encoded(Encoding::DELTA_LENGTH_BYTE_ARRAY))),
        ("prefixes.parquet", pixels(all(), 1000, encoded(Encoding::DELTA_BYTE_ARRAY))),
        ("packed.parquet.gz", write::gzip(&pixels(all(), 1000, properties()))),
        ("unnamed", pixels(all(), 1000, properties())),
        ("parts/a.parquet", pixels(0..20, 1000, properties())),
        ("parts/b.parquet", pixels(20..write::ROWS, 9, with(Compression::SNAPPY))),
        ("parts/_SUCCESS", Vec::new()),
    ]);
    let blobs = |data: &str| {
        let data = format!("train = \"{data}\"{REST}");
        let manifest = made(&data, dir.path()).unwrap_or_else(|error| panic!("{data}: {error}"));
        let checked = check(&job(&data), dir.path(), dir.path(), &mut |_| {}).unwrap();
        assert_eq!(checked.features, manifest.manifest.features);
        manifest.manifest
    };
    let expected = blobs("t.csv");
    for data in [
        "plain.parquet",
        "groups.parquet",
        "pages.parquet",
        "zstd.parquet",
        "gzip.parquet",
        "lz4.parquet",
        "lengths.parquet",
        "prefixes.parquet",
        "packed.parquet.gz",
        "unnamed",
        "parts",
    ] {
        assert_eq!(blobs(data), expected, "{data}");
    }
}

const MIXED: &str = "optional double size; optional float age; optional binary color (string); \
     optional boolean old; optional binary note; optional binary y (enum);";

fn mixed() -> Vec<u8> {
    let group: &[Values] = &[
        Values::Double(vec![Some(0.1), None, Some(-2.5e-7), Some(f64::NAN), Some(1e9), Some(7.0)]),
        Values::Single(vec![Some(0.1), Some(3.0), None, Some(16_777_217.0), Some(-0.0), Some(5.5)]),
        Values::Text(vec![Some("red"), Some("blue"), None, Some("red"), Some(""), Some("a, b")]),
        Values::Truth(vec![Some(true), Some(false), Some(true), None, Some(true), Some(false)]),
        Values::Text(vec![None; 6]),
        Values::Text(vec![Some("u"), Some("v"), Some("u"), Some("v"), Some("u"), Some("v")]),
    ];
    file(MIXED, &[group], properties())
}

/// The same as text.
const MIXED_CSV: &str = "size,age,color,old,note,y\n\
    0.1,0.1,red,1,,u\n,3,blue,0,,v\n-0.00000025,,,1,,u\nNaN,16777216,red,,,v\n1e9,-0,,1,,u\n7,5.5,\"a, b\",0,,v\n";

#[test]
fn words_and_missing_values_are_those_of_a_csv_file() {
    let dir = folder(&[("t.csv", MIXED_CSV.into()), ("t.parquet", mixed())]);
    let columns = "columns = { drop = [\"note\"] }\ncategories = { color = \"one-hot\" }";
    let of = |file: &str, more: &str| -> Result<DataManifest, String> {
        let data = format!(
            "train = \"{file}\"\nlabel = \"y\"\nshards = 1\nvalid = 0.3\n{columns}\n{more}"
        );
        made(&data, dir.path()).map(|made| made.manifest).map_err(|error| told(&error))
    };
    for more in ["missing = \"zero\"", "missing = \"mean\"", "missing = \"drop-row\""] {
        let found = of("t.parquet", more);
        assert!(found.is_ok(), "{found:?}");
        assert_eq!(found, of("t.csv", more), "{more}");
    }
    let remedy = "; `data.missing` says what to do about it: `\"drop-row\"` leaves such rows out, `\"zero\"` takes 0, `\"mean\"` \
                  the column's mean";
    assert_eq!(
        of("t.parquet", "").unwrap_err().lines().collect::<Vec<_>>(),
        [
            format!("t.parquet: column `size`: 2 values are missing: row 2, row 4 `NaN`{remedy}"),
            format!("t.parquet: row 3: column `age`: a value is missing{remedy}"),
            format!("t.parquet: column `color`: 2 values are missing: row 3, row 5{remedy}"),
            format!("t.parquet: row 4: column `old`: a value is missing{remedy}"),
        ]
    );
}

#[test]
fn columns_that_can_be_no_row_are_refused_by_name_unless_they_are_left_out() {
    let group: &[Values] = &[
        Values::Int((0..10).map(Some).collect()),
        Values::Int(vec![Some(20_000); 10]),
        Values::Fixed(vec![Some(vec![1, 2, 3]); 10]),
        Values::Text(vec![Some("\u{1}"); 10]),
        Values::Int(vec![Some(1); 10]),
        Values::Int((0..10).map(|n| Some(n % 2)).collect()),
    ];
    let schema = "optional int32 a; optional int32 day (date); optional fixed_len_byte_array(3) id; \
        optional binary raw; required group nested { optional int32 a; } optional int32 y;";
    let bytes = file(schema, &[group], properties());
    let with =
        |columns: &str| format!("train = \"t.parquet\"\nlabel = \"y\"\nshards = 1\n{columns}");
    let said = |columns: &str| refused(&with(columns), &[("t.parquet", bytes.clone())]);
    let what = "which can be no feature and no label; leave it out by `data.columns`";
    let places = (1..=10).map(|row| format!("row {row} `2024-10-04`")).collect::<Vec<_>>();
    assert_eq!(
        said("columns = { drop = [\"id\", \"raw\", \"nested\"] }"),
        format!(
            "t.parquet: column `day`: 10 values are dates, no numbers: {}; `data.dates` (`{{ day = \"parts\" }}`, or \"days\") makes \
             features of it, and `data.columns` leaves it out",
            places.join(", ")
        )
    );
    for (dropped, column, holds) in [
        ("[\"day\"]", "id", "bytes (of type string they are text)"),
        ("[\"day\", \"id\"]", "raw", "bytes (of type string they are text)"),
        ("[\"day\", \"id\", \"raw\"]", "nested", "lists or records"),
    ] {
        assert_eq!(
            said(&format!("columns = {{ drop = {dropped} }}")),
            format!("t.parquet: column `{column}`: it holds {holds}, {what}")
        );
    }
    let dir = folder(&[("t.parquet", bytes.clone())]);
    let made = made(&with("columns = { use = [\"a\"] }"), dir.path()).unwrap().manifest;
    assert_eq!((made.features, made.shape), (vec!["a".to_owned()], vec![1]));
    assert_eq!(
        said("columns = { drop = [\"b\"] }"),
        "t.parquet: no column `b` (`data.columns`); there are 6 columns: `a`, `day`, `id`, `raw`, `nested`, `y`"
    );
}

#[test]
fn dates_and_moments_give_the_shards_of_the_same_text() {
    let group: &[Values] = &[
        Values::Int((0..10).map(|n| Some(20_000 + n)).collect()),
        Values::Long((0..10).map(|n| Some(1_711_890_300_000_000 + 1_800_500_000 * n)).collect()),
        Values::Int((0..10).map(|n| Some(n % 2)).collect()),
    ];
    let schema =
        "optional int32 day (date); optional int64 at (timestamp(micros,true)); optional int32 y;";
    let mut text = "day,at,y\n".to_owned();
    for n in 0..10u32 {
        let (half_hours, rest) = (26 + n, n / 2);
        let millis = if n % 2 == 1 { ".5" } else { "" };
        let (hours, minutes) = (half_hours / 2, 5 + 30 * (half_hours % 2));
        text += &format!(
            "2024-10-{:02},2024-03-31T{hours}:{minutes:02}:{rest:02}{millis}Z,{}\n",
            4 + n,
            n % 2
        );
    }
    let dir = folder(&[
        ("t.parquet", file(schema, &[group], properties())),
        ("t.csv", text.into_bytes()),
    ]);
    for dates in ["{ day = \"parts\", at = \"parts\" }", "{ day = \"days\", at = \"days\" }"] {
        let made = |file: &str| {
            let data = format!("train = \"{file}\"\nlabel = \"y\"\nshards = 1\ndates = {dates}");
            made(&data, dir.path()).unwrap().manifest
        };
        assert_eq!(made("t.parquet"), made("t.csv"), "{dates}");
    }
}

#[test]
fn the_index_of_a_data_frame_is_no_feature_unless_it_is_asked_for() {
    let group: &[Values] = &[
        Values::Int((0..10).map(Some).collect()),
        Values::Int((0..10).map(|n| Some(n % 2)).collect()),
        Values::Long((0..10).map(Some).collect()),
    ];
    let schema = "optional int32 a; optional int32 y; optional int64 __index_level_0__;";
    let bytes = file(schema, &[group], properties());
    let with =
        |columns: &str| format!("train = \"t.parquet\"\nlabel = \"y\"\nshards = 1\n{columns}");
    assert_eq!(
        refused(&with(""), &[("t.parquet", bytes.clone())]),
        "t.parquet: column `__index_level_0__`: it is the index of a data frame; leave it out by `data.columns`, or by \
         `to_parquet(..., index=False)`"
    );
    let dir = folder(&[("t.parquet", bytes)]);
    for (columns, features) in [
        ("columns = { drop = [\"__index_level_0__\"] }", &["a"][..]),
        ("columns = { use = [\"a\", \"__index_level_0__\"] }", &["a", "__index_level_0__"]),
    ] {
        assert_eq!(made(&with(columns), dir.path()).unwrap().manifest.features, features);
    }
}

#[test]
fn labels_are_read_first_and_may_be_numbers_of_any_kind() {
    let group: &[Values] = &[
        Values::Double((0..8).map(|n| Some(f64::from(n) / 4.0)).collect()),
        Values::Double((0..8).map(|n| Some(if n % 2 == 0 { -0.0 } else { 1.5 })).collect()),
    ];
    let bytes = file("required double a; required double y;", &[group], properties());
    let dir = folder(&[("t.parquet", bytes)]);
    let made = made("train = \"t.parquet\"\nlabel = \"y\"\nshards = 1", dir.path()).unwrap();
    assert_eq!(made.manifest.labels, Labels::Classes(vec!["0".into(), "1.5".into()]));
}

#[test]
fn validation_data_and_predictions_find_columns_by_name() {
    let train: &[Values] = &[
        Values::Int((0..10).map(Some).collect()),
        Values::Int((0..10).map(|n| Some(2 * n)).collect()),
        Values::Int((0..10).map(|n| Some(n % 2)).collect()),
    ];
    let schema = "optional int32 a; optional int32 b; optional int32 y;";
    let other = schema.replace("int32 b", "int32 c");
    let dir = folder(&[
        ("t.parquet", file(schema, &[train], properties())),
        ("o.parquet", file(&other, &[train], properties())),
        ("v.csv", b"a,b,y\n1,2,0\n".to_vec()),
    ]);
    let with = |valid: &str| {
        format!("train = \"t.parquet\"\nlabel = \"y\"\nshards = 1\nvalid = \"{valid}\"")
    };
    assert!(made(&with("v.csv"), dir.path()).is_ok());
    let error = made(&with("o.parquet"), dir.path()).unwrap_err();
    assert_eq!(told(&error), "o.parquet: column 2 is `c`, but `b` in `t.parquet`");

    let features = ["b", "a"].map(str::to_owned);
    let source = SourceSpec {
        data: "t.parquet".into(),
        features: None,
        label: Some("y".into()),
        labels: None,
    };
    let options = ReadOptions {
        features: &features,
        channels: Channels::First,
        in_order: &[],
        categories: &[],
        missing: Missing::Refuse,
        fill: &[],
        dialect: &Dialect::default(),
        base_dir: dir.path(),
        spool: dir.path(),
    };
    let reader = Reader::open(&source, &options, &mut |_| {}).unwrap();
    let mut rows = reader.rows().unwrap();
    for n in 0..10u8 {
        let row = rows.next_row().unwrap().unwrap();
        assert_eq!(row.numbers, [f32::from(2 * n), f32::from(n)]);
        assert_eq!(row.label, Some(if n % 2 == 0 { &b"0"[..] } else { b"1" }));
    }
    assert!(rows.next_row().unwrap().is_none());
    assert_eq!(rows.bytes_read(), reader.bytes());
}

#[test]
fn files_that_are_no_whole_parquet_files_are_refused() {
    let good = pixels(0..20, 1000, properties());
    let said =
        |bytes: Vec<u8>| refused("train = \"t.parquet\"\nlabel = \"y\"", &[("t.parquet", bytes)]);
    let damaged =
        |reason: &str| format!("t.parquet: the Parquet data is damaged or cut off ({reason})");
    assert_eq!(said(good[..good.len() - 1].to_vec()), damaged("its end is missing"));
    assert_eq!(said(b"PAR1PAR1".to_vec()), damaged("it is too short"));
    let mut long = good.clone();
    let end = long.len();
    long[end - 6] = 0xff;
    assert_eq!(said(long), damaged("its metadata is larger than it"));
    let mut encrypted = good.clone();
    encrypted[end - 1] = b'E';
    assert_eq!(said(encrypted), "t.parquet: the file is encrypted");
    assert_eq!(
        said(write::csv()),
        "t.parquet: the file isn't Parquet, as its name or the files beside it say"
    );
    assert_eq!(
        refused("train = \"t.csv\"\nlabel = \"y\"", &[("t.csv", good.clone())]),
        "t.csv: the file is a Parquet file, no CSV text"
    );
    assert_eq!(
        refused("train = \"t.parquet\"", &[("t.parquet", good.clone())]),
        "t.parquet: the column of the labels must be named by `data.label`; the columns are `a`, `b`, `c`, `d`, `e`, `f`, `y`"
    );
    assert_eq!(
        refused("train = \"t\"\nlabel = \"y\"\nseparator = \";\"", &[("t", good.clone())]),
        "t: `data.separator` is for CSV files, and this is none"
    );
    assert_eq!(
        refused("train = \"t.parquet\"\nlabel = \"z\"", &[("t.parquet", good)]),
        "t.parquet: no column `z` (`data.label`); there are 7 columns: `a`, `b`, `c`, `d`, `e`, `f`, `y`"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn altered_files_are_rows_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), cut: prop::sample::Index, cuts: bool,
    ) {
        let mut bytes = pixels(0..20, 7, properties());
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cuts {
            bytes.truncate(cut.index(bytes.len()));
        }
        let dir = folder(&[("t.parquet", bytes)]);
        // Whatever it says, it says it without a panic.
        let _ = check(&job("train = \"t.parquet\"\nlabel = \"y\""), dir.path(), dir.path(), &mut |_| {});
    }
}
