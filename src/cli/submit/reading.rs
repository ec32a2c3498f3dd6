//! Progress of reading data, on stderr: what is copied first, then a bar over both passes.

use crate::cli::render::{
    progress::{Meter, Unit},
    text,
};
use sojourn_ingest::Progress;

/// Shows the progress of one reading.
pub(crate) struct Reading {
    meter: Meter,
}

impl Reading {
    /// A meter of data that has not been read yet.
    pub(crate) fn new() -> Self {
        Self { meter: Meter::new("reading data", Unit::Bytes, 0) }
    }

    /// Says how far it is, and what was copied and where to.
    pub(crate) fn tell(&mut self, progress: Progress<'_>) {
        match progress {
            Progress::Separated { file, by } => {
                self.meter.remark(&format!("{file}: columns are separated by {}", by.name()));
            }
            Progress::Skipped { from, files } => {
                let files = text::counted(files, "file");
                self.meter.remark(&format!("{from}: {files} skipped, being no images"));
            }
            Progress::Unnamed { from, column, is_index: true } => {
                self.meter.remark(&format!(
                    "{from}: column {column} has no name, and is left out as the numbers or names of rows"
                ));
            }
            Progress::Unnamed { from, column, is_index: false } => {
                self.meter.remark(&format!("{from}: column {column} has no name, and is left out"));
            }
            Progress::Unlabelled { from, rows, of, words } => {
                let of = text::counted(of, "row");
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                let words = match words.as_slice() {
                    [] => String::new(),
                    words => format!(
                        " ({}; `data.missing_values` says which words mean that)",
                        words.join(", ")
                    ),
                };
                self.meter
                    .remark(&format!("{from}: {rows} of {of} left out, without a label{words}"));
            }
            Progress::SameClass { class, labels } => {
                let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
                let labels = labels.join(", ");
                self.meter
                    .remark(&format!("labels {labels} are equal as numbers: one class, `{class}`"));
            }
            Progress::Dropped { from, rows, of } => {
                let of = text::counted(of, "row");
                self.meter.remark(&format!("{from}: {rows} of {of} left out, with missing values"));
            }
            Progress::Reading { bytes, of } => self.meter.set(bytes, of, ""),
            Progress::Loading { from, bytes, of } => {
                self.meter.set(bytes, of.unwrap_or(bytes), &format!("copying {from}"));
            }
            Progress::Loaded { from, bytes, folder } => {
                let (bytes, folder) = (text::bytes(bytes), folder.display());
                self.meter
                    .remark(&format!("{from}: {bytes} copied to a temporary file in `{folder}`"));
            }
        }
    }
}
