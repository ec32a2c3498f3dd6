//! Columns of words: their words, and the numbers that they become.

use crate::{error::Problem, missing::MissingValues, number::shown, words::Words};
use sojourn_protocol::{
    bounds::MAX_GIVEN_NAME_CHARS,
    quantity::SaturatingFrom as _,
    spec::{Categories, CategoriesSpec, Coding, MAX_WORDS},
};
use std::{collections::HashMap, ops::Range};

/// A column of words.
#[derive(Debug, Clone)]
pub(super) struct WordColumn {
    /// The column's words in order; none until they are known.
    words: Vec<String>,
    places: HashMap<String, usize>,
    column: String,
    coding: Coding,
    /// The index of its first feature.
    first: usize,
    missing: MissingValues,
}

/// A field of a column of words.
pub(super) enum Field {
    /// The word at this place of the list.
    Word(usize),
    /// No word of the list, and a way to write that a value is missing.
    Missing,
}

impl WordColumn {
    pub(super) fn new(spec: &CategoriesSpec, missing: &MissingValues) -> Self {
        let CategoriesSpec { column, coding, words } = spec;
        let mut new = Self {
            words: Vec::new(),
            places: HashMap::new(),
            column: column.clone(),
            coding: *coding,
            first: 0,
            missing: missing.clone(),
        };
        new.set_words(words.clone().unwrap_or_default());
        new
    }

    pub(super) fn column(&self) -> &str {
        &self.column
    }

    pub(super) fn is_known(&self) -> bool {
        !self.words.is_empty()
    }

    pub(super) fn set_words(&mut self, words: Vec<String>) {
        self.places = words.iter().enumerate().map(|(place, word)| (word.clone(), place)).collect();
        self.words = words;
    }

    /// Places its features behind `first` others; returns their names.
    pub(super) fn place(&mut self, first: usize) -> Vec<String> {
        self.first = first;
        self.categories().features()
    }

    pub(super) fn categories(&self) -> Categories {
        Categories {
            column: self.column.clone(),
            coding: self.coding,
            words: self.words.clone(),
            first: u32::saturating_from(self.first),
        }
    }

    /// The places of the column's features in a row.
    pub(super) fn features(&self) -> Range<usize> {
        let width = if self.coding == Coding::OneHot { self.words.len() } else { 1 };
        self.first..self.first.saturating_add(width)
    }

    /// The meaning of a field, once the words are known.
    pub(super) fn field(&self, field: &[u8]) -> Result<Field, Problem> {
        let field = field.trim_ascii();
        let word = std::str::from_utf8(field).map_err(|_| Problem::UnknownEncoding)?;
        match self.places.get(word) {
            Some(place) => Ok(Field::Word(*place)),
            None if self.missing.contains(field) => Ok(Field::Missing),
            None => Err(Problem::UnseenWord(shown(field))),
        }
    }

    /// Writes the numbers of its word at `place` into a row.
    pub(super) fn write(&self, place: usize, row: &mut [f32]) {
        let Some(features) = row.get_mut(self.features()) else { return };
        match self.coding {
            Coding::OneHot => {
                features.fill(0.0);
                if let Some(feature) = features.get_mut(place) {
                    *feature = 1.0;
                }
            }
            #[expect(clippy::cast_precision_loss, reason = "at most `MAX_WORDS`")]
            Coding::Ordinal => features.fill(place as f32),
        }
    }
}

/// A field of a column whose words aren't known yet.
pub(super) enum Found<'a> {
    /// A word that was there before.
    Known,
    /// A word that is there for the first time.
    New(&'a str),
    Missing,
}

/// Looks a field up among the words that were found so far.
pub(super) fn find<'a>(
    words: &Words,
    missing: &MissingValues,
    field: &'a [u8],
) -> Result<Found<'a>, Problem> {
    let field = field.trim_ascii();
    if missing.contains(field) {
        return Ok(Found::Missing);
    }
    let word = std::str::from_utf8(field).map_err(|_| Problem::UnknownEncoding)?;
    if words.contains(word) {
        return Ok(Found::Known);
    }
    if word.chars().nth(MAX_GIVEN_NAME_CHARS).is_some() {
        return Err(Problem::LongWord { limit: MAX_GIVEN_NAME_CHARS });
    }
    if words.len() == MAX_WORDS {
        return Err(Problem::TooManyWords { limit: MAX_WORDS });
    }
    Ok(Found::New(word))
}
