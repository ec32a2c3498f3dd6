//! The free bytes of the server's disk, against the floors that it keeps free.

use serde::{Deserialize, Serialize};

/// The level of room on a server's disk, which decides what the server still does.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StorageLevel {
    /// The server does everything.
    #[default]
    Enough,
    /// The server finishes the units that run. It gives out no new work, and takes no data of new jobs.
    Low,
    /// The server takes no checkpoints either: what is left is the journal's.
    Full,
}

impl StorageLevel {
    /// The status of a server that serves and has so much room.
    #[must_use]
    pub const fn status(self) -> &'static str {
        match self {
            Self::Enough => "ready",
            Self::Low => "storage-low",
            Self::Full => "storage-full",
        }
    }
}

/// The room on the server's disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Storage {
    /// The level that follows from the free bytes.
    pub level: StorageLevel,
    /// Bytes that are free.
    pub free: u64,
    /// Bytes below which no new work is given out.
    pub reserve: u64,
}

impl Storage {
    /// Is no new work given out?
    #[must_use]
    pub fn is_low(&self) -> bool {
        self.level >= StorageLevel::Low
    }

    /// Are no checkpoints taken?
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.level == StorageLevel::Full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_travels_as_its_name_and_says_what_is_left_out() {
        let of = |level| Storage { level, free: 1, reserve: 2 };
        let said = |level| serde_json::to_string(&of(level)).unwrap();
        assert_eq!(said(StorageLevel::Low), r#"{"level":"low","free":1,"reserve":2}"#);
        let figures = [StorageLevel::Enough, StorageLevel::Low, StorageLevel::Full]
            .map(|level| (of(level).is_low(), of(level).is_full(), level.status()));
        let expected =
            [(false, false, "ready"), (true, false, "storage-low"), (true, true, "storage-full")];
        assert_eq!(figures, expected);
    }
}
