//! The problems that data may have. A message says the problem, and what to do about it; the place is said before it.

use super::{SparseProblem, line, remedy, sentence, sides};
use crate::names::listed;
use sojourn_protocol::{
    column::MAX_COLUMNS,
    spec::{DecimalSign, Notation},
};

/// The problem at a [`Place`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum Problem {
    #[error(
        "`data.{0}` is for text in UTF-8, in a file whose name ends in `.txt` or in nothing that is known here, and for \
         columns by name; this is neither"
    )]
    NoText(&'static str),
    #[error("text is cut into windows: say how many tokens, `data.window = 128`")]
    NoWindow,
    #[error(
        "there are {tokens} tokens, and a window of {window} takes {}; add text, or make `data.window` smaller",
        window.saturating_add(1)
    )]
    ShortText { tokens: u64, window: u32 },
    #[error("`data.window` takes data with one column alone, of whole numbers: the tokens{0}")]
    NoTokens(&'static str),
    #[error("a line of over {limit} bytes, which no tokenizer gets as one; break it")]
    LongTextLine { limit: u64 },
    #[error("the file of a tokenizer has over {limit} bytes")]
    LargeTokenizer { limit: u64 },
    #[error("the tokenizer can't be used: {text}; a `tokenizer.json` is wanted", text = line(.0))]
    BadTokenizer(String),
    #[error(
        "other columns than in `{of}`: {difference}",
        of = sentence(.of), difference = sentence(.difference)
    )]
    OtherColumns { of: String, difference: String },
    #[error("this has {0} rows, the columns before it have others")]
    OtherRowsOfColumn(u64),
    #[error(
        "parts of another version of the format; write them again by this version's `sojourn.data.write`"
    )]
    OtherVersion,
    #[error("there are more than {limit} columns")]
    TooManyNames { limit: usize },
    #[error(
        "the header has over {limit} bytes; a part has at most {MAX_COLUMNS} columns, and room for the names of some ten \
         thousand classes"
    )]
    LargeHeader { limit: u64 },
    #[error("the name {text}", text = sentence(.0))]
    BadColumn(String),
    #[error("{text}", text = sentence(.0))]
    BadColumns(String),
    #[error("the ends of its rows aren't whole numbers that grow up to its length")]
    BadEnds,
    #[error("a number is infinite or NaN, or a truth value is neither 0 nor 1")]
    NoNumber,
    #[error(
        "there are no columns by name, which `{text}` has: write it by `sojourn.data.write`, or as Parquet",
        text = line(.0)
    )]
    NoColumns(String),
    #[error(
        "`data.{0}` is for rows of numbers with a label; here columns have names and are taken as they are"
    )]
    ForRowsOfNumbers(&'static str),
    #[error(
        "`data.length` names `{text}`, which is no column of sequences of different lengths",
        text = line(.0)
    )]
    NoSequences(String),
    #[error("it has another type or shape: {text}", text = sentence(.0))]
    OtherKind(String),
    #[error("there is none of the model's columns: {text}", text = sentence(.0))]
    NoneOfColumns(String),
    #[error(
        "there are no columns by name, which the model takes: write them by `sojourn.data.write`, or as Parquet"
    )]
    NotColumns,
    #[error(
        "text without a tokenizer is bytes, U8 with 256 values, and the model takes tokens of {0}"
    )]
    TokensForBytes(String),
    #[error("the tokenizer makes tokens of {makes}, those of the model are {takes}")]
    OtherTokenizer { makes: String, takes: String },
    #[error("a tokenizer is for text, files that end in `.txt`")]
    TokenizerForText,
    #[error("no column is left (`data.columns`)")]
    NoColumnLeft,
    /// A name that is the file's, and not of a part that Sojourn wrote.
    #[error(
        "the name {why}; rename it, or leave it out: `data.columns = {{ drop = [\"{}\"] }}`",
        line(.name), why = sentence(.why)
    )]
    NameInFile { name: String, why: String },
    #[error(
        "it holds {holds}, which can be no column; leave it out: `data.columns = {{ drop = [\"{}\"] }}`",
        line(.name)
    )]
    NoColumnByName { name: String, holds: &'static str },
    #[error(
        "null; fill in what is missing, or leave the column out: `data.columns = {{ drop = [\"{text}\"] }}`",
        text = line(.0)
    )]
    NullRow(String),
    #[error(
        "a null in the list; fill in what is missing, or leave the column out: `data.columns = {{ drop = [\"{text}\"] }}`",
        text = line(.0)
    )]
    NullElement(String),
    #[error(
        "a number that its type doesn't hold: those without a sign go up to 9223372036854775807"
    )]
    LargeWhole,
    #[error("the file is empty")]
    Empty,
    #[error("it is no file of data, but a pipe or a device")]
    NoFile,
    #[error("there is a header and no row")]
    NoRows,
    #[error("the file is {0}, no CSV text")]
    NotText(&'static str),
    #[error("no JSON object: {text}", text = sentence(.reason))]
    NoObject { reason: String },
    #[error(transparent)]
    Sparse(SparseProblem),
    #[error("no `tf.train.Example`: {0}")]
    NoExample(&'static str),
    #[error("a record of over {limit} bytes")]
    LongRecord { limit: u64 },
    #[error("the key `{text}` is there twice", text = line(.0))]
    KeyTwice(String),
    #[error(
        "the file is one JSON list; JSON lines are wanted, an object in each line: `jq -c '.[]' FILE > NEW_FILE.jsonl`"
    )]
    JsonList,
    /// Over several lines, or the only one of its file; the key of its list of objects, if any.
    #[error("the file is one JSON object; JSON lines are wanted, an object in each line{}", remedy::list(.0.as_deref()))]
    JsonDocument(Option<String>),
    /// Objects that go on over several lines.
    #[error(
        "its objects go on over several lines; JSON lines are wanted, an object in each line: `jq -c . FILE > NEW_FILE.jsonl`"
    )]
    JsonOverLines,
    /// The encoding, as `iconv` calls it.
    #[error(
        "the JSON is text in UTF-16, and UTF-8 is wanted: `iconv -f {0} -t UTF-8 FILE > NEW_FILE`"
    )]
    JsonInUtf16(&'static str),
    #[error("a line of over {limit} bytes; is this a CSV file?")]
    LongLine { limit: u64 },
    #[error("a quote that is opened in this line isn't closed")]
    OpenQuote,
    #[error("text after a closing quote")]
    AfterQuote,
    #[error("the text isn't UTF-8; save the file as UTF-8")]
    NotUtf8,
    #[error(
        "the text isn't UTF-8; `data.encoding` says another encoding, such as \"windows-1252\", the usual one of Windows"
    )]
    UnknownEncoding,
    #[error("the text is UTF-16, which `data.encoding = \"utf-16\"` reads")]
    Utf16,
    #[error("the text isn't `{0}`, which `data.encoding` says")]
    NotInEncoding(&'static str),
    #[error(
        "column {number} has no name; name it, or leave it out: `data.columns = {{ drop = [{number}] }}`"
    )]
    UnnamedColumn { number: usize },
    /// Behind the last name, in a line that has a value there.
    #[error(
        "column {number} has no name, and it isn't empty throughout, as it would be if lines only ended in a separator; name it, \
         or leave it out: `data.columns = {{ drop = [{number}] }}`"
    )]
    ValueWithoutName { number: usize },
    #[error(
        "the first line has numbers alone, so it seems to be a row and no names of columns; say `data.header = false`, which \
         names columns `1`, `2` and so on, or give their names: `data.header = [\"a\", \"b\", ...]`; if these are the names, say \
         `data.header = true`"
    )]
    NumbersForHeader,
    #[error(
        "the first line is a comment, and names of columns are wanted; leave such lines out: `grep -v '^#' FILE > NEW_FILE`"
    )]
    Comment,
    #[error(
        "the line says that columns are separated by `{text}`; of separators `,`, `;`, tab and `|` are read",
        text = line(.0)
    )]
    OtherSeparator(String),
    #[error("{actual} values, `data.header` names {expected} columns")]
    NamedWidth { actual: usize, expected: usize },
    #[error(
        "the first line is {what}, no names of columns; if this is text, models of your own are trained on it by `data.window`",
        what = line(.what)
    )]
    NoTable { what: String },
    #[error("column `{name}` is there twice, as number {first} and {second}", name = line(.name))]
    DuplicateColumn { name: String, first: usize, second: usize },
    #[error("there are over {limit} columns")]
    TooManyColumns { limit: usize },
    #[error(
        "no column `{label}` (`data.label`){hint}",
        label = line(.label), hint = sentence(.hint)
    )]
    NoLabel { label: String, hint: String },
    #[error(
        "the column of the labels must be named by `data.label`; the columns are {text}",
        text = sentence(.0)
    )]
    LabelUnsaid(String),
    #[error("no feature column beside the label")]
    NoFeatures,
    #[error("{actual} columns, {expected} as in `{of}` are wanted", of = sentence(.of))]
    HeaderWidth { actual: usize, expected: usize, of: String },
    #[error(
        "column {number} is `{actual}`, but `{expected}` in `{of}`",
        actual = line(.actual), expected = line(.expected), of = sentence(.of)
    )]
    HeaderName { number: usize, actual: String, expected: String, of: String },
    /// By their positions other columns are left out than of the training data: theirs, those of the training data, and its file.
    #[error(
        "the positions in `data.columns` leave out {} here and {} of `{}`: say the names of these columns",
        listed(&.0.0), listed(&.0.1), sentence(&.0.2)
    )]
    OthersLeftOut(Box<(Vec<String>, Vec<String>, String)>),
    #[error("{actual} values, the header has {expected} columns{}", hint.text())]
    Ragged { actual: usize, expected: usize, hint: RaggedHint },
    #[error("a value is missing")]
    Missing,
    /// A feature of a row to train on, and how the file writes that it is missing.
    #[error("a value is missing{}; {}", as_written(.0), remedy::MISSING)]
    MissingFeature(String),
    #[error(
        "column `{text}` has no value in any row that is trained on, so it has no mean; leave it out by `data.columns`",
        text = line(.0)
    )]
    NoMean(String),
    /// A feature of a row to train on.
    #[error("`{word}` is no number; {}", remedy::words(.word, .column), word = line(.word))]
    WordFeature { word: String, column: String },
    /// A feature of a row to train on.
    #[error("`{date}` is a date, no number; {}", remedy::dates(.column), date = line(.date))]
    DateFeature { date: String, column: String },
    /// A feature of a row to train on.
    #[error("`{date}` is a date, no number; {}", remedy::other_dates(.column), date = line(.date))]
    OtherDate { date: String, column: String },
    #[error(
        "`{text}` is no date as ISO 8601 writes it, such as `2024-03-31` or `2024-03-31T13:05:00`",
        text = line(.0)
    )]
    NoDate(String),
    #[error(
        "no column `{name}` among the features (`data.dates`){hint}",
        name = line(.name), hint = sentence(.hint)
    )]
    NoDateColumn { name: String, hint: String },
    #[error("`{text}` is none of the column's words", text = line(.0))]
    UnseenWord(String),
    #[error("every value is missing: there is no word")]
    NoWords,
    #[error(
        "over {limit} different words; leave the column out by `data.columns`, or give its words in `data.categories`"
    )]
    TooManyWords { limit: usize },
    #[error("a word of over {limit} characters")]
    LongWord { limit: usize },
    #[error(
        "no column `{name}` among the features (`data.categories`){hint}",
        name = line(.name), hint = sentence(.hint)
    )]
    NoWordColumn { name: String, hint: String },
    #[error("two features would be called `{text}`; rename a column", text = line(.0))]
    SameFeature(String),
    #[error(
        "with a feature for each word a row has over {limit} features; take `\"ordinal\"`, or leave columns out"
    )]
    TooManyFeatures { limit: usize },
    #[error("every row has a missing value, and `data.missing` leaves such rows out")]
    NoWholeRow,
    #[error(
        "no row has a label: it is empty, or a word for what is missing; `data.missing_values` says which words these are"
    )]
    NoLabelledRow,
    /// Of a job whose labels are classes.
    #[error(
        "{distinct} different numbers with decimals in {rows} rows, and each would be a class; are they to be predicted as \
         numbers? then set `training.loss = \"mse\"`"
    )]
    NumbersAsClasses { distinct: usize, rows: u64 },
    /// A number with another decimal sign than a point, or with signs between thousands.
    #[error("`{text}` is no number with a decimal point; it is {}", remedy::ways(.ways), text = line(.text))]
    OtherNotation { text: String, ways: Vec<Way> },
    #[error("`{text}` is no number with {}", signs(*.notation), text = line(.text))]
    NotInNotation { text: String, notation: Notation },
    #[error("`data.{0}` is for {tables}, and this is none", tables = tables(&.0))]
    ForTables(&'static str),
    #[error("`data.{0}` is for a folder of images, and this is none")]
    ForImages(&'static str),
    #[error("it holds {0}, which can be no feature and no label; leave it out by `data.columns`")]
    ColumnKind(&'static str),
    #[error(
        "it is the index of a data frame; leave it out by `data.columns`, or by `to_parquet(..., index=False)`"
    )]
    FrameIndex,
    #[error("it is compressed by {0}; write the file again with snappy, zstd, gzip or lz4")]
    ParquetCodec(&'static str),
    #[error("it has no sheet of cells that is shown")]
    NoSheet,
    #[error("the sheet `{text}`, which is the first, has no row of two cells or more", text = line(.0))]
    EmptySheet(String),
    /// The cell that has it.
    #[error(
        "cell {0} has a formula and no value, as programs write it that don't compute; open the file in Excel or LibreOffice, and save it"
    )]
    FormulaWithoutValue(String),
    #[error(
        "the file is an old or an encrypted workbook of Excel; save it as `.xlsx`, without a password"
    )]
    OldExcel,
    #[error("the file is encrypted")]
    Encrypted,
    #[error("this program was built without {0}; `make build` builds the whole")]
    NotBuilt(&'static str),
    #[error(
        "no column `{name}` (`data.columns`){hint}",
        name = line(.name), hint = sentence(.hint)
    )]
    NoNamedColumn { name: String, hint: String },
    #[error("no column `{}` (`data.groups`){}", line(.name), sentence(.hint))]
    NoGroups { name: String, hint: String },
    #[error("there are more than {limit} groups (`data.groups`): most have a row or two")]
    TooManyGroups { limit: usize },
    #[error("no column {position} (`data.columns`); there are {columns}")]
    NoPosition { position: u32, columns: usize },
    #[error("`{text}` is no number", text = line(.0))]
    NotANumber(String),
    #[error(
        "`{text}` is no truth value, as those above it are (`true`, `false`); {}", remedy::TRUTH,
        text = line(.0)
    )]
    NoTruth(String),
    #[error("`{text}` is not finite", text = line(.0))]
    NotFinite(String),
    #[error("`{text}` is too large for single precision", text = line(.0))]
    TooLarge(String),
    #[error(
        "`{text}` is no number, as labels must be with `training.loss = \"mse\"`",
        text = line(.0)
    )]
    LabelNotANumber(String),
    #[error("a label of over {limit} bytes")]
    LongLabel { limit: usize },
    #[error("a label has {bytes} bytes in the file; {limit} are the most")]
    WideLabel { bytes: u64, limit: u64 },
    #[error("the label `{text}` doesn't occur in the training data", text = line(.0))]
    UnseenLabel(String),
    #[error("over {limit} different labels; for numbers to predict, set `training.loss = \"mse\"`")]
    TooManyClasses { limit: usize },
    #[error("every row has the label `{text}`; at least two classes are needed", text = line(.0))]
    OneClass(String),
    #[error("the file changed while it was read")]
    Changed,
    #[error(
        "no column `{name}`{}{hint}",
        and_more(*.more), name = line(.name), hint = sentence(.hint)
    )]
    NoColumn { name: String, more: usize, hint: String },
    #[error("the {how} data is damaged or cut off ({reason})", reason = sentence(.reason))]
    Damaged { how: &'static str, reason: String },
    #[error("the file isn't {wanted}, as its name or the files beside it say")]
    NotAs { wanted: &'static str },
    #[error("{0}")]
    BadHeader(&'static str),
    #[error("its elements are {text}, no numbers", text = line(.0))]
    Dtype(String),
    #[error(
        "its elements are Python objects, no numbers; save words as `x.astype(str)`, numbers as `x.astype(float)`, and a table \
         as `df.to_parquet(...)`"
    )]
    Objects,
    #[error("it is encrypted, or compressed by something else than deflate")]
    Compression,
    #[error("no array `{name}` (`{key}`); {hint}", name = line(.name), hint = sentence(.hint))]
    NoArray { name: String, key: &'static str, hint: String },
    #[error("it has no rows")]
    NoArrayRows,
    #[error("its rows are empty")]
    NoArrayFeatures,
    #[error("it is one number, no rows")]
    Scalar,
    #[error("its elements are text; features must be numbers")]
    TextFeatures,
    #[error("a row of over {limit} values")]
    WideRow { limit: u64 },
    #[error("labels must be one a row, [rows] or [rows, 1], not {shape}", shape = sides(.0))]
    LabelShape(Vec<u64>),
    #[error("{labels} labels for the {rows} rows of {of}", of = sentence(.of))]
    Counts { labels: u64, rows: u64, of: String },
    #[error("there is no file of labels; name it by `labels`")]
    NoLabelsFile,
    #[error("a folder; `labels` must name one file")]
    FolderOfLabels,
    #[error(
        "a row is {actual}, {expected} as in `{of}` is wanted",
        actual = sides(.actual), expected = sides(.expected), of = sentence(.of)
    )]
    RowShape { actual: Vec<u32>, expected: Vec<u32>, of: String },
    #[error(
        "a row is {shape}; `channels = \"last\"` needs [height, width, channels]",
        shape = sides(.0)
    )]
    NoChannels(Vec<u32>),
    #[error(
        "a row is {shape}, which looks like [height, width, channels]; set `data.channels = \"last\"`, or `data.shape` to that if it isn't",
        shape = sides(.0)
    )]
    ChannelsLast(Vec<u64>),
    #[error("it has {dimensions} dimensions; {limit} are the most")]
    Dimensions { dimensions: usize, limit: usize },
    #[error("the shape {shape} needs {wanted} bytes, there are {there}", shape = sides(.shape))]
    Size { shape: Vec<u64>, wanted: u64, there: u64 },
    #[error(
        "the data ends or is damaged at row {row} of {rows} ({reason})",
        reason = line(.reason)
    )]
    CutOff { row: u64, rows: u64, reason: String },
    #[error("there is more data after the {rows} rows")]
    MoreData { rows: u64 },
    #[error(
        "`data.{0}` says nothing about images: a folder's name is their label, and `data.shape` is `[channels, height, width]`"
    )]
    NotForImages(&'static str),
    #[error(
        "images need a shape to be scaled to: `data.shape = [channels, height, width]`, e.g. `[3, 64, 64]`"
    )]
    NoImageShape,
    #[error(
        "images are scaled to [channels, height, width] with 1 channel (gray) or 3 (RGB) and at most {limit} numbers, not to {shape}",
        shape = sides(.shape)
    )]
    ImageShape { shape: Vec<u32>, limit: u32 },
    #[error(
        "the images lie in no folder of a class; put those of each class into a folder of its own"
    )]
    NoClassFolders,
    #[error(
        "it lies in no folder of a class, and other images do; move it into that of its class, or out of here"
    )]
    ImageWithoutClass,
    #[error(
        "one image isn't data to train on; name a folder that has a folder of images for each class"
    )]
    OneImage,
    #[error("the folder's name is to be a label, and isn't UTF-8; rename it")]
    ClassName,
    #[error("over {limit} folders in each other; is one a link to a folder above?")]
    DeepFolders { limit: usize },
    #[error("of images JPEG, PNG, TIFF and WebP are read; convert it, or move it out of here")]
    OtherImage,
    #[error("it is no JPEG, PNG, TIFF or WebP image, as its name says")]
    NoImage,
    #[error(
        "the {kind} image is damaged, cut off, or of a kind that isn't read ({reason})",
        reason = line(.reason)
    )]
    BadImage { kind: &'static str, reason: String },
    #[error("the image has no pixels")]
    NoPixels,
    #[error("the image has {width} x {height} pixels; {limit} are the most, so make it smaller")]
    LargeImage { width: usize, height: usize, limit: usize },
    #[error("an image's file of over {limit} bytes")]
    LargeImageFile { limit: u64 },
}

