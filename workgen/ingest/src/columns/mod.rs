//! Data that has columns by name: read as it is, for users' own models.
//!
//! ```text
//! parts of safetensors ---------------------> Parts --------.
//! Parquet of which the job says no label ---> NamedParquet --+--> ColumnTable --survey, cut--> shards
//! text --bytes or tokens--> TokenSource --> Windows ---------'
//! one column of either ---> JoinedRows --^
//! ```
//!
//! The survey reads all rows once: it counts them and finds the longest row and the range of whole numbers. The cut reads
//! them again, and deals them out as rows of numbers are.

mod data;
#[cfg(feature = "tokenizers")]
mod growth;
mod joined;
mod numbers;
mod part;
mod parts;
mod reader;
mod table;
mod text;
#[cfg_attr(not(feature = "tokenizers"), path = "tokenizer_absent.rs")]
mod tokenizer;
mod windows;

pub(crate) use data::ColumnData;
pub use reader::{ColumnReader, ColumnRowReader, ColumnSource};
pub(crate) use table::{Choice, ColumnRows, ColumnTable, Field, check_same};

use crate::{
    error::{IngestError, Problem},
    format, parquet,
    source::{Finder, SourceFile},
};
use joined::JoinedRows;
use parts::Parts;
use sojourn_protocol::spec::{DataSpec, FileKind, JobSpec, ModelSpace};
use text::Text;
use windows::Windows;

/// The source that `key` of the job names, where it has columns by name; else none.
pub(crate) fn open(
    finder: &mut Finder<'_>,
    key: &'static str,
    shown: &str,
    job: &JobSpec,
) -> Result<Option<Box<dyn ColumnTable>>, IngestError> {
    let spec = &job.data;
    let texts = finder.find_texts(key, shown)?;
    if let (Some(first), true) = (texts.first(), is_text(shown, spec)) {
        let window = spec.window.ok_or_else(|| first.refuse(Problem::NoWindow))?;
        return windows_of_text(finder, shown, texts, spec, window).map(Some);
    }
    // A folder of images, say.
    if finder.folder_without_data(key, shown)?.is_some() {
        return Ok(None);
    }
    let files = finder.find(key, shown)?;
    let Some(first) = files.first() else { return Ok(None) };
    let is_part = part::is_part(first)?;
    let is_parquet = !is_part && has_names(job) && is_parquet(first)?;
    let by_name = is_part || is_parquet;
    if let (Some(window), [file], false) = (spec.window, files.as_slice(), by_name)
        && FileKind::named(file.shown()).is_none()
        && format::is_text(&file.start()?)
    {
        return windows_of_text(finder, shown, files, spec, window).map(Some);
    }
    let said = [
        (!by_name && spec.window.is_some(), "window"),
        (spec.tokenizer.is_some(), "tokenizer"),
        (!by_name && !spec.length.is_empty(), "length"),
    ];
    if let Some((_, key)) = said.iter().find(|(is_said, _)| *is_said) {
        return Err(first.refuse(Problem::NoText(key)));
    }
    let (table, hint): (Box<dyn ColumnTable>, _) = if is_part {
        refuse_choice(first, spec)?;
        (Box::new(Parts::open(shown, files)?), "")
    } else if is_parquet {
        let choice = Choice::Job(spec.columns.as_ref());
        let hint = "; `data.columns = { use = [...] }` takes one of several";
        (parquet::by_name(finder, shown, files, choice)?, hint)
    } else {
        return Ok(None);
    };
    Ok(Some(match spec.window {
        Some(window) => {
            Box::new(Windows::new(shown, Box::new(JoinedRows::new(table, hint)?), window))
        }
        None => table,
    }))
}

/// Windows over text files.
fn windows_of_text(
    finder: &mut Finder<'_>,
    shown: &str,
    files: Vec<SourceFile>,
    spec: &DataSpec,
    window: u32,
) -> Result<Box<dyn ColumnTable>, IngestError> {
    if let Some(first) = files.first() {
        refuse_choice(first, spec)?;
    }
    let text = Text::open(files, tokenizer(finder, spec)?.as_ref())?;
    Ok(Box::new(Windows::new(shown, Box::new(text), window)))
}

/// Are columns of tables taken by name? Where the job says no label, models of its own find them so.
fn has_names(job: &JobSpec) -> bool {
    let is_own = |model: &ModelSpace| matches!(model, ModelSpace::Graph(_));
    job.data.label.is_none() && job.models.iter().all(is_own)
}

fn is_parquet(file: &SourceFile) -> Result<bool, IngestError> {
    let is_named = matches!(FileKind::named(file.shown()), None | Some(FileKind::Parquet));
    Ok(is_named && parquet::begins(&file.start()?))
}

/// Refuses a choice among columns that are written or made as they are wanted.
fn refuse_choice(file: &SourceFile, spec: &DataSpec) -> Result<(), IngestError> {
    match spec.columns {
        Some(_) => Err(file.refuse(Problem::ForTables("columns"))),
        None => Ok(()),
    }
}

/// Is it a text file, or a folder of which the job says that its text is meant?
fn is_text(shown: &str, spec: &DataSpec) -> bool {
    spec.window.is_some() || FileKind::named(shown) == Some(FileKind::Text)
}

fn tokenizer(finder: &mut Finder<'_>, spec: &DataSpec) -> Result<Option<SourceFile>, IngestError> {
    let Some(name) = &spec.tokenizer else { return Ok(None) };
    let found = finder.find("data.tokenizer", name)?;
    Ok(found.into_iter().next())
}
