//! Images: a folder with a folder of JPEG, PNG, TIFF and WebP files for each class, or for predictions a folder of images, or one
//! image.
//!
//! ```text
//! walk: files in order -- one file --> decode: gray or RGB --> fit: to the shape of a row --> a row of numbers from 0 to 255
//! ```
//!
//! Numbers are whole, a byte each in shards, unless an image has 16 bits a channel: then they have steps of 1/257.
//!
//! A row is the same bytes on any machine. So nothing in here may depend on the instructions that a processor has: JPEG is
//! decoded without vector code, and images are scaled in whole numbers.
//!
//! One image is in memory at a time, and the names of the files of one folder. Before the passes, the first
//! bytes of each file are read, until one says that it has 16 bits a channel. The pass over labels opens no image, unless those
//! that can't be read are left out.

mod decode;
mod exif;
mod fit;
mod jpeg;
mod look;
mod picture;
mod png;
mod rows;
mod sample;
mod tiff;
mod walk;
mod webp;

use decode::has_words;
pub(crate) use decode::is_image;
pub use look::ImagesProfile;
pub(crate) use look::look;

use crate::{
    bounds::SharedBounds,
    error::{IngestError, Place, Problem},
    progress::Progress,
    source::{Finder, FolderOfImages, SourceFile},
    table::{Element, Pass, Reading, Rows, Schema, Table, Wanted},
};
use fit::Size;
use rows::ImageRows;
use sojourn_protocol::{
    quantity::to_usize,
    spec::{Channels, OnBad, SourceSpec},
};
use std::path::PathBuf;
use walk::Walk;

/// Most numbers in a row, as of arrays.
const MAX_WIDTH: u32 = 64 << 20;

/// Images as rows of bytes, `[channels, height, width]`.
#[derive(Debug, Clone)]
pub(crate) struct Images {
    files: Files,
    schema: Schema,
    size: Size,
    /// The treatment of those that can't be read.
    on_bad: OnBad,
    /// Has one of them 16 bits a channel?
    has_words: bool,
    /// Of all files.
    bytes: u64,
    bounds: SharedBounds,
}

/// Where images lie.
#[derive(Debug, Clone)]
enum Files {
    /// In this folder and those below.
    Folder(PathBuf),
    One(SourceFile),
}

impl Images {
    /// The images of the folder that `key` of the job names; `None` where it is no folder, or one of other data.
    pub(crate) fn in_folder(
        finder: &mut Finder<'_>,
        key: &'static str,
        source: &SourceSpec,
        reading: Reading<'_>,
    ) -> Result<Option<Self>, IngestError> {
        let label = match reading.wanted {
            Wanted::Features([column, ..]) => Some(column.as_str()),
            Wanted::Labelled | Wanted::Features([]) => source.label.as_deref(),
        };
        let folder = finder.folder_of_images(key, &source.data, label)?;
        let Some(FolderOfImages { path: folder, tables }) = folder else { return Ok(None) };
        let labelled = matches!(reading.wanted, Wanted::Labelled);
        let bounds = SharedBounds::clone(finder.bounds());
        let counted = Counted::of(Walk::new(&folder, &source.data)?, labelled, &bounds)?;
        // Pictures of what tables show lie in no folders of classes.
        if tables > 0 && counted.classed.is_none() {
            return Ok(None);
        }
        let Some(first) = counted.classed.as_ref().or(counted.bare.as_ref()) else {
            let Some(other) = counted.other else { return Ok(None) };
            return Err(Place::of(&other).refuse(Problem::OtherImage));
        };
        let size = said(source, reading, &Place::of(first))?;
        match &counted {
            Counted { classed: Some(_), bare: Some(bare), .. } => {
                return Err(Place::of(bare).refuse(Problem::ImageWithoutClass));
            }
            Counted { classed: None, .. } if labelled => {
                return Err(Place::of(&source.data).refuse(Problem::NoClassFolders));
            }
            Counted { .. } => {}
        }
        if counted.skipped > 0 {
            finder.tell(Progress::Skipped { from: &source.data, files: counted.skipped });
        }
        let schema = schema(source, first, size, counted.classed.is_some());
        let (files, bytes) = (Files::Folder(folder), counted.bytes);
        let (on_bad, has_words) = (reading.on_bad_image, counted.has_words);
        Ok(Some(Self { files, schema, size, on_bad, has_words, bytes, bounds }))
    }

