//! Columns by name from Parquet: rows are those of equal parts, and what can be no column is refused by its name.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a test fails by panicking, and its numbers are small"
)]

use half::f16;
use parquet::{
    basic::{Compression, Encoding},
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
use safetensors::{Dtype, tensor::TensorView};
use sojourn_codec::decode;
use sojourn_ingest::{ColumnReader, ColumnSource, check, ingest};
use sojourn_protocol::{
    column::Column, error::error_chain, jobfile, manifest::DataManifest, spec::JobSpec,
};
use std::{collections::HashMap, fs, io::Write as _, ops::Range, path::Path, sync::Arc};

/// A job of a user's own model over `train`; `more` are further keys of `[data]`.
fn job(train: &str, more: &str) -> JobSpec {
    let text = format!(
        "name = \"t\"\n[data]\ntrain = \"{train}\"\nvalid = 0.25\nshards = 3\n{more}\n\
         [[model]]\narch = \"graph\"\nentry = \"m.py:M\"\n[training]\nepochs = 1\n"
    );
    jobfile::parse(&text).unwrap()
}

fn made(folder: &Path, train: &str, more: &str) -> DataManifest {
    let out = tempfile::tempdir().unwrap();
    ingest(&job(train, more), folder, out.path(), &mut |_| ()).unwrap().manifest
}

/// The message on bad data.
fn refused(folder: &Path, train: &str, more: &str) -> String {
    let out = tempfile::tempdir().unwrap();
    error_chain(&ingest(&job(train, more), folder, out.path(), &mut |_| ()).unwrap_err())
}

/// The values of a column, with the levels of nulls and of lists where there are such.
enum Values {
    Truth(Vec<bool>),
    Int(Vec<i32>),
    Long(Vec<i64>),
    Single(Vec<f32>),
    Double(Vec<f64>),
    Text(Vec<Vec<u8>>),
    Fixed(Vec<Vec<u8>>),
}

type Levelled = (Values, Vec<i16>, Vec<i16>);

/// Values without levels, none of which may be missing.
fn plain(values: Values) -> Levelled {
    (values, Vec::new(), Vec::new())
}

/// Lists, whose level without elements is `empty`, and that of values `full`.
fn lists<T: Clone>(rows: &[Vec<T>], of: fn(Vec<T>) -> Values, empty: i16, full: i16) -> Levelled {
    let (mut levels, mut begins) = (Vec::new(), Vec::new());
    for row in rows {
        levels.extend(vec![if row.is_empty() { empty } else { full }; row.len().max(1)]);
        begins.push(0);
        begins.extend(vec![1; row.len().saturating_sub(1)]);
    }
    (of(rows.concat()), levels, begins)
}

fn write_column(column: &mut SerializedColumnWriter<'_>, (values, levels, begins): &Levelled) {
    let levels = Some(levels.as_slice()).filter(|levels| !levels.is_empty());
    let begins = Some(begins.as_slice()).filter(|begins| !begins.is_empty());
    macro_rules! typed {
        ($type:ty, $values:expr) => {{
            column.typed::<$type>().write_batch($values, levels, begins).unwrap();
        }};
    }
    match values {
        Values::Truth(values) => typed!(BoolType, values),
        Values::Int(values) => typed!(Int32Type, values),
        Values::Long(values) => typed!(Int64Type, values),
        Values::Single(values) => typed!(FloatType, values),
        Values::Double(values) => typed!(DoubleType, values),
        Values::Text(values) => {
            let texts: Vec<ByteArray> = values.iter().cloned().map(ByteArray::from).collect();
            typed!(ByteArrayType, &texts);
        }
        Values::Fixed(values) => {
            let bytes: Vec<FixedLenByteArray> =
                values.iter().cloned().map(FixedLenByteArray::from).collect();
            typed!(FixedLenByteArrayType, &bytes);
        }
    }
}

/// A file with these columns, and rows in groups.
fn file(schema: &str, groups: &[Vec<Levelled>], properties: WriterProperties) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(&format!("message m {{ {schema} }}")).unwrap());
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).unwrap();
    for group in groups {
        let mut rows = writer.next_row_group().unwrap();
        for values in group {
            let mut column = rows.next_column().unwrap().unwrap();
            write_column(&mut column, values);
            column.close().unwrap();
        }
        rows.close().unwrap();
    }
    writer.close().unwrap();
    bytes
}

fn properties() -> WriterProperties {
    WriterProperties::builder().build()
}

