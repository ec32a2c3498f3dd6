//! A look at data that no job describes yet: what each column of a table, each array and each folder of images holds.
//!
//! ```text
//! a table   separator -> the first record kept aside -> all others counted, by column -> names or a row?
//! arrays    the headers of all
//! images    the folders, and the sizes of some
//! ```
//!
//! Nothing is decided here: `sojourn-draft` makes a job file of it. A table is read whole, in a stream; of each column
//! [`MAX_VALUES`] different values are kept, so that memory doesn't grow with the data.

mod column;
mod encoding;
mod records;
mod table;

pub use crate::{
    array::{ArrayProfile, Elements},
    images::ImagesProfile,
};
pub use column::{ColumnProfile, MAX_VALUES, Odd};
pub use table::{OddLines, TableProfile};

use crate::{
    bounds::Bounds,
    error::{IngestError, Problem},
    excel::{self, Begins},
    format::{Kind, kind_of_all},
    images,
    progress::Progress,
    source::{Finder, SourceFile},
};
use serde::Serialize;
use sojourn_protocol::spec::{FileKind, Separator};
use std::{path::Path, sync::Arc};

/// The contents of data.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Profile {
    /// A table: CSV, JSON lines, libsvm's format, TFRecord, Parquet or Excel.
    Table(TableProfile),
    /// Arrays by name, of the first file.
    Arrays {
        /// The format.
        format: FileKind,
        /// Each array.
        arrays: Vec<ArrayProfile>,
    },
    /// A folder of images.
    Images(ImagesProfile),
    /// A text, or a folder of texts.
    Text {
        /// The size in bytes, as it lies on the disk.
        bytes: u64,
    },
}

/// The data to look at.
#[derive(Debug, Clone, Copy)]
pub struct ProfileOf<'a> {
    /// A file, a folder or a URL, as a job file has it.
    pub data: &'a str,
    /// The folder that paths are relative to.
    pub base_dir: &'a Path,
    /// Where remote files are copied to.
    pub spool: &'a Path,
    /// The separator of a table's columns, where somebody said it.
    pub separator: Option<Separator>,
    /// The column of the labels, where somebody said it: then tables that lie beside folders of images are meant.
    pub label: Option<&'a str>,
}

/// Looks at data. Blocks; inside an async runtime it must be called where blocking is allowed.
///
/// # Errors
/// Data that isn't there, can't be read, or is of no known format; [`IngestError::Refused`] where the bounds say so.
pub fn profile(
    wanted: ProfileOf<'_>,
    bounds: Arc<dyn Bounds>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Profile, IngestError> {
    const KEY: &str = "data.train";
    let mut finder = Finder::new(wanted.base_dir, wanted.spool, &bounds, progress);
    if let Some(folder) = finder.folder_of_images(KEY, wanted.data, wanted.label)?
        && let Some(images) = images::look(folder, wanted.data, &bounds)?
    {
        return Ok(Profile::Images(images));
    }
    let texts = finder.find_texts(KEY, wanted.data)?;
    if !texts.is_empty() {
        return Ok(Profile::Text { bytes: texts.iter().map(|text| text.bytes()).sum() });
    }
    let parts = encoding::found(finder.find(KEY, wanted.data)?)?;
    Ok(match kind_of_all(&parts)? {
        Some(Kind::Parquet) => Profile::Table(table::of_parquet(wanted.data, parts, &mut finder)?),
        Some(Kind::JsonLines) => Profile::Table(table::of_json_lines(wanted.data, parts)?),
        Some(Kind::Libsvm) => Profile::Table(table::of_libsvm(wanted.data, parts)?),
        Some(Kind::TfRecord) => Profile::Table(table::of_tfrecord(wanted.data, parts)?),
        Some(Kind::Arrays(kind)) => {
            let first = parts.into_iter().next();
            let arrays = first.map(|first| crate::array::headers(&mut finder, kind, first));
            Profile::Arrays {
                format: kind.file_kind(),
                arrays: arrays.transpose()?.unwrap_or_default(),
            }
        }
        Some(Kind::Image) => {
            let image = crate::error::Place::of(wanted.data);
            return Err(image.refuse(Problem::OneImage));
        }
        Some(Kind::Excel) => {
            let copies =
                parts.iter().map(|part| excel::as_text(&mut finder, part, Begins::AtNames));
            let copies: Vec<SourceFile> = copies.collect::<Result<_, _>>()?;
            let comma = Some(Separator::Comma);
            let table = table::of_csv(&copies, comma, &mut finder)?;
            Profile::Table(TableProfile { format: FileKind::Excel, separator: None, ..table })
        }
        Some(Kind::Csv) | None => {
            Profile::Table(table::of_csv(&parts, wanted.separator, &mut finder)?)
        }
    })
}