/// A notation in which a text is a number, and that number with a decimal point.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the type says it")]
pub struct Way {
    pub notation: Notation,
    pub value: String,
}

/// A likely reason why a line has another number of values than there are columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaggedHint {
    /// None is known.
    None,
    /// Values or decimals may have commas, which separate columns too.
    Comma,
    /// The line ends in a separator.
    LastSeparator,
    /// The first value of each row may be its name, as R writes it.
    RowNames,
    /// The record has so many lines, because of a line break in quotes.
    Lines(u64),
}

impl RaggedHint {
    pub(super) fn text(self) -> String {
        match self {
            RaggedHint::None => String::new(),
            RaggedHint::Comma => {
                "; a value with a comma must be in quotes, and decimals need a point".to_owned()
            }
            RaggedHint::LastSeparator => {
                "; the line ends in a separator, and the header doesn't".to_owned()
            }
            RaggedHint::RowNames => {
                "; if the first is the name of the row, write the file with `col.names = NA` (R)"
                    .to_owned()
            }
            RaggedHint::Lines(lines) => {
                format!("; a quote that is opened in this line is closed {} lines below", lines - 1)
            }
        }
    }
}

/// The signs of numbers in a notation.
fn signs(notation: Notation) -> String {
    let decimal = match notation.decimal {
        DecimalSign::Point => "a decimal point",
        DecimalSign::Comma => "a decimal comma",
    };
    let thousands = notation
        .thousands
        .map(|sign| format!(" and `{}` between groups of three digits", sign.text()));
    format!("{decimal}{}", thousands.unwrap_or_default())
}

/// The files that a key is for.
fn tables(key: &str) -> &'static str {
    match key {
        "separator" | "encoding" | "decimal" | "thousands" => "CSV files",
        "header" => "CSV files and workbooks",
        _ => "tables (CSV, JSON lines, Parquet, Excel, libsvm and TFRecord)",
    }
}

fn as_written(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!(" (`{}`)", line(field)) }
}

fn and_more(count: usize) -> String {
    if count == 0 {
        String::new()
    } else {
        format!(" and {count} more that the model was trained on")
    }
}
