//! The text of a job file.

use crate::number::quoted;
use std::fmt::Write as _;

/// The lines of a job file, in order.
#[derive(Debug, Default)]
pub(crate) struct JobText {
    text: String,
}

impl JobText {
    /// The beginning of every file.
    pub(crate) fn new(name: &str) -> Self {
        let mut job = Self::default();
        job.comment("Written by `sojourn init`. docs/job-file.md explains every key; `sojourn validate` checks the file.");
        job.line(format_args!("name = {}", quoted(name)));
        job.line(format_args!(
            "seed = 1                       # weights and the order of rows follow from it"
        ));
        job
    }

    pub(crate) fn section(&mut self, name: &str) {
        self.line(format_args!("\n{name}"));
    }

    pub(crate) fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to memory doesn't fail.
        let _ = writeln!(self.text, "{line}");
    }

    pub(crate) fn comment(&mut self, text: &str) {
        self.line(format_args!("# {text}"));
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// How long to train, by the number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Length {
    pub(crate) batch_size: u64,
    pub(crate) epochs: u64,
}

impl Length {
    /// Some thousand steps, of batches that grow with the rows.
    pub(crate) fn of(rows: u64) -> Self {
        /// Steps of a trial.
        const STEPS: u64 = 4000;
        let batch_size = match rows {
            0..1000 => FEW_ROWS_BATCH,
            1000..20_000 => 32,
            20_000..200_000 => 128,
            _ => 512,
        };
        let steps = (rows * 4 / 5).div_ceil(batch_size).max(1);
        Self { batch_size, epochs: (STEPS / steps).clamp(6, 60) }
    }
}

impl Length {
    /// Is it for less than a thousand rows?
    pub(crate) const fn is_of_few_rows(self) -> bool {
        self.batch_size == FEW_ROWS_BATCH
    }
}

/// Rows of a batch, where there are less than a thousand.
const FEW_ROWS_BATCH: u64 = 16;

/// Epochs without progress after which a trial ends.
pub(crate) fn patience(length: Length) -> u64 {
    (length.epochs / 4).max(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_data_is_passed_over_more_often() {
        assert_eq!(Length::of(150), Length { batch_size: 16, epochs: 60 });
        assert_eq!(Length::of(1797), Length { batch_size: 32, epochs: 60 });
        assert_eq!(Length::of(50_000), Length { batch_size: 128, epochs: 12 });
        assert_eq!(Length::of(10_000_000), Length { batch_size: 512, epochs: 6 });
    }
}
