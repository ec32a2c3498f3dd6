//! Recognises the format of a source, and opens it.

use crate::{
    array::{ArrayKind, Arrays},
    csv::Csv,
    error::{IngestError, Problem},
    excel::{self, Begins},
    fields::Unnamed,
    images::{Images, is_image},
    json_lines::{self, JsonLines},
    libsvm::{self, Libsvm},
    parquet,
    progress::Progress,
    source::{Finder, SourceFile, is_utf_16},
    table::{Reading, Table, TextReading, Wanted},
    tfrecord::{self, TfRecord},
};
use sojourn_protocol::spec::{
    FileKind, Header, Notation, OnBad, Separator, SourceSpec, TextEncoding,
};

/// Workbooks of before 2007, and those with a password.
const OLD_EXCEL: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
/// The first bytes of formats that are mistaken for CSV.
const OTHER_FORMATS: &[(&[u8], &str)] = &[
    (b"\x1f\x8b", "compressed by gzip twice"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd twice"),
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet"),
    (b"PAR1", "a Parquet file"),
    (b"<!doctype html", "an HTML page"),
    (b"<html", "an HTML page"),
    (b"<?xml", "an XML document"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"BZh", "compressed by bzip2"),
    (b"\xfd7zXZ", "compressed by xz"),
];

/// Finds the source that `key` of the job names, and its rows.
pub(crate) fn open(
    finder: &mut Finder<'_>,
    key: &'static str,
    source: &SourceSpec,
    reading: Reading<'_>,
) -> Result<Box<dyn Table>, IngestError> {
    if let Some(images) = Images::in_folder(finder, key, source, reading)? {
        return Ok(Box::new(images));
    }
    let encoding = reading.text.dialect.encoding;
    let parts = finder.find(key, &source.data)?.into_iter();
    let parts: Vec<SourceFile> = parts.map(|part| part.in_encoding(encoding)).collect();
    if let (OnBad::Skip, Some(part)) = (reading.on_bad_image, parts.first()) {
        return Err(part.refuse(Problem::ForImages("on_bad_image")));
    }
    let kind = kind_of_all(&parts)?;
    if let (Some(Kind::Image), [file]) = (kind, parts.as_slice()) {
        return Ok(Box::new(Images::one(file.clone(), source, reading)?));
    }
    if let Some(Kind::Parquet | Kind::JsonLines | Kind::Libsvm | Kind::TfRecord) = kind {
        if let (Wanted::Labelled, Some(key), Some(part)) =
            (reading.wanted, reading.text.said_of_text(), parts.first())
        {
            return Err(part.refuse(Problem::ForTables(key)));
        }
        let label = source.label.as_deref();
        let shown = &source.data;
        return Ok(match kind {
            Some(Kind::JsonLines) => Box::new(JsonLines::open(shown, parts, label, reading)?),
            Some(Kind::Libsvm) => Box::new(Libsvm::open(shown, parts, label, reading)?),
            Some(Kind::TfRecord) => Box::new(TfRecord::open(shown, parts, label, reading)?),
            _ => parquet::labelled(finder, shown, parts, label, reading)?,
        });
    }
    let Some(Kind::Arrays(kind)) = kind else {
        let (parts, reading) = match kind {
            Some(Kind::Excel) => copies(finder, &parts, reading)?,
            _ => (parts, reading),
        };
        let (csv, found) = Csv::open(&source.data, parts, source.label.as_deref(), reading)?;
        if let Some((file, by)) = &found.separator {
            finder.tell(Progress::Separated { file, by: *by });
        }
        let from = &source.data;
        // Those behind the last name are side by side.
        let side_by_side = csv.unnamed().chunk_by(|one, next| one.is_index == next.is_index);
        for columns in side_by_side {
            let Some(Unnamed { column, is_index }) = columns.first().copied() else { continue };
            let (column, last) = (column + 1, column + columns.len());
            finder.tell(Progress::Unnamed { from, column, last, is_index });
        }
        return Ok(Box::new(csv));
    };
    if let (Wanted::Labelled, Some(key), Some(part)) =
        (reading.wanted, reading.text.said(), parts.first())
    {
        return Err(part.refuse(Problem::ForTables(key)));
    }
    let arrays = Arrays::open(finder, kind, parts, source, reading)?;
    if !reading.has_shape {
        arrays.refuse_channels_last()?;
    }
    Ok(Box::new(arrays))
}

/// The sheets of workbooks as text, and how that is read.
fn copies<'a>(
    finder: &mut Finder<'_>,
    parts: &[SourceFile],
    reading: Reading<'a>,
) -> Result<(Vec<SourceFile>, Reading<'a>), IngestError> {
    let said = [
        (reading.text.separator.is_some(), "separator"),
        (reading.text.dialect.encoding != TextEncoding::Utf8, "encoding"),
        (reading.text.dialect.numbers != Notation::default(), "decimal"),
    ];
    let said = said.into_iter().find(|(is_said, _)| *is_said);
    if let (Wanted::Labelled, Some((_, key)), Some(part)) = (reading.wanted, said, parts.first()) {
        return Err(part.refuse(Problem::ForTables(key)));
    }
    let begins = match reading.text.dialect.header {
        None | Some(Header::First) => Begins::AtNames,
        Some(Header::Position | Header::Names(_)) => Begins::AtRows,
    };
    let copies = parts.iter().map(|part| excel::as_text(finder, part, begins));
    let copies = copies.collect::<Result<_, _>>()?;
    let text = TextReading { separator: Some(Separator::Comma), ..reading.text };
    Ok((copies, Reading { text, ..reading }))
}