/// Writes a file of one row group.
fn put(path: &Path, schema: &str, columns: Vec<Levelled>) {
    fs::write(path, file(schema, &[columns], properties())).unwrap();
}

const ROWS: usize = 40;

/// Every type that there is, in another order than that of names.
const SCHEMA: &str = "
    required binary text (string);
    required boolean flag;
    required int32 int8 (integer(8, true));
    optional int32 int16 (integer(16, true));
    required int32 int32;
    required int64 int64;
    required int32 uint8 (integer(8, false));
    required int32 uint16 (integer(16, false));
    required int32 uint32 (integer(32, false));
    required int64 uint64 (integer(64, false));
    required fixed_len_byte_array(2) half (float16);
    required float single;
    required double double;
    required binary raw;
    required fixed_len_byte_array(3) pixel;
    optional group tokens (list) { repeated group list { optional int64 element; } }
    required group old (list) { repeated int32 array; }
    repeated float bare;
    optional group colors (list) { repeated group list { required fixed_len_byte_array(3) element; } }
";

fn text(row: usize) -> Vec<u8> {
    "né".repeat(row % 4).into_bytes()
}

fn tokens(row: usize) -> Vec<i64> {
    (0..row * 3 % 5).map(|at| (row + at) as i64).collect()
}

fn pixel(row: usize) -> Vec<u8> {
    vec![row as u8, 7, 255 - row as u8]
}

fn groups(rows: Range<usize>, group: usize) -> Vec<Vec<Levelled>> {
    let rows: Vec<usize> = rows.collect();
    let of = |rows: &[usize]| {
        let ints = |of: fn(usize) -> i32| Values::Int(rows.iter().map(|row| of(*row)).collect());
        let longs = |of: fn(usize) -> i64| Values::Long(rows.iter().map(|row| of(*row)).collect());
        let long_tokens: Vec<Vec<i64>> = rows.iter().map(|row| tokens(*row)).collect();
        let old: Vec<Vec<i32>> = rows.iter().map(|row| vec![*row as i32; row % 3]).collect();
        let bare: Vec<Vec<f32>> = rows.iter().map(|row| vec![0.5; (row + 1) % 3]).collect();
        let colors: Vec<Vec<Vec<u8>>> = rows.iter().map(|row| vec![pixel(*row); row % 2]).collect();
        let bytes = |of: fn(usize) -> Vec<u8>| rows.iter().map(|row| of(*row)).collect();
        vec![
            plain(Values::Text(bytes(text))),
            plain(Values::Truth(rows.iter().map(|row| row % 2 == 1).collect())),
            plain(ints(|row| -(row as i32))),
            (ints(|row| row as i32 * -300), vec![1; rows.len()], Vec::new()),
            plain(ints(|row| row as i32 - 70_000)),
            plain(longs(|row| row as i64 - 5_000_000_000)),
            plain(ints(|row| 255 - row as i32)),
            plain(ints(|row| 65_535 - row as i32)),
            plain(ints(|row| -1 - row as i32)),
            plain(longs(|row| i64::MAX - row as i64)),
            plain(Values::Fixed(bytes(|row| {
                f16::from_f32(row as f32 / 4.0).to_le_bytes().to_vec()
            }))),
            plain(Values::Single(rows.iter().map(|row| *row as f32 * 0.1).collect())),
            plain(Values::Double(rows.iter().map(|row| *row as f64 * -0.1).collect())),
            plain(Values::Text(bytes(|row| vec![200; row % 6]))),
            plain(Values::Fixed(bytes(pixel))),
            lists(&long_tokens, Values::Long, 1, 3),
            lists(&old, Values::Int, 0, 1),
            lists(&bare, Values::Single, 0, 1),
            lists(&colors, Values::Fixed, 1, 2),
        ]
    };
    rows.chunks(group).map(of).collect()
}

