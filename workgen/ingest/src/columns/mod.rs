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
    let files = finder.find(key, shown)?;
    let Some(first) = files.first() else { return Ok(None) };
    let is_text = FileKind::named(first.shown()) == Some(FileKind::Text);
    if !is_text && !parts::is_part(first)? {
        return match (spec.window, &spec.tokenizer, spec.length.is_empty()) {
            (Some(_), ..) => Err(first.refuse(Problem::NoText("window"))),
            (_, Some(_), _) => Err(first.refuse(Problem::NoText("tokenizer"))),
            (.., false) => Err(first.refuse(Problem::NoText("length"))),
            _ => Ok(None),
        };
    }
    if spec.tokenizer.is_some() && !is_text {
        return Err(first.refuse(Problem::NoText("tokenizer")));
    }
    if is_text {
        let window = spec.window.ok_or_else(|| first.refuse(Problem::NoWindow))?;
        let tokenizer = tokenizer(finder, spec)?;
        let text = Text::open(files, tokenizer.as_ref())?;
        return Ok(Some(Box::new(Windows::new(shown, Box::new(text), window))));
    }
    let parts = Parts::open(shown, files)?;
    Ok(Some(match spec.window {
        Some(window) => Box::new(Windows::new(shown, Box::new(JoinedRows::new(parts)?), window)),
        None => Box::new(parts),
    }))
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
