//! Tables: every format is read as rows of numbers with a label each, in the file's order.
//!
//! Must not know formats, and formats must not know shards.

use crate::{
    bad::{BadRows, Rule},
    error::{BadRow, IngestError, Place, Problem},
    number::{number_in, shown},
    words::Words,
};
use sojourn_protocol::spec::{
    Categories, CategoriesSpec, Channels, Columns, DecimalSign, Dialect, Loss, Missing, Notation,
    OnBad, Separator, TextEncoding,
};
use std::collections::{BTreeMap, BTreeSet};

/// A source's rows, to be read as often as asked.
pub(crate) trait Table: Send + Sync {
    /// The schema of the rows.
    fn schema(&self) -> &Schema;
    /// Bytes that a pass reads, for progress.
    fn bytes(&self, pass: Pass) -> u64;
    /// Begins a pass over the rows.
    fn rows(&self, pass: Pass) -> Result<Box<dyn Rows + '_>, IngestError>;
    /// Refuses where a row isn't what it is in the training data.
    fn fits(&self, train: &Schema) -> Result<(), IngestError>;
    /// Takes the words of columns whose words weren't known, as the training file has them.
    fn set_words(&mut self, _: &BTreeMap<String, Words>) -> Result<(), IngestError> {
        Ok(())
    }
    /// Columns of words, once all words are known.
    fn categories(&self) -> Vec<Categories> {
        Vec::new()
    }
    /// Takes what missing features are, for each feature. Until then they are NaN where they are to be the mean.
    fn set_fill(&mut self, _: &[f32]) {}
    /// The treatment of rows that can't be read.
    fn on_bad(&self) -> OnBad {
        OnBad::Refuse
    }
    /// Where the labels are, as a whole.
    fn labels_place(&self) -> Place;
    /// How shards keep the numbers of its rows.
    fn element(&self) -> Element {
        Element::Single
    }

    /// A problem of the whole.
    fn refuse(&self, problem: Problem) -> IngestError {
        Place::of(&self.schema().shown).refuse(problem)
    }

    /// The second pass found something else than the first.
    fn changed(&self) -> IngestError {
        self.refuse(Problem::Changed)
    }
}

/// How shards keep the numbers of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    /// Whole numbers from 0 to 255, a byte each.
    Byte,
    /// Single precision.
    Single,
}

/// The parts of each row that a pass reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// The row's presence, and its label.
    Labels,
    /// The row's numbers and, where the source has them, its label.
    All,
    /// All of it, to list what is wrong with rows.
    Problems,
}

impl Pass {
    /// The treatment of bad rows, where the job says this about them.
    pub(crate) const fn rule(self, on_bad: OnBad) -> Rule {
        match self {
            Pass::Labels | Pass::All => Rule::reading(on_bad),
            Pass::Problems => Rule::listing(on_bad),
        }
    }
}

/// A pass over rows.
pub(crate) trait Rows: Send {
    /// Goes to the next row; `false` after the last.
    fn advance(&mut self) -> Result<bool, IngestError>;
    /// The row's features, in the order of the schema; empty in a pass over labels.
    fn numbers(&self) -> &[f32];
    /// The row's label as text; empty where there is none.
    fn label(&self) -> &[u8];
    /// The name of the group that the row is of, where the job names the column of groups; else empty.
    fn group(&self) -> &[u8] {
        &[]
    }
    /// The file that is the row, of a folder with a file for each.
    fn file(&self) -> Option<&str> {
        None
    }
    /// Where the row's label is.
    fn label_place(&self) -> Place;
    /// Bytes read so far in this pass.
    fn bytes_read(&self) -> u64;
    /// Rows left out so far in this pass.
    fn left_out(&self) -> &LeftOut {
        &NOTHING_LEFT_OUT
    }

    /// The problems that a pass which lists them found so far.
    fn listed(&mut self) -> Vec<BadRow> {
        Vec::new()
    }

    /// Of each column whose words aren't known yet: those so far in this pass, by the column's name.
    fn words(&mut self) -> BTreeMap<String, Words> {
        BTreeMap::new()
    }

    /// A problem of this row's label.
    fn refuse_label(&self, problem: Problem) -> IngestError {
        self.label_place().refuse(problem)
    }

    /// The label as a number.
    fn label_number(&self) -> Result<f32, IngestError> {
        let number = label_number(Notation::default(), self.label());
        number.map_err(|problem| self.refuse_label(problem))
    }
}

/// A label as a number, in this notation.
pub(crate) fn label_number(notation: Notation, label: &[u8]) -> Result<f32, Problem> {
    number_in(notation, label).map_err(|problem| match problem {
        Problem::NotANumber(text) => Problem::LabelNotANumber(text),
        other => other,
    })
}

/// Longest name of a class, in bytes; it bounds what the survey keeps.
const MAX_LABEL: usize = 1024;

/// The class that a label names.
pub(crate) fn class(label: &[u8]) -> Result<&str, Problem> {
    if label.is_empty() {
        return Err(Problem::Missing);
    }
    if label.len() > MAX_LABEL {
        return Err(Problem::LongLabel { limit: MAX_LABEL });
    }
    let name = std::str::from_utf8(label).map_err(|_| Problem::UnknownEncoding)?;
    // Many programs write `nan` for a missing value.
    if name.eq_ignore_ascii_case("nan") {
        return Err(Problem::NotFinite(name.to_owned()));
    }
    Ok(name)
}

