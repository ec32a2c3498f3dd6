//! A first job file for data that nobody has described yet.
//!
//! ```text
//! sojourn_ingest::profile: what the data holds -> which column is the label -> what each other column is taken for
//!     -> a job file with comments: a small search over two kinds of model
//! ```
//!
//! `sojourn init` and the web page's form write it. Whatever is guessed is said, with the reason, so that whoever knows the data better
//! changes a line. Equal profiles give equal files.

mod arrays;
mod columns;
mod images;
mod job;
mod label;
mod notation;
mod number;
mod table;
mod text;

pub use columns::{Taken, TakenColumn};
pub use label::{Guess, LabelKind, guess};

use serde::Serialize;
use sojourn_ingest::Profile;

/// The wishes of whoever wants a job file.
#[derive(Debug, Clone, Copy)]
pub struct Wishes<'a> {
    /// The job's name.
    pub name: &'a str,
    /// The data, as the job file is to name it.
    pub train: &'a str,
    /// The column, or the array, of the labels; guessed where nobody says it.
    pub label: Option<&'a str>,
    /// Are labels classes or numbers? Guessed where nobody says it.
    pub labels: Option<LabelKind>,
}

/// A job file, and the reasons for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Draft {
    /// The job file.
    #[serde(skip)]
    pub job: String,
    /// Files that it needs beside it, by name.
    #[serde(skip)]
    pub files: Vec<(&'static str, &'static str)>,
    /// The column of the labels, where it was guessed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Guess>,
    /// Each column of a table, and the use that is made of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<TakenColumn>,
    /// Remarks: what was guessed, and which line changes it.
    pub remarks: Vec<String>,
}

/// Makes a job file for data.
///
/// # Errors
/// All reasons for which there can be none, with what helps.
pub fn draft(profile: &Profile, wishes: Wishes<'_>) -> Result<Draft, Vec<String>> {
    match profile {
        Profile::Table(table) => table::draft(table, wishes),
        Profile::Arrays { format, arrays } => arrays::draft(*format, arrays, wishes),
        Profile::Images(images) => images::draft(images, wishes),
        Profile::Text { bytes } => Ok(text::draft(*bytes, wishes)),
    }
}
