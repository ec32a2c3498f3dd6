//! A pass over images.

use super::{Files, Images, decode::decode, fit::fit, walk::Walk};
use crate::{
    bounds::Step,
    error::{IngestError, Place, Problem},
    source::SourceFile,
    table::{Pass, Rows},
};
use sojourn_protocol::quantity::to_u64;
use std::io::Read;

/// Most bytes of an image's file, which is read whole.
const MAX_FILE: u64 = 256 << 20;

/// A pass over images, in the order of their names.
pub(super) struct ImageRows<'a> {
    images: &'a Images,
    pass: Pass,
    walk: Option<Walk>,
    /// The one file, where it hasn't been read.
    one: Option<&'a SourceFile>,
    shown: String,
    label: Vec<u8>,
    file: Vec<u8>,
    numbers: Vec<f32>,
    read: u64,
}

impl<'a> ImageRows<'a> {
    pub(super) fn new(images: &'a Images, pass: Pass) -> Result<Self, IngestError> {
        let (walk, one) = match &images.files {
            Files::Folder(folder) => (Some(Walk::new(folder, &images.schema.shown)?), None),
            Files::One(file) => (None, Some(file)),
        };
        let (shown, label) = (String::new(), Vec::new());
        let (file, numbers) = (Vec::new(), Vec::new());
        Ok(Self { images, pass, walk, one, shown, label, file, numbers, read: 0 })
    }

    /// Decodes one file to the numbers of a row.
    fn decode(&mut self, file: &SourceFile) -> Result<(), IngestError> {
        self.file.clear();
        let raw = file.raw()?;
        let read = raw.take(MAX_FILE + 1).read_to_end(&mut self.file);
        let read = to_u64(read.map_err(|error| file.failed(error))?);
        if read > MAX_FILE {
            return Err(file.refuse(Problem::LargeImageFile { limit: MAX_FILE }));
        }
        self.read = self.read.saturating_add(read);
        let size = self.images.size;
        let picture = decode(&self.file, size).map_err(|problem| file.refuse(problem))?;
        file.bounds().admit(Step::Unpacked(to_u64(picture.pixels.len())))?;
        self.numbers.clear();
        self.numbers.extend(fit(&picture, size).into_iter().map(f32::from));
        debug_assert_eq!(self.numbers.len(), size.numbers());
        Ok(())
    }
}

impl Rows for ImageRows<'_> {
    fn advance(&mut self) -> Result<bool, IngestError> {
        if let Some(file) = self.one.take() {
            self.shown = file.shown().to_owned();
            if self.pass == Pass::All {
                self.decode(file)?;
            }
            return Ok(true);
        }
        let found = self.walk.as_mut().map(Walk::next).transpose()?.flatten();
        let Some(found) = found else { return Ok(false) };
        if self.pass == Pass::All {
            self.decode(&SourceFile::at(found.path, &found.shown, &self.images.bounds)?)?;
        }
        self.shown = found.shown;
        self.label.clear();
        self.label.extend(found.class.unwrap_or_default().into_bytes());
        Ok(true)
    }

    fn numbers(&self) -> &[f32] {
        &self.numbers
    }

    fn label(&self) -> &[u8] {
        &self.label
    }

    fn file(&self) -> Option<&str> {
        self.walk.as_ref().map(|_| self.shown.as_str())
    }

    fn label_place(&self) -> Place {
        Place::of(&self.shown)
    }

    fn bytes_read(&self) -> u64 {
        self.read
    }
}
