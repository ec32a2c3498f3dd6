//! Columns of words in a table, and how they become numbers.

use serde::{Deserialize, Serialize};

/// Most words of one column.
pub const MAX_WORDS: usize = 4 << 10;
/// Most columns of words.
pub const MAX_WORD_COLUMNS: usize = 1 << 10;

/// How the words of a column become numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Coding {
    /// A feature for each word, which is 1 in rows with that word, else 0.
    OneHot,
    /// One feature: the place of the word in the list, from 0.
    Ordinal,
}

/// A column whose values are words, as a job says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CategoriesSpec {
    /// The column's name.
    pub column: String,
    /// How it becomes numbers.
    pub coding: Coding,
    /// The column's words in order. `None`: those of the training file, by number where all are whole numbers, else by bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<Vec<String>>,
}

/// A column whose values are words, with the features that it became.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Categories {
    /// The column's name.
    pub column: String,
    /// How it became numbers.
    pub coding: Coding,
    /// The column's words in order, at least one.
    pub words: Vec<String>,
    /// The index of its first feature in a row.
    pub first: u32,
}

impl Categories {
    /// Features that it became.
    #[must_use]
    pub const fn width(&self) -> usize {
        match self.coding {
            Coding::OneHot => self.words.len(),
            Coding::Ordinal => 1,
        }
    }

    /// Names of these features: `column=word` for each word, or the column's own.
    #[must_use]
    pub fn features(&self) -> Vec<String> {
        let named = |word: &String| format!("{}={word}", self.column);
        match self.coding {
            Coding::OneHot => self.words.iter().map(named).collect(),
            Coding::Ordinal => vec![self.column.clone()],
        }
    }
}