/// The same rows as a part.
fn part(path: &Path) {
    let dense = |of: &dyn Fn(usize) -> Vec<u8>| (0..ROWS).flat_map(of).collect::<Vec<u8>>();
    let mut tensors: Vec<(&str, Dtype, Vec<usize>, Vec<u8>)> = vec![
        ("flag", Dtype::BOOL, vec![ROWS], dense(&|row| vec![(row % 2) as u8])),
        ("int8", Dtype::I8, vec![ROWS], dense(&|row| (-(row as i8)).to_le_bytes().into())),
        ("int16", Dtype::I16, vec![ROWS], dense(&|row| (row as i16 * -300).to_le_bytes().into())),
        ("int32", Dtype::I32, vec![ROWS], dense(&|row| (row as i32 - 70_000).to_le_bytes().into())),
        (
            "int64",
            Dtype::I64,
            vec![ROWS],
            dense(&|row| (row as i64 - 5_000_000_000).to_le_bytes().into()),
        ),
        ("uint8", Dtype::U8, vec![ROWS], dense(&|row| vec![255 - row as u8])),
        (
            "uint16",
            Dtype::I32,
            vec![ROWS],
            dense(&|row| (65_535 - row as i32).to_le_bytes().into()),
        ),
        (
            "uint32",
            Dtype::I64,
            vec![ROWS],
            dense(&|row| (4_294_967_295 - row as i64).to_le_bytes().into()),
        ),
        (
            "uint64",
            Dtype::I64,
            vec![ROWS],
            dense(&|row| (i64::MAX - row as i64).to_le_bytes().into()),
        ),
        (
            "half",
            Dtype::F16,
            vec![ROWS],
            dense(&|row| f16::from_f32(row as f32 / 4.0).to_le_bytes().into()),
        ),
        ("single", Dtype::F32, vec![ROWS], dense(&|row| (row as f32 * 0.1).to_le_bytes().into())),
        ("double", Dtype::F64, vec![ROWS], dense(&|row| (row as f64 * -0.1).to_le_bytes().into())),
        ("pixel", Dtype::U8, vec![ROWS, 3], dense(&pixel)),
    ];
    let mut ragged = |name: [&'static str; 2],
                      dtype,
                      inner: &[usize],
                      bytes: usize,
                      of: &dyn Fn(usize) -> Vec<u8>| {
        let data = dense(of);
        let ends = dense(&|row| {
            let upto: usize = (0..=row).map(|row| of(row).len()).sum();
            ((upto / bytes) as i64).to_le_bytes().into()
        });
        let shape = std::iter::once(data.len() / bytes).chain(inner.iter().copied()).collect();
        tensors.push((name[0], dtype, shape, data));
        tensors.push((name[1], Dtype::I64, vec![ROWS], ends));
    };
    ragged(["text", "text.ends"], Dtype::U8, &[], 1, &text);
    ragged(["raw", "raw.ends"], Dtype::U8, &[], 1, &|row| vec![200; row % 6]);
    ragged(["tokens", "tokens.ends"], Dtype::I64, &[], 8, &|row| {
        tokens(row).into_iter().flat_map(i64::to_le_bytes).collect()
    });
    ragged(["old", "old.ends"], Dtype::I32, &[], 4, &|row| {
        (row as i32).to_le_bytes().repeat(row % 3)
    });
    ragged(["bare", "bare.ends"], Dtype::F32, &[], 4, &|row| {
        0.5f32.to_le_bytes().repeat((row + 1) % 3)
    });
    ragged(["colors", "colors.ends"], Dtype::U8, &[3], 3, &|row| pixel(row).repeat(row % 2));
    let views = tensors.iter().map(|(name, dtype, shape, data)| {
        (*name, TensorView::new(*dtype, shape.clone(), data).unwrap())
    });
    let mark: HashMap<String, String> = [("sojourn.columns".to_owned(), "1".to_owned())].into();
    fs::write(path, safetensors::serialize(views, Some(mark)).unwrap()).unwrap();
}

#[test]
fn rows_are_those_of_equal_parts_however_the_file_is_written() {
    let folder = tempfile::tempdir().unwrap();
    part(&folder.path().join("rows.safetensors"));
    let parts = made(folder.path(), "rows.safetensors", "");
    assert_eq!(parts.columns.len(), 19);
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let tiny = WriterProperties::builder()
        .set_data_page_row_count_limit(3)
        .set_write_batch_size(3)
        .set_compression(Compression::SNAPPY)
        .build();
    let second = WriterProperties::builder().set_writer_version(WriterVersion::PARQUET_2_0).build();
    let deltas = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_column_encoding("text".into(), Encoding::DELTA_BYTE_ARRAY)
        .set_column_encoding("raw".into(), Encoding::DELTA_LENGTH_BYTE_ARRAY)
        .set_column_encoding("int64".into(), Encoding::DELTA_BINARY_PACKED)
        .build();
    let of = |group, properties| file(SCHEMA, &groups(0..ROWS, group), properties);
    write("plain.parquet", &of(1000, properties()));
    write("groups.parquet", &of(7, properties()));
    write("pages.parquet", &of(1000, tiny));
    write("second.parquet", &of(30, second));
    write("deltas.parquet", &of(30, deltas));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(&of(9, properties())).unwrap();
    write("packed.parquet.gz", &packed.finish().unwrap());
    write("unnamed", &of(1000, properties()));
    write("folder/a.parquet", &file(SCHEMA, &groups(0..13, 5), properties()));
    write("folder/b.parquet", &file(SCHEMA, &groups(13..ROWS, 50), properties()));
    for name in [
        "plain.parquet",
        "groups.parquet",
        "pages.parquet",
        "second.parquet",
        "deltas.parquet",
        "packed.parquet.gz",
        "unnamed",
        "folder",
    ] {
        assert_eq!(made(folder.path(), name, ""), parts, "{name}");
    }
    let checked = check(&job("folder", ""), folder.path(), folder.path(), &mut |_| ()).unwrap();
    assert_eq!(checked.columns, parts.columns);
    let short = "length = { tokens = 2 }";
    let cut = made(folder.path(), "plain.parquet", short);
    assert_eq!(cut, made(folder.path(), "rows.safetensors", short));
    assert_ne!(cut, parts);
}

#[test]
fn a_job_chooses_columns_of_parquet_alone() {
    let folder = tempfile::tempdir().unwrap();
    part(&folder.path().join("rows.safetensors"));
    let bytes = file(SCHEMA, &groups(0..ROWS, 9), properties());
    fs::write(folder.path().join("rows.parquet"), bytes).unwrap();
    let names = |more: &str| -> Vec<String> {
        let columns = made(folder.path(), "rows.parquet", more).columns;
        columns.into_iter().map(|column| column.name).collect()
    };
    assert_eq!(names("columns = { use = [\"tokens\", \"flag\"] }"), ["flag", "tokens"]);
    let all = names("");
    let dropped = names("columns = { drop = [\"flag\"] }");
    assert_eq!(dropped.len(), all.len() - 1);
    assert!(!dropped.contains(&"flag".to_owned()));
    let text = refused(folder.path(), "rows.parquet", "columns = { use = [\"tokns\"] }");
    assert_eq!(text, "rows.parquet: no column `tokns` (`data.columns`); did you mean `tokens`?");
    let every = format!("columns = {{ drop = {all:?} }}");
    let text = refused(folder.path(), "rows.parquet", &every);
    assert_eq!(text, "rows.parquet: no column is left (`data.columns`)");
    fs::rename(folder.path().join("rows.safetensors"), folder.path().join("rows")).unwrap();
    let text = refused(folder.path(), "rows", "columns = { use = [\"tokens\"] }");
    assert!(text.contains("`data.columns` is for tables"), "{text}");
}

#[test]
fn columns_that_can_be_none_are_refused_by_name_unless_they_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let ints = || plain(Values::Int((0..8).collect()));
    let listed = |levels: i16| lists(&vec![vec![1, 2]; 8], Values::Int, 0, levels);
    let listed_texts = lists(&vec![vec![b"a".to_vec()]; 8], Values::Text, 0, 1);
    let schema = "required int32 a; required int32 day (date); required int64 at (timestamp(micros, true)); \
        required int32 price (decimal(5, 2)); required int32 `my col`; required int32 __index_level_0__; \
        required group nested { required int32 b; required int32 c; } \
        required group map (map) { repeated group key_value { required int32 key; required int32 value; } } \
        required group words (list) { repeated binary array (string); } \
        required group deep (list) { repeated group list { required group element (list) { repeated int32 array; } } } \
        required group records (list) { repeated group list { required int32 x; required int32 y; } }";
    let columns = vec![
        ints(),
        ints(),
        plain(Values::Long((0..8).collect())),
        ints(),
        ints(),
        ints(),
        ints(),
        ints(),
        listed(1),
        listed(1),
        listed_texts,
        lists(&vec![vec![1]; 8], Values::Int, 0, 2),
        listed(1),
        listed(1),
    ];
    // The parser of schemas takes no blanks in names.
    let schema = schema.replace("`my col`", "my-col");
    put(&folder.path().join("t.parquet"), &schema, columns);
    let order = [
        ("__index_level_0__", "it is the index of a data frame"),
        ("at", "it holds dates or times (write them as numbers), which can be no column"),
        ("day", "it holds dates or times (write them as numbers), which can be no column"),
        ("deep", "it holds lists of lists, which can be no column"),
        ("map", "it holds maps, which can be no column"),
        ("my-col", "the name can't be a name in Python"),
        (
            "nested",
            "it holds records (make a column of each of their fields), which can be no column",
        ),
        (
            "price",
            "it holds decimals (write them as floats or whole numbers), which can be no column",
        ),
        ("records", "it holds records"),
        ("words", "it holds lists of strings or bytes, which can be no column"),
    ];
    let text = refused(folder.path(), "t.parquet", "");
    assert!(text.starts_with("t.parquet: column `__index_level_0__`: it is the index"), "{text}");
    for at in 1..order.len() {
        let dropped: Vec<&str> = order[..at].iter().map(|(name, _)| *name).collect();
        let text =
            refused(folder.path(), "t.parquet", &format!("columns = {{ drop = {dropped:?} }}"));
        let (name, why) = order[at];
        assert!(text.starts_with(&format!("t.parquet: column `{name}`: {why}")), "{text}");
        assert!(text.ends_with(&format!("`data.columns = {{ drop = [\"{name}\"] }}`")), "{text}");
    }
    let dropped: Vec<&str> = order.iter().map(|(name, _)| *name).collect();
    let found = made(folder.path(), "t.parquet", &format!("columns = {{ drop = {dropped:?} }}"));
    assert_eq!(found.columns.len(), 1);
}

