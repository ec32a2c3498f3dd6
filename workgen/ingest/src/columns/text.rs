//! Text files as tokens: their bytes, or what a tokenizer's file makes of each line.
//!
//! Files follow one another without anything between them.

use super::{
    tokenizer::Tokenizer,
    windows::{TokenSource, Tokens},
};
use crate::{
    error::{IngestError, Place, Problem},
    source::{SourceFile, Unpacked},
};
use sojourn_protocol::{dtype::Dtype, quantity::to_u64};
use std::io::{BufRead as _, BufReader, Read as _};

/// Bytes that are taken at once.
const CHUNK: usize = 256 << 10;
/// The number that all byte tokens are below.
const BYTES: u64 = 256;

/// Text, with what cuts it into tokens.
pub(super) struct Text {
    files: Vec<SourceFile>,
    tokenizer: Option<Tokenizer>,
}

impl Text {
    /// Text files, with the file of a tokenizer; bytes without one.
    pub(super) fn open(
        files: Vec<SourceFile>,
        tokenizer: Option<&SourceFile>,
    ) -> Result<Self, IngestError> {
        Ok(Self { files, tokenizer: tokenizer.map(Tokenizer::open).transpose()? })
    }
}

impl TokenSource for Text {
    fn dtype(&self) -> Dtype {
        self.tokenizer.as_ref().map_or(Dtype::U8, Tokenizer::dtype)
    }

    fn values(&self) -> Option<u64> {
        Some(self.tokenizer.as_ref().map_or(BYTES, Tokenizer::values))
    }

    fn bytes(&self) -> u64 {
        self.files.iter().map(SourceFile::bytes).fold(0, u64::saturating_add)
    }

    fn tokens(&self) -> Result<Box<dyn Tokens + '_>, IngestError> {
        Ok(Box::new(TextTokens {
            text: self,
            next: 0,
            open: None,
            line: 0,
            before: 0,
            held: Vec::new(),
        }))
    }
}

/// A pass over text files.
struct TextTokens<'a> {
    text: &'a Text,
    /// The file to open next.
    next: usize,
    open: Option<(&'a SourceFile, BufReader<Unpacked>)>,
    /// The line that was read last, from 1.
    line: u64,
    /// Bytes of the files that are done.
    before: u64,
    /// A line.
    held: Vec<u8>,
}

impl TextTokens<'_> {
    /// Appends the tokens of some bytes, or of a line; `false` at the end of the file.
    fn take(&mut self, into: &mut Vec<u8>) -> Result<bool, IngestError> {
        let Some((file, stream)) = &mut self.open else { return Ok(false) };
        let failed = |error| file.failed(error);
        let Some(tokenizer) = &self.text.tokenizer else {
            let chunk = stream.fill_buf().map_err(failed)?;
            into.extend_from_slice(chunk);
            let count = chunk.len();
            stream.consume(count);
            return Ok(count > 0);
        };
        self.held.clear();
        let longest = tokenizer.longest_line();
        let mut line = stream.take(longest.saturating_add(1));
        let count = line.read_until(b'\n', &mut self.held).map_err(failed)?;
        if count == 0 {
            return Ok(false);
        }
        self.line += 1;
        let place = Place { line: Some(self.line), ..Place::of(file.shown()) };
        if to_u64(count) > longest {
            return Err(place.refuse(Problem::LongTextLine { limit: longest }));
        }
        let Ok(text) = std::str::from_utf8(&self.held) else {
            return Err(place.refuse(Problem::NotUtf8));
        };
        tokenizer.encode(text, into).map_err(|problem| place.refuse(problem))?;
        Ok(true)
    }
}

impl Tokens for TextTokens<'_> {
    fn append(&mut self, into: &mut Vec<u8>) -> Result<bool, IngestError> {
        loop {
            if self.take(into)? {
                return Ok(true);
            }
            if let Some((file, _)) = self.open.take() {
                self.before = self.before.saturating_add(file.bytes());
            }
            let Some(file) = self.text.files.get(self.next) else { return Ok(false) };
            self.next += 1;
            self.line = 0;
            self.open = Some((file, BufReader::with_capacity(CHUNK, file.read()?)));
        }
    }

    fn place(&self) -> Place {
        let file = self.open.as_ref().map_or("", |(file, _)| file.shown());
        let line = self.text.tokenizer.as_ref().map(|_| self.line);
        Place { line, ..Place::of(file) }
    }

    fn bytes_read(&self) -> u64 {
        let open = self.open.as_ref().map_or(0, |(_, stream)| stream.get_ref().bytes_read());
        self.before.saturating_add(open)
    }
}
