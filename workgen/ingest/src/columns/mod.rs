//! Data that has columns by name: read as it is, for users' own models.
//!
//! ```text
//! parts of safetensors ------------------------> Parts ---.
//! text --bytes or tokens--> TokenSource --> Windows -------+--> ColumnTable --survey, cut--> shards
//! parts with one column --> JoinedRows --^                 |
//! ```
//!
//! The survey reads all rows once: it counts them and finds the longest row and the range of whole numbers. The cut reads
//! them again, and deals them out as rows of numbers are.

mod data;
mod joined;
mod numbers;
mod parts;
mod reader;
mod table;
mod text;
mod windows;

pub(crate) use data::ColumnData;
pub use reader::{ColumnReader, ColumnRowReader};

use crate::{
    error::{IngestError, Place, Problem},
    source::{Finder, SourceFile},
};
use joined::JoinedRows;
use parts::Parts;
use sojourn_protocol::spec::{DataSpec, FileKind};
use table::ColumnTable;
use text::Text;
use windows::Windows;

/// The source that `key` of the job names, where it has columns by name; else none.
pub(crate) fn open(
    finder: &mut Finder<'_>,
    key: &'static str,
    shown: &str,
    spec: &DataSpec,
) -> Result<Option<Box<dyn ColumnTable>>, IngestError> {
    let texts = finder.find_texts(key, shown)?;
    if let (Some(first), true) = (texts.first(), is_text(shown, spec)) {
        let window = spec.window.ok_or_else(|| first.refuse(Problem::NoWindow))?;
        let text = Text::open(texts, tokenizer(finder, spec)?.as_ref())?;
        return Ok(Some(Box::new(Windows::new(shown, Box::new(text), window))));
    }
    // A folder of images, say.
    if finder.folder_without_data(key, shown)?.is_some() {
        return Ok(None);
    }
    let files = finder.find(key, shown)?;
    let Some(first) = files.first() else { return Ok(None) };
    let is_part = parts::is_part(first)?;
    let said = [
        (!is_part && spec.window.is_some(), "window"),
        (spec.tokenizer.is_some(), "tokenizer"),
        (!is_part && !spec.length.is_empty(), "length"),
    ];
    if let Some((_, key)) = said.iter().find(|(is_said, _)| *is_said) {
        return Err(first.refuse(Problem::NoText(key)));
    }
    if !is_part {
        return Ok(None);
    }
    let parts = Parts::open(shown, files)?;
    Ok(Some(match spec.window {
        Some(window) => Box::new(Windows::new(shown, Box::new(JoinedRows::new(parts)?), window)),
        None => Box::new(parts),
    }))
}

/// Is it a text file, or a folder of which the job says that its text is meant?
fn is_text(shown: &str, spec: &DataSpec) -> bool {
    spec.window.is_some() || FileKind::named(shown) == Some(FileKind::Text)
}

/// The source of that name, which must have columns by name.
fn open_for_reading(
    finder: &mut Finder<'_>,
    source: &str,
) -> Result<Box<dyn ColumnTable>, IngestError> {
    let files = finder.find("data", source)?;
    match files.first() {
        Some(first) if parts::is_part(first)? => Ok(Box::new(Parts::open(source, files)?)),
        _ => Err(Place::of(source).refuse(Problem::NotColumns)),
    }
}

fn tokenizer(finder: &mut Finder<'_>, spec: &DataSpec) -> Result<Option<SourceFile>, IngestError> {
    let Some(name) = &spec.tokenizer else { return Ok(None) };
    let found = finder.find("data.tokenizer", name)?;
    Ok(found.into_iter().next())
}