/// The kind of files that must all be of one; none where there are none.
pub(crate) fn kind_of_all(parts: &[SourceFile]) -> Result<Option<Kind>, IngestError> {
    let mut kind = None;
    for part in parts {
        let found = kind_of(part)?;
        if *kind.get_or_insert(found) != found {
            let wanted = kind.map_or("", |kind| kind.file_kind().name());
            return Err(part.refuse(Problem::NotAs { wanted }));
        }
    }
    Ok(kind)
}

/// How a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Csv,
    Parquet,
    JsonLines,
    Libsvm,
    TfRecord,
    Excel,
    Arrays(ArrayKind),
    Image,
}

impl Kind {
    /// The kind of a text whose name says this, if anything.
    fn of_text(start: &[u8], named: Option<FileKind>) -> Self {
        match named {
            Some(FileKind::JsonLines) => Kind::JsonLines,
            Some(FileKind::Libsvm) => Kind::Libsvm,
            None if json_lines::begins(start) => Kind::JsonLines,
            None if libsvm::begins(start) => Kind::Libsvm,
            _ => Kind::Csv,
        }
    }

    const fn file_kind(self) -> FileKind {
        match self {
            Kind::Csv => FileKind::Csv,
            Kind::Parquet => FileKind::Parquet,
            Kind::JsonLines => FileKind::JsonLines,
            Kind::Libsvm => FileKind::Libsvm,
            Kind::TfRecord => FileKind::TfRecord,
            Kind::Excel => FileKind::Excel,
            Kind::Arrays(kind) => kind.file_kind(),
            Kind::Image => FileKind::Image,
        }
    }
}

/// The kind of a file by its first bytes. Its name must not contradict it.
pub(crate) fn kind_of(file: &SourceFile) -> Result<Kind, IngestError> {
    let start = file.start()?;
    if start.is_empty() {
        return Err(file.refuse(Problem::Empty));
    }
    if start.starts_with(OLD_EXCEL) {
        return Err(file.refuse(Problem::OldExcel));
    }
    let said = FileKind::named(file.shown());
    let found = match ArrayKind::of(&start) {
        // No other file has a checksum of its first bytes there.
        _ if tfrecord::begins(&start) => Kind::TfRecord,
        Some(ArrayKind::Npz) if said == Some(FileKind::Excel) || excel::begins(&start) => {
            Kind::Excel
        }
        Some(kind) => Kind::Arrays(kind),
        None if is_image(&start) => Kind::Image,
        None if parquet::begins(&start) => Kind::Parquet,
        None => Kind::of_text(&start, said),
    };
    if let None | Some(FileKind::JsonLines) = said {
        json_lines::refuse_others(file, &start)?;
    }
    let named = said.unwrap_or(found.file_kind());
    if named == FileKind::Csv && found == Kind::Csv && is_utf_16(&start) {
        return match file.encoding() {
            TextEncoding::Utf8 => Err(file.refuse(Problem::Utf16)),
            _ => Ok(Kind::Csv),
        };
    }
    if named == FileKind::Csv
        && let Some(what) = other(&start)
    {
        return Err(file.refuse(Problem::NotText(what)));
    }
    if named != found.file_kind() {
        return Err(file.refuse(Problem::NotAs { wanted: named.name() }));
    }
    Ok(found)
}

/// Is it text in UTF-8, as far as the first bytes show? The last character may be cut off.
pub(crate) fn is_text(start: &[u8]) -> bool {
    let is_utf8 = match std::str::from_utf8(start) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    is_utf8 && !start.contains(&0)
}

fn other(start: &[u8]) -> Option<&'static str> {
    let begins = |magic: &[u8]| {
        start.get(..magic.len()).is_some_and(|start| start.eq_ignore_ascii_case(magic))
    };
    OTHER_FORMATS.iter().find(|(magic, _)| begins(magic)).map(|(_, what)| *what)
}
