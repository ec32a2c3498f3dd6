//! Element types of tensors.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The element types that Sojourn stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Dtype {
    /// Bytes: whole numbers from 0 to 255.
    U8,
    /// IEEE 754 single precision.
    F32,
    /// Signed 64-bit integers.
    I64,
}

impl Dtype {
    /// Bytes of one element.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Dtype::U8 => 1,
            Dtype::F32 => 4,
            Dtype::I64 => 8,
        }
    }

    /// The word that safetensors headers use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Dtype::U8 => "U8",
            Dtype::F32 => "F32",
            Dtype::I64 => "I64",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "U8" => Some(Dtype::U8),
            "F32" => Some(Dtype::F32),
            "I64" => Some(Dtype::I64),
            _ => None,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
