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
    rows: u64,
    pub(crate) batch_size: u64,
    /// Each ends with an evaluation.
    pub(crate) epochs: u64,
    /// Passes over the rows in an epoch.
    pub(crate) passes: u64,
}

/// Rows of which some dozen or hundred are set aside to compare trials by.
const FEW_ROWS: u64 = 20_000;

impl Length {
    /// Of a table: some thousand steps, of batches that grow with the rows. Few evaluations, since the best of many is the luckiest.
    pub(crate) fn of(rows: u64) -> Self {
        /// Steps of a trial.
        const STEPS: u64 = 4000;
        const EPOCHS: u64 = 12;
        let batch_size = match rows {
            0..400 => 16,
            400..1000 => 32,
            1000..2000 => 64,
            2000..200_000 => 128,
            _ => 512,
        };
        let steps = (rows * 4 / 5).div_ceil(batch_size).max(1);
        let all = (STEPS / steps).clamp(6, 60);
        let passes = (all / EPOCHS).max(1);
        Self { rows, batch_size, epochs: all / passes, passes }
    }

    /// Of images.
    pub(crate) fn of_images(rows: u64) -> Self {
        let batch_size = match rows {
            0..1000 => 16,
            1000..20_000 => 32,
            20_000..200_000 => 128,
            _ => 512,
        };
        Self { rows, batch_size, epochs: 15, passes: 1 }
    }

    /// Are trials compared by few rows?
    pub(crate) const fn is_of_few_rows(self) -> bool {
        self.rows < FEW_ROWS
    }
}

/// Epochs without progress after which a trial ends; none where a search is short: the rate is to fall first.
pub(crate) fn patience(length: Length) -> Option<u64> {
    (length.passes == 1).then_some((length.epochs / 3).max(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_data_is_passed_over_more_often() {
        let of = |rows| {
            let Length { batch_size, epochs, passes, .. } = Length::of(rows);
            (batch_size, epochs, passes)
        };
        assert_eq!(of(150), (16, 12, 5));
        assert_eq!(of(1797), (64, 12, 5));
        assert_eq!(of(20_000), (128, 16, 2));
        assert_eq!(of(50_000), (128, 12, 1));
        assert_eq!(of(10_000_000), (512, 6, 1));
    }
}
