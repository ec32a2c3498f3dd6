//! Reads the rows of a data file for other uses than training, such as `predict`.

use crate::{
    bounds::unbounded,
    error::{IngestError, Place},
    format,
    progress::Progress,
    source::Finder,
    table::{Pass, Reading, Rows, Table, TextReading, Wanted},
};
use sojourn_protocol::{
    quantity::to_usize,
    spec::{
        Categories, CategoriesSpec, Channels, DateFeatures, Dialect, Missing, OnBad, SourceSpec,
    },
};
use std::{collections::BTreeMap, path::Path};

/// How a data file is to be read.
#[derive(Debug, Clone)]
pub struct ReadOptions<'a> {
    /// The columns of a table that make up a row, in this order; all but the label where it is empty.
    /// Arrays have no names and are taken whole.
    pub features: &'a [String],
    /// Where the channels of an image are in a row of an array.
    pub channels: Channels,
    /// Shape of a row as a model takes it. Rows of arrays that have this shape, or are flat, are taken as they are, whatever
    /// `channels` says. If it is empty, `channels` decides. Images are scaled to it, and refused if it is empty.
    pub in_order: &'a [u32],
    /// Columns of words among them, with their words.
    pub categories: &'a [Categories],
    /// The treatment of missing values of a table.
    pub missing: Missing,
    /// The values of missing features where they are the mean, for each feature.
    pub fill: &'a [f32],
    /// How the fields of a table are written.
    pub dialect: &'a Dialect,
    /// The folder that paths are relative to.
    pub base_dir: &'a Path,
    /// Where a remote file is copied to, until the reader is dropped; made where it isn't there.
    pub spool: &'a Path,
}

/// A data file (a folder, a URL), to be read as often as asked, in bounded memory.
///
/// ```no_run
/// use sojourn_ingest::{ReadOptions, Reader};
/// use sojourn_protocol::spec::{Channels, Dialect, Missing, SourceSpec};
/// use std::path::Path;
///
/// let source = SourceSpec {
///     data: "digits.csv".into(), features: None, label: Some("label".into()), labels: None,
/// };
/// let options = ReadOptions {
///     features: &[], channels: Channels::First, in_order: &[], categories: &[],
///     missing: Missing::Refuse, fill: &[], dialect: &Dialect::default(),
///     base_dir: Path::new(""), spool: Path::new("/tmp"),
/// };
/// let reader = Reader::open(&source, &options, &mut |_| {})?;
/// let mut rows = reader.rows()?;
/// while let Some(row) = rows.next_row()? {
///     println!("{:?} {:?}", row.numbers, row.label);
/// }
/// # Ok::<(), sojourn_ingest::IngestError>(())
/// ```
pub struct Reader {
    table: Box<dyn Table>,
}

/// A row.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<'a> {
    /// The row's features, unscaled, as many as the product of [`Reader::shape`].
    pub numbers: &'a [f32],
    /// The row's label as text, where the file has labels; empty where this row has none. Classes are compared by it.
    pub label: Option<&'a [u8]>,
    /// The file that it is, of a folder of images: the folder as it was named, and what comes below.
    pub file: Option<&'a str>,
}

impl Reader {
    /// Finds the file and reads its header. Labels are read where they are there, and not missed
    /// where they aren't. Blocks; inside an async runtime it must be called where blocking is allowed.
    ///
    /// # Errors
    /// A file that isn't there or can't be read as any format; a column that is missing.
    pub fn open(
        source: &SourceSpec,
        options: &ReadOptions<'_>,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Self, IngestError> {
        let mut finder = Finder::new(options.base_dir, options.spool, &unbounded(), progress);
        let Columns { names, hours } = Columns::of(options);
        let categories: Vec<CategoriesSpec> = options.categories.iter().map(said).collect();
        let reading = Reading {
            channels: options.channels,
            in_order: options.in_order,
            image: options.in_order,
            on_bad_image: OnBad::Refuse,
            wanted: Wanted::Features(&names),
            has_shape: true,
            text: TextReading {
                separator: None,
                columns: None,
                categories: &categories,
                missing: options.missing,
                // Each row to predict has a prediction.
                on_bad_row: OnBad::Refuse,
                loss: None,
                fill: options.fill,
                dialect: options.dialect,
                groups: None,
                train: &[],
                hours: Some(&hours),
            },
        };
        Ok(Self { table: format::open(&mut finder, "data", source, reading)? })
    }