#[test]
fn nulls_and_numbers_that_do_not_fit_are_refused_with_row_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let said = |schema: &str, column: Levelled| {
        put(&path, schema, vec![column]);
        refused(folder.path(), "t.parquet", "")
    };
    let hint =
        "fill in what is missing, or leave the column out: `data.columns = { drop = [\"a\"] }`";
    let text = said("optional int32 a;", (Values::Int(vec![1, 2]), vec![1, 0, 1], vec![]));
    assert_eq!(text, format!("t.parquet: row 2: column `a`: null; {hint}"));
    let list = "optional group a (list) { repeated group list { optional int32 element; } }";
    let text = said(list, (Values::Int(vec![1, 2]), vec![3, 3, 1, 0], vec![0, 1, 0, 0]));
    assert_eq!(text, format!("t.parquet: row 3: column `a`: null; {hint}"));
    let text = said(list, (Values::Int(vec![1, 2]), vec![3, 1, 3, 2], vec![0, 0, 0, 1]));
    assert_eq!(text, format!("t.parquet: row 3: column `a`: a null in the list; {hint}"));
    let text =
        said("optional binary a (string);", (Values::Text(vec![vec![]]), vec![1, 0], vec![]));
    assert_eq!(text, format!("t.parquet: row 2: column `a`: null; {hint}"));
    let text =
        said("required int64 a (integer(64, false));", plain(Values::Long(vec![i64::MAX, 0, -1])));
    assert!(
        text.starts_with("t.parquet: row 3: column `a`: a number that its type doesn't hold"),
        "{text}"
    );
    let text = said("required float a;", plain(Values::Single(vec![1.0, f32::NAN])));
    assert!(
        text.starts_with("t.parquet: row 2: column `a`: a number is infinite or NaN"),
        "{text}"
    );
}

