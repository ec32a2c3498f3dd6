//! A pass over images.

use super::{
    Files, Images,
    decode::decode,
    fit::fit,
    picture::Decoded,
    sample::Sample,
    walk::{Found, Walk},
};
use crate::{
    bad::{Flow, Rule},
    bounds::Step,
    error::{BadRow, IngestError, Place, Problem},
    source::SourceFile,
    table::{LeftOut, Pass, Rows},
};
use sojourn_protocol::quantity::to_u64;
use std::{io::Read, mem};

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
    rule: Rule,
    left_out: LeftOut,
    /// Problems, in a pass that lists them.
    listed: Vec<BadRow>,
}

impl<'a> ImageRows<'a> {
    pub(super) fn new(images: &'a Images, pass: Pass) -> Result<Self, IngestError> {
        let (walk, one) = match &images.files {
            Files::Folder(folder) => (Some(Walk::new(folder, &images.schema.shown)?), None),
            Files::One(file) => (None, Some(file)),
        };
        let (shown, label) = (String::new(), Vec::new());
        let (file, numbers) = (Vec::new(), Vec::new());
        Ok(Self {
            images,
            pass,
            walk,
            one,
            shown,
            label,
            file,
            numbers,
            read: 0,
            rule: pass.rule(images.on_bad),
            left_out: LeftOut::default(),
            listed: Vec::new(),
        })
    }

    /// Decodes one file to the numbers of a row; or what is wrong with it.
    fn decode(&mut self, file: &SourceFile) -> Result<Option<Problem>, IngestError> {
        self.file.clear();
        let raw = file.raw()?;
        let read = raw.take(MAX_FILE + 1).read_to_end(&mut self.file);
        let read = to_u64(read.map_err(|error| file.failed(error))?);
        if read > MAX_FILE {
            return Ok(Some(Problem::LargeImageFile { limit: MAX_FILE }));
        }
        self.read = self.read.saturating_add(read);
        let size = self.images.size;
        let picture = match decode(&self.file, size) {
            Ok(picture) => picture,
            Err(problem) => return Ok(Some(problem)),
        };
        file.bounds().admit(Step::Unpacked(to_u64(picture.bytes())))?;
        self.numbers.clear();
        match &picture {
            Decoded::Bytes(picture) => {
                self.numbers.extend(fit(picture, size).into_iter().map(Sample::number));
            }
            Decoded::Words(picture) if self.images.has_words => {
                self.numbers.extend(fit(picture, size).into_iter().map(Sample::number));
            }
            Decoded::Words(_) => return Err(file.refuse(Problem::Changed)),
        }
        debug_assert_eq!(self.numbers.len(), size.numbers());
        Ok(None)
    }

    /// Reads an image as far as the pass wants it; or what is wrong with it.
    fn read(&mut self, found: &Found) -> Result<Option<Problem>, IngestError> {
        if !found.is_read {
            return Ok(Some(Problem::OtherImage));
        }
        if self.pass == Pass::Labels && !self.rule.goes_on() {
            return Ok(None);
        }
        let bounds = &self.images.bounds;
        self.decode(&SourceFile::at(found.path.clone(), &found.shown, bounds)?)
    }
}

impl Rows for ImageRows<'_> {
    fn advance(&mut self) -> Result<bool, IngestError> {
        if let Some(file) = self.one.take() {
            self.shown = file.shown().to_owned();
            if self.pass != Pass::Labels
                && let Some(problem) = self.decode(file)?
            {
                return Err(file.refuse(problem));
            }
            return Ok(true);
        }
        loop {
            let found = self.walk.as_mut().map(Walk::next).transpose()?.flatten();
            let Some(found) = found else { return Ok(false) };
            if let Some(problem) = self.read(&found)? {
                let bad = vec![BadRow { at: Place::of(&found.shown), problem }];
                let LeftOut { bad: counted, .. } = &mut self.left_out;
                match self.rule.treat(bad, counted, &mut self.listed)? {
                    Flow::Next => continue,
                    Flow::End => return Ok(false),
                }
            }
            self.shown = found.shown;
            self.label.clear();
            self.label.extend(found.class.unwrap_or_default().into_bytes());
            return Ok(true);
        }
    }

    fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    fn listed(&mut self) -> Vec<BadRow> {
        mem::take(&mut self.listed)
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
