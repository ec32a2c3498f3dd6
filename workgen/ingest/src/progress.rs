//! Progress while data is read.

use crate::bad::BadRows;
use sojourn_protocol::spec::Separator;
use std::path::Path;

/// How far reading is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// A remote or compressed file is being copied, once, to a temporary file.
    Loading {
        /// Which file or URL.
        from: &'a str,
        /// Bytes copied.
        bytes: u64,
        /// Bytes to copy, where that is known.
        of: Option<u64>,
    },
    /// Such a copy is complete.
    Loaded {
        /// Of which file or URL.
        from: &'a str,
        /// The size of the copy in bytes.
        bytes: u64,
        /// Where it lies until the command ends.
        folder: &'a Path,
    },
    /// The columns of a file aren't separated by commas, as its header shows.
    Separated {
        /// Which file.
        file: &'a str,
        /// The separator of the columns.
        by: Separator,
    },
    /// A workbook has several sheets, of which one is read.
    Sheet {
        /// Which workbook.
        file: &'a str,
        /// The sheet that is read.
        sheet: &'a str,
        /// The number of sheets that are shown.
        of: usize,
    },
    /// A folder of images has files that are none, which were left aside.
    Skipped {
        /// Of which source, as the job writes it.
        from: &'a str,
        /// How many.
        files: u64,
    },
    /// Columns without a name, which lie side by side, were left out.
    Unnamed {
        /// Of which source, as the job writes it.
        from: &'a str,
        /// The position of the first, from 1.
        column: usize,
        /// The position of the last.
        last: usize,
        /// Is it the first, where programs write the numbers of rows? Else it is empty.
        is_index: bool,
    },
    /// Rows without a label were left out.
    Unlabelled {
        /// Of which source, as the job writes it.
        from: &'a str,
        /// How many.
        rows: u64,
        /// Of how many.
        of: u64,
        /// Some of the words that they have instead; an empty field has none.
        words: &'a [String],
    },
    /// Labels that are equal as numbers are one class.
    SameClass {
        /// The name of the class.
        class: &'a str,
        /// Some of the ways in which labels are written.
        labels: &'a [String],
    },
    /// Rows with missing values were left out.
    Dropped {
        /// Of which source, as the job writes it.
        from: &'a str,
        /// How many.
        rows: u64,
        /// Of how many.
        of: u64,
    },
    /// Rows, or images, that can't be read were left out.
    Bad {
        /// Of which source, as the job writes it.
        from: &'a str,
        /// How many, why, and the first of them.
        bad: &'a BadRows,
        /// Of how many.
        of: u64,
    },
    /// All files are being read, over both passes.
    Reading {
        /// Bytes read.
        bytes: u64,
        /// Bytes to read.
        of: u64,
    },
}