#[test]
fn parts_with_other_columns_and_jobs_without_own_models_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let parts = folder.path().join("parts");
    fs::create_dir(&parts).unwrap();
    let ints = || plain(Values::Int((0..8).collect()));
    put(&parts.join("a.parquet"), "required int32 a; required int32 b;", vec![ints(), ints()]);
    put(&parts.join("b.parquet"), "required int32 b; required int32 a;", vec![ints(), ints()]);
    assert_eq!(made(folder.path(), "parts", "").columns.len(), 2);
    put(&parts.join("b.parquet"), "required int32 a;", vec![ints()]);
    let text = refused(folder.path(), "parts", "");
    let text_of =
        |what| format!("parts/b.parquet: other columns than in `parts/a.parquet`: {what}");
    assert_eq!(text, text_of("`b` isn't here"));
    let longs = plain(Values::Long((0..8).collect()));
    put(&parts.join("b.parquet"), "required int32 a; required int64 b;", vec![ints(), longs]);
    let text = refused(folder.path(), "parts", "");
    assert_eq!(
        text,
        text_of("`b` is I64 with rows of shape [] here and I32 with rows of shape [] there")
    );
    let mut job = job("parts/a.parquet", "");
    let built_in = jobfile::parse(
        "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = [1]\n\
         [training]\nepochs = 1\n",
    );
    job.models = built_in.unwrap().models;
    let error = check(&job, folder.path(), folder.path(), &mut |_| ()).unwrap_err();
    assert_eq!(
        error_chain(&error),
        "parts/a.parquet: the column of the labels must be named by `data.label`; the columns are `a`, `b`"
    );
}

