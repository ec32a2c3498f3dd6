//! Progress of reading data, on stderr: what is copied first, then a bar over both passes.

use crate::cli::render::{
    progress::{Meter, Unit},
    text,
};
use serde::Serialize;
use sojourn_ingest::{BadRow, BadRows, Progress};
use sojourn_protocol::quantity::to_u64;
use std::collections::BTreeMap;

/// Shows the progress of one reading.
pub(crate) struct Reading {
    meter: Meter,
    left_out: Vec<LeftOut>,
}

/// Rows, or images, of a source that can't be read, as `--json` shows them.
#[derive(Debug, Serialize)]
pub(crate) struct LeftOut {
    /// The source, as the job file has it.
    from: String,
    rows: u64,
    /// Rows of the source in all.
    of: u64,
    /// Rows by the reason.
    reasons: BTreeMap<&'static str, u64>,
    /// The first of them.
    first: Vec<LeftOutRow>,
}

/// A row that can't be read.
#[derive(Debug, Serialize)]
struct LeftOutRow {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<String>,
    problem: String,
}

impl LeftOut {
    fn new(from: &str, bad: &BadRows, of: u64) -> Self {
        let row = |BadRow { at, problem }: &BadRow| LeftOutRow {
            file: at.file.clone(),
            line: at.line,
            row: at.row,
            column: at.column.clone(),
            problem: problem.to_string(),
        };
        let reasons = bad.reasons.iter();
        Self {
            from: from.to_owned(),
            rows: bad.rows,
            of,
            reasons: reasons.map(|(reason, rows)| (reason.word(), *rows)).collect(),
            first: bad.first.iter().map(row).collect(),
        }
    }
}

impl Reading {
    /// A meter of data that has not been read yet.
    pub(crate) fn new() -> Self {
        let meter = Meter::new("reading data", Unit::Bytes, 0);
        Self { meter, left_out: Vec::new() }
    }

    /// The rows that were left out because they can't be read, by their sources.
    pub(crate) fn left_out(self) -> Vec<LeftOut> {
        self.left_out
    }

    /// Says how far it is, and what was copied and where to.
    pub(crate) fn tell(&mut self, progress: Progress<'_>) {
        match progress {
            Progress::Separated { file, by } => {
                self.meter.remark(&format!("{file}: columns are separated by {}", by.name()));
            }
            Progress::Sheet { file, sheet, of } => {
                let hint = "save another one as a workbook or a CSV file of its own";
                self.meter.remark(&format!("{file}: of {of} sheets `{sheet}` is read; {hint}"));
            }
            Progress::Skipped { from, files } => {
                let files = text::counted(files, "file");
                self.meter.remark(&format!("{from}: {files} skipped, being no images"));
            }
            Progress::Unnamed { from, column, is_index: true, .. } => {
                self.meter.remark(&format!(
                    "{from}: column {column} has no name, and is left out as the numbers or names of rows"
                ));
            }
            Progress::Unnamed { from, column, last, is_index: false } => {
                let left_out = match last == column {
                    true => format!("column {column} has no name, and is left out"),
                    false => format!("columns {column} to {last} have no name, and are left out"),
                };
                self.meter.remark(&format!("{from}: {left_out}"));
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
            Progress::Bad { from, bad, of } => {
                bad_rows(from, bad, of).iter().for_each(|line| self.meter.remark(line));
                self.left_out.push(LeftOut::new(from, bad, of));
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

/// How many rows can't be read and why, and a line for each of the first.
fn bad_rows(from: &str, bad: &BadRows, of: u64) -> Vec<String> {
    let of = text::counted(of, if bad.are_images() { "image" } else { "row" });
    let reasons = bad.reasons.iter().map(|(reason, rows)| format!("{} {rows}", reason.text()));
    let reasons = reasons.collect::<Vec<_>>().join(", ");
    let head = format!("{from}: {} of {of} left out, which can't be read: {reasons}", bad.rows);
    let first = bad.first.iter().map(|BadRow { at, problem }| format!("  {at}{problem}"));
    let others = bad.rows.saturating_sub(to_u64(bad.first.len()));
    let others = (others > 0).then(|| format!("  and {others} more"));
    std::iter::once(head).chain(first).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_ingest::{Place, Problem, Reason};

    #[test]
    fn bad_rows_are_counted_by_reason_and_the_first_are_shown() {
        let at = |line| Place {
            file: "t.csv".into(),
            line: Some(line),
            row: None,
            column: Some("a".into()),
            element: None,
        };
        let row = |line| BadRow { at: at(line), problem: Problem::NotANumber("x".into()) };
        let reasons = [(Reason::NoNumber, 21), (Reason::NumberOfValues, 2)];
        let bad = BadRows { rows: 23, reasons: reasons.into(), first: (2..22).map(row).collect() };
        let lines = bad_rows("t.csv", &bad, 100);
        assert_eq!(
            lines[0],
            "t.csv: 23 of 100 rows left out, which can't be read: another number of values 2, no number 21"
        );
        assert_eq!(lines[1], "  t.csv:2: column `a`: `x` is no number");
        assert_eq!((lines.len(), lines[21].as_str()), (22, "  and 3 more"));
        let json = serde_json::to_value(LeftOut::new("t.csv", &bad, 100)).unwrap();
        assert_eq!(json["reasons"], serde_json::json!({"no_number": 21, "number_of_values": 2}));
        assert_eq!(
            json["first"][0],
            serde_json::json!({"file": "t.csv", "line": 2, "column": "a", "problem": "`x` is no number"})
        );
    }
}