static NOTHING_LEFT_OUT: LeftOut =
    LeftOut { incomplete: 0, unlabelled: 0, words: BTreeSet::new(), bad: BadRows::none() };
/// Most words of rows without a label that are told.
const MAX_WORDS: usize = 4;

/// Rows that a pass left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Rows with a missing feature.
    pub(crate) incomplete: u64,
    /// Rows without a label.
    pub(crate) unlabelled: u64,
    /// Some of the words that they have instead.
    pub(crate) words: BTreeSet<String>,
    /// Rows that can't be read.
    pub(crate) bad: BadRows,
}

impl LeftOut {
    /// Counts a row that has this in the place of its label.
    pub(crate) fn add_unlabelled(&mut self, field: &[u8]) {
        self.unlabelled += 1;
        if !field.is_empty() && self.words.len() < MAX_WORDS {
            self.words.insert(shown(field));
        }
    }

    /// All of them.
    pub(crate) fn rows(&self) -> u64 {
        self.incomplete + self.unlabelled + self.bad.rows
    }
}

/// The columns and the shape of a source's rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Schema {
    /// The source, as the job writes it.
    pub(crate) shown: String,
    /// The source's first file, for comparisons.
    pub(crate) first: String,
    /// Every column in order, the label among them; none where the values have no names.
    pub(crate) columns: Vec<String>,
    /// The names of a row's numbers; none where they have no names.
    pub(crate) features: Vec<String>,
    /// Columns that nobody asked for.
    pub(crate) ignored: Vec<String>,
    /// Shape of a row's numbers.
    pub(crate) shape: Vec<u32>,
    /// Numbers in a row: the product of the shape.
    pub(crate) width: usize,
    /// Are there labels?
    pub(crate) has_labels: bool,
}

impl Schema {
    /// Has a row without names the shape that rows of the training data have? Of a table, which knows no shape, as many numbers.
    pub(crate) fn fits_rows_of(&self, train: &Schema) -> Result<(), Problem> {
        let is_same = match train.columns.is_empty() {
            true => self.shape == train.shape,
            false => self.width == train.width,
        };
        if is_same {
            return Ok(());
        }
        Err(Problem::RowShape {
            actual: self.shape.clone(),
            expected: train.shape.clone(),
            of: train.first.clone(),
        })
    }
}

/// The parts of a source that a caller reads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// Everything, with a label for each row: to train on.
    Labelled,
    /// Columns of these names (all but the label where there are none), and the label where it is
    /// there: to predict.
    Features(&'a [String]),
}

/// How a source is to be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) channels: Channels,
    /// Rows of arrays that have this shape are in the order of models, whatever `channels` says, and so
    /// are flat ones; empty where that isn't known.
    pub(crate) in_order: &'a [u32],
    pub(crate) wanted: Wanted<'a>,
    /// The shape that images are scaled to; empty where nobody said one.
    pub(crate) image: &'a [u32],
    pub(crate) on_bad_image: OnBad,
    /// Does the job say a row's shape? Then nothing is guessed from it.
    pub(crate) has_shape: bool,
    pub(crate) text: TextReading<'a>,
}

/// How text is to be read as a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextReading<'a> {
    /// `None` is found out by the header.
    pub(crate) separator: Option<Separator>,
    /// The features of data to train on; `None` is all but the label.
    pub(crate) columns: Option<&'a Columns>,
    pub(crate) categories: &'a [CategoriesSpec],
    pub(crate) missing: Missing,
    pub(crate) on_bad_row: OnBad,
    /// The loss that labels are for, of data to train on.
    pub(crate) loss: Option<Loss>,
    /// The values of missing features, where they are known.
    pub(crate) fill: &'a [f32],
    /// How fields are written.
    pub(crate) dialect: &'a Dialect,
    /// The column that names the groups of rows, of data to train on.
    pub(crate) groups: Option<&'a str>,
    /// The columns of the training data, for others whose files don't list their own.
    pub(crate) train: &'a [String],
    /// The columns of dates of which the hour is a feature; `None` where the data is to show it.
    pub(crate) hours: Option<&'a [String]>,
}

impl TextReading<'_> {
    /// A key that something is said by.
    pub(crate) fn said(&self) -> Option<&'static str> {
        let said = [
            (self.separator.is_some(), "separator"),
            (self.columns.is_some(), "columns"),
            (!self.categories.is_empty(), "categories"),
            (!self.missing.is_refuse(), "missing"),
            (!self.on_bad_row.is_refuse(), "on_bad_row"),
            (self.dialect.missing_values.is_some(), "missing_values"),
            (!self.dialect.dates.is_empty(), "dates"),
            (self.groups.is_some(), "groups"),
        ];
        let said = said.into_iter().find(|(is_said, _)| *is_said).map(|(_, key)| key);
        said.or_else(|| self.said_of_text())
    }

    /// A key that something is said by of text alone.
    pub(crate) fn said_of_text(&self) -> Option<&'static str> {
        let numbers = self.dialect.numbers;
        let said = [
            (self.separator.is_some(), "separator"),
            (self.dialect.header.is_some(), "header"),
            (self.dialect.encoding != TextEncoding::Utf8, "encoding"),
            (numbers.decimal != DecimalSign::Point, "decimal"),
            (numbers.thousands.is_some(), "thousands"),
        ];
        said.into_iter().find(|(is_said, _)| *is_said).map(|(_, key)| key)
    }
}