#[test]
fn one_column_of_tokens_or_text_is_joined_into_windows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let rows = [vec![0, 1, 2], vec![], vec![3], vec![4, 5, 6, 7, 8, 9]];
    let list = "required group ids (list) { repeated group list { required int32 element (integer(8, false)); } }";
    put(&path, list, vec![lists(&rows, Values::Int, 0, 1)]);
    let of_lists = made(folder.path(), "t.parquet", "window = 2");
    assert_eq!(
        (of_lists.columns[0].name.as_str(), of_lists.columns[0].shape.clone()),
        ("tokens", vec![3])
    );
    let texts = rows.iter().map(|row| row.iter().map(|token| *token as u8).collect()).collect();
    put(&path, "required binary text (string);", vec![plain(Values::Text(texts))]);
    assert_eq!(made(folder.path(), "t.parquet", "window = 2"), of_lists);
    let two = vec![plain(Values::Int(vec![1; 9])), plain(Values::Int(vec![1; 9]))];
    put(&path, "required int32 a; required int32 b;", two);
    let text = refused(folder.path(), "t.parquet", "window = 2");
    assert_eq!(
        text,
        "t.parquet: `data.window` takes data with one column alone, of whole numbers: the tokens; \
         `data.columns = { use = [...] }` takes one of several"
    );
    let one = made(folder.path(), "t.parquet", "window = 2\ncolumns = { use = [\"a\"] }");
    assert_eq!(one.columns[0].shape, [3]);
}

/// Data to be read in a folder.
fn source<'a>(folder: &'a Path, data: &'a str) -> ColumnSource<'a> {
    ColumnSource { data, tokenizer: None, base_dir: folder, spool: folder }
}

#[test]
fn a_reader_takes_the_wanted_columns_and_leaves_the_others_aside() {
    let folder = tempfile::tempdir().unwrap();
    let schema = "required int32 day (date); required group tokens (list) { repeated int64 array; } required float x;";
    let tokens: Vec<Vec<i64>> = (0..5).map(tokens).collect();
    let columns = vec![
        plain(Values::Int((0..5).collect())),
        lists(&tokens, Values::Long, 0, 1),
        plain(Values::Single((0..5).map(|row| row as f32).collect())),
    ];
    put(&folder.path().join("t.parquet"), schema, columns);
    let wanted = |name: &str, dtype, longest| Column {
        name: name.into(),
        dtype,
        shape: Vec::new(),
        longest,
        values: None,
        classes: Vec::new(),
        windows: false,
    };
    let columns = [
        wanted("x", sojourn_codec::Dtype::F32, None),
        wanted("tokens", sojourn_codec::Dtype::I64, Some(2)),
        wanted("other", sojourn_codec::Dtype::I64, None),
    ];
    let source = source(folder.path(), "t.parquet");
    let reader = ColumnReader::open(source, &columns, &mut |_| ()).unwrap();
    assert_eq!(reader.columns().len(), 2);
    let mut pass = reader.rows().unwrap();
    let (file, count) = pass.next_shard(3).unwrap().unwrap();
    assert_eq!(count, 3);
    let views = decode(&file).unwrap();
    let names: Vec<&str> = views.iter().map(|view| view.name.as_str()).collect();
    assert_eq!(names, ["tokens", "tokens.ends", "x"]);
    // Rows of 0, 3 and 1 tokens, of which 2 are kept at most.
    assert_eq!(views[1].i64s().unwrap().collect::<Vec<_>>(), [0, 2, 3]);
    assert_eq!(pass.next_shard(3).unwrap().unwrap().1, 2);
    assert!(pass.next_shard(3).unwrap().is_none());
    assert_eq!(pass.bytes_read(), reader.bytes());
    let none = [wanted("other", sojourn_codec::Dtype::I64, None)];
    let error = ColumnReader::open(source, &none, &mut |_| ()).err().unwrap();
    assert!(error.to_string().contains("none of the model's columns: other"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn altered_files_are_rows_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), cut: prop::sample::Index, cuts: bool,
    ) {
        let mut bytes = file(SCHEMA, &groups(0..12, 7), properties());
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cuts {
            bytes.truncate(cut.index(bytes.len()));
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("t.parquet"), bytes).unwrap();
        // Whatever it says, it says it without a panic.
        let _ = check(&job("t.parquet", ""), folder.path(), folder.path(), &mut |_| ());
    }
}