    /// Shape of a row; a table's is flat.
    #[must_use]
    pub fn shape(&self) -> &[u32] {
        &self.table.schema().shape
    }

    /// Names of a row's numbers; none for arrays.
    #[must_use]
    pub fn features(&self) -> &[String] {
        &self.table.schema().features
    }

    /// Columns that are neither asked for nor the label.
    #[must_use]
    pub fn ignored(&self) -> &[String] {
        &self.table.schema().ignored
    }

    /// Does every row have a label?
    #[must_use]
    pub fn has_labels(&self) -> bool {
        self.table.schema().has_labels
    }

    /// Bytes that a pass reads, for progress.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.table.bytes(Pass::All)
    }

    /// Begins a pass over the rows, in the file's order.
    ///
    /// # Errors
    /// Whatever the disk says.
    pub fn rows(&self) -> Result<RowReader<'_>, IngestError> {
        let has_labels = self.has_labels();
        Ok(RowReader { rows: self.table.rows(Pass::All)?, has_labels })
    }
}

/// The columns that a model's features were made of.
struct Columns {
    /// All names, in order.
    names: Vec<String>,
    /// Columns of dates of which the hour is a feature.
    hours: Vec<String>,
}

impl Columns {
    fn of(options: &ReadOptions<'_>) -> Self {
        let features = options.features;
        let coded: BTreeMap<usize, &Categories> =
            options.categories.iter().map(|coded| (to_usize(coded.first), coded)).collect();
        let dated: BTreeMap<String, (&String, DateFeatures)> = options
            .dialect
            .dates
            .iter()
            .filter_map(|(column, dates)| {
                let first = dates.features(column, false).into_iter().next()?;
                Some((first, (column, *dates)))
            })
            .collect();
        let (mut names, mut hours) = (Vec::with_capacity(features.len()), Vec::new());
        let mut index = 0;
        while let Some(feature) = features.get(index) {
            let (name, width) = match (coded.get(&index), dated.get(feature)) {
                (Some(coded), _) => (&coded.column, coded.width()),
                (None, Some((column, dates))) => {
                    let with_hour = dates.features(column, true);
                    let has_hour =
                        features.get(index..).unwrap_or_default().starts_with(&with_hour);
                    if has_hour {
                        hours.push((*column).clone());
                    }
                    (*column, dates.features(column, has_hour).len())
                }
                (None, None) => (feature, 1),
            };
            names.push(name.clone());
            index = index.saturating_add(width.max(1));
        }
        Self { names, hours }
    }
}

fn said(coded: &Categories) -> CategoriesSpec {
    let Categories { column, coding, words, first: _ } = coded.clone();
    CategoriesSpec { column, coding, words: Some(words) }
}

/// A pass over rows.
pub struct RowReader<'a> {
    rows: Box<dyn Rows + 'a>,
    has_labels: bool,
}

impl RowReader<'_> {
    /// The next row; `None` after the last.
    ///
    /// # Errors
    /// The problem, with file and line or row.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, IngestError> {
        if !self.rows.advance()? {
            return Ok(None);
        }
        let label = self.has_labels.then(|| self.rows.label());
        Ok(Some(Row { numbers: self.rows.numbers(), label, file: self.rows.file() }))
    }

    /// Where the label of the last row is.
    #[must_use]
    pub fn label_place(&self) -> Place {
        self.rows.label_place()
    }

    /// Bytes read so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.rows.bytes_read()
    }
}
