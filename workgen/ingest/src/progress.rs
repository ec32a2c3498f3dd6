//! Progress while data is read.

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
        /// Its size.
        bytes: u64,
        /// Where it lies until the command ends.
        folder: &'a Path,
    },
    /// All files are being read, over both passes.
    Reading {
        /// Bytes read.
        bytes: u64,
        /// Bytes to read.
        of: u64,
    },
}