    /// One image, to predict.
    pub(crate) fn one(
        file: SourceFile,
        source: &SourceSpec,
        reading: Reading<'_>,
    ) -> Result<Self, IngestError> {
        if matches!(reading.wanted, Wanted::Labelled) {
            return Err(file.refuse(Problem::OneImage));
        }
        let size = said(source, reading, &Place::of(file.shown()))?;
        let schema = schema(source, file.shown(), size, false);
        let (bytes, bounds) = (file.bytes(), SharedBounds::clone(file.bounds()));
        let on_bad = OnBad::Refuse;
        let has_words = has_words(&mut file.raw()?);
        Ok(Self { bytes, files: Files::One(file), schema, size, on_bad, has_words, bounds })
    }
}

/// The images of a folder.
#[derive(Default)]
struct Counted {
    /// The first that lies in a folder of a class.
    classed: Option<String>,
    /// The first that lies in none.
    bare: Option<String>,
    /// The first of a format that isn't read.
    other: Option<String>,
    /// Files that are no images.
    skipped: u64,
    bytes: u64,
    /// Has one of them 16 bits a channel?
    has_words: bool,
}

impl Counted {
    /// Of data to train on, images that aren't read are a matter of the passes.
    fn of(mut walk: Walk, is_labelled: bool, bounds: &SharedBounds) -> Result<Self, IngestError> {
        let mut counted = Self::default();
        while let Some(found) = walk.next()? {
            let first = match (found.is_read, found.class) {
                (true, Some(_)) => &mut counted.classed,
                (true, None) => &mut counted.bare,
                (false, _) if is_labelled => &mut counted.other,
                (false, _) => return Err(Place::of(&found.shown).refuse(Problem::OtherImage)),
            };
            if !counted.has_words && found.is_read {
                let file = SourceFile::at(found.path.clone(), &found.shown, bounds)?;
                counted.has_words = has_words(&mut file.raw()?);
            }
            first.get_or_insert(found.shown);
            let bytes = found.path.metadata().map_err(IngestError::io("look at", &found.path))?;
            counted.bytes = counted.bytes.saturating_add(bytes.len());
        }
        counted.skipped = walk.skipped();
        Ok(counted)
    }
}

/// The size that images are scaled to. Refuses what a job says about other kinds of data; `at` is the first image.
fn said(source: &SourceSpec, reading: Reading<'_>, at: &Place) -> Result<Size, IngestError> {
    let refuse = |problem| Err(at.clone().refuse(problem));
    if matches!(reading.wanted, Wanted::Labelled) {
        if let Some(key) = reading.text.said() {
            return refuse(Problem::ForTables(key));
        }
        // A model keeps the names that it was trained with, whatever it predicts.
        let label = source.label.as_ref().filter(|label| !label.is_empty());
        let foreign = [
            (source.features.is_some(), "features"),
            (label.is_some(), "label"),
            (source.labels.is_some(), "labels"),
            (reading.channels == Channels::Last, "channels"),
        ];
        if let Some((_, key)) = foreign.into_iter().find(|(is_said, _)| *is_said) {
            return refuse(Problem::NotForImages(key));
        }
    }
    match reading.image {
        [] => refuse(Problem::NoImageShape),
        [channels @ (1 | 3), height, width]
            if channels
                .checked_mul(*height)
                .and_then(|part| part.checked_mul(*width))
                .is_some_and(|numbers| (1..=MAX_WIDTH).contains(&numbers)) =>
        {
            let [channels, height, width] = [*channels, *height, *width].map(to_usize);
            Ok(Size { channels, height, width })
        }
        other => refuse(Problem::ImageShape { shape: other.to_vec(), limit: MAX_WIDTH }),
    }
}

fn schema(source: &SourceSpec, first: &str, size: Size, has_labels: bool) -> Schema {
    Schema {
        shown: source.data.clone(),
        first: first.to_owned(),
        shape: size.shape(),
        width: size.numbers(),
        has_labels,
        ..Schema::default()
    }
}

impl Table for Images {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn bytes(&self, pass: Pass) -> u64 {
        // Names are all that a pass over labels reads, unless images are left out.
        let is_by_name = pass == Pass::Labels && !pass.rule(self.on_bad).goes_on();
        if is_by_name { 0 } else { self.bytes }
    }

    fn rows(&self, pass: Pass) -> Result<Box<dyn Rows + '_>, IngestError> {
        Ok(Box::new(ImageRows::new(self, pass)?))
    }

    fn fits(&self, train: &Schema) -> Result<(), IngestError> {
        self.schema.fits_rows_of(train).map_err(|problem| self.refuse(problem))
    }

    fn on_bad(&self) -> OnBad {
        self.on_bad
    }

    fn labels_place(&self) -> Place {
        Place::of(&self.schema.shown)
    }

    fn element(&self) -> Element {
        if self.has_words { Element::Single } else { Element::Byte }
    }
}
