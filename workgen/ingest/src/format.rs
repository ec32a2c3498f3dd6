//! Which format a source has, and its rows.

use crate::{
    array::{self, Arrays},
    csv::Csv,
    error::{IngestError, Problem},
    source::{Finder, SourceFile},
    table::{Table, Wanted},
};
use sojourn_protocol::spec::{Channels, FileKind, SourceSpec};

/// How formats that people take for CSV begin.
const OTHER_FORMATS: &[(&[u8], &str)] = &[
    (b"\x1f\x8b", "compressed by gzip twice"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd twice"),
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet"),
    (b"PAR1", "a Parquet file"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
    (b"<!doctype html", "an HTML page"),
    (b"<html", "an HTML page"),
    (b"<?xml", "an XML document"),
    (b"\x89PNG", "a picture"),
    (b"BZh", "compressed by bzip2"),
    (b"\xfd7zXZ", "compressed by xz"),
];

/// What a source is to be read as.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) channels: Channels,
    pub(crate) wanted: Wanted<'a>,
    /// Does the job say a row's shape? Then nothing is guessed from it.
    pub(crate) has_shape: bool,
}

/// Finds the source that `key` of the job names, and its rows.
pub(crate) fn open(
    finder: &mut Finder<'_>,
    key: &'static str,
    source: &SourceSpec,
    reading: Reading<'_>,
) -> Result<Box<dyn Table>, IngestError> {
    let parts = finder.find(key, &source.data)?;
    let mut kind = None;
    for part in &parts {
        let found = kind_of(part)?;
        if *kind.get_or_insert(found) != found {
            let wanted = kind.map_or("", FileKind::name);
            return Err(part.refuse(Problem::NotAs { wanted }));
        }
    }
    let kind = kind.unwrap_or(FileKind::Csv);
    if kind == FileKind::Csv {
        let csv = Csv::open(&source.data, parts, source.label.as_deref(), reading.wanted)?;
        return Ok(Box::new(csv));
    }
    let arrays = Arrays::open(finder, kind, parts, source, reading.channels, reading.wanted)?;
    if !reading.has_shape {
        arrays.refuse_channels_last()?;
    }
    Ok(Box::new(arrays))
}

/// What a file is by its first bytes; its name must not say otherwise.
fn kind_of(file: &SourceFile) -> Result<FileKind, IngestError> {
    let start = file.start()?;
    let named = FileKind::named(file.shown());
    if start.is_empty() {
        return Err(file.refuse(Problem::Empty));
    }
    let found = array::kind(&start);
    match (named, found) {
        (Some(FileKind::Csv) | None, None) => match other(&start) {
            Some(what) => Err(file.refuse(Problem::NotText(what))),
            None => Ok(FileKind::Csv),
        },
        (Some(FileKind::Csv), Some(_)) => match other(&start) {
            Some(what) => Err(file.refuse(Problem::NotText(what))),
            None => Err(file.refuse(Problem::NotAs { wanted: FileKind::Csv.name() })),
        },
        (Some(named), found) if found != Some(named) => {
            Err(file.refuse(Problem::NotAs { wanted: named.name() }))
        }
        (_, Some(found)) => Ok(found),
        (Some(named), None) => Ok(named),
    }
}

fn other(start: &[u8]) -> Option<&'static str> {
    let begins = |magic: &[u8]| {
        start.get(..magic.len()).is_some_and(|start| start.eq_ignore_ascii_case(magic))
    };
    OTHER_FORMATS.iter().find(|(magic, _)| begins(magic)).map(|(_, what)| *what)
}
