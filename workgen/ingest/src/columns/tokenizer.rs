//! The file of a tokenizer, in the format of the `tokenizers` library (`tokenizer.json`), and the tokens of a line.
//!
//! The file may come from anywhere. So what the library makes of it is bounded or refused.

use super::growth::longest_text;
use crate::{
    error::{IngestError, Problem},
    guard::{MAX_REASON, guarded},
    source::SourceFile,
};
use sojourn_protocol::{dtype::Dtype, quantity::to_u64, text::plain_line};
use std::{fmt, io::Read as _};
use tokenizers::{ModelWrapper, PostProcessorWrapper};

/// The largest file of a tokenizer.
const MAX_FILE: u64 = 256 << 20;
/// The longest line that a tokenizer gets.
const MAX_LINE: u64 = 16 << 20;
/// The longest word that WordPiece looks up, in characters: it takes time by their square. BERT has 100.
const MAX_WORD: usize = 1000;
/// The longest token of a Unigram model, in bytes: each that begins as another one takes time at each place.
const MAX_UNIGRAM: usize = 1000;

/// The tokenizer of a file, which makes tokens of text.
pub(super) struct Tokenizer {
    library: tokenizers::Tokenizer,
    dtype: Dtype,
    values: u64,
    longest_line: u64,
}

impl Tokenizer {
    pub(super) fn open(file: &SourceFile) -> Result<Self, IngestError> {
        let mut json = Vec::new();
        let mut stream = file.read()?.take(MAX_FILE.saturating_add(1));
        stream.read_to_end(&mut json).map_err(|error| file.failed(error))?;
        if to_u64(json.len()) > MAX_FILE {
            return Err(file.refuse(Problem::LargeTokenizer { limit: MAX_FILE }));
        }
        let read = guarded(|| read(&json))
            .unwrap_or_else(|why| Err(format!("it panics over this file ({why})").into()));
        read.map_err(|error| file.refuse(bad(error)))
    }

    /// The type that holds all tokens.
    pub(super) fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The number that all tokens are below.
    pub(super) fn values(&self) -> u64 {
        self.values
    }

    /// The most bytes of a line that becomes tokens.
    pub(super) fn longest_line(&self) -> u64 {
        self.longest_line
    }

    /// Appends the tokens of a line, little-endian.
    pub(super) fn encode(&self, line: &str, into: &mut Vec<u8>) -> Result<(), Problem> {
        // Some files of tokenizers make the library panic.
        let encoded = guarded(|| self.library.encode_fast(line, false))
            .unwrap_or_else(|why| Err(format!("it panics over this line ({why})").into()));
        for token in encoded.map_err(bad)?.get_ids() {
            match self.dtype {
                // The vocabulary was found to fit.
                Dtype::I16 => into.extend(i16::try_from(*token).unwrap_or_default().to_le_bytes()),
                _ => into.extend(token.to_le_bytes()),
            }
        }
        Ok(())
    }
}

/// Reads a file, as far as it can be used on any text.
fn read(json: &[u8]) -> tokenizers::Result<Tokenizer> {
    // Before the library reads it, since it normalizes the added tokens.
    let longest_line = longest_text(json)?.min(MAX_LINE);
    let mut library = tokenizers::Tokenizer::from_bytes(json)?;
    // The text is one stream: nothing of it is padded, nothing cut off, and nothing put around a line.
    library.with_padding(None);
    library.with_truncation(None)?;
    library.with_post_processor(None::<PostProcessorWrapper>);
    let vocabulary = library.get_vocab(true);
    match library.get_model() {
        ModelWrapper::WordPiece(model) if model.max_input_chars_per_word > MAX_WORD => {
            let most = model.max_input_chars_per_word;
            let text = format!("its `max_input_chars_per_word` is {most}; {MAX_WORD} is the most");
            return Err(text.into());
        }
        ModelWrapper::Unigram(_) if vocabulary.keys().any(|token| token.len() > MAX_UNIGRAM) => {
            return Err(format!("its `vocab` has a token of over {MAX_UNIGRAM} bytes").into());
        }
        ModelWrapper::BPE(model) if model.dropout.is_some_and(|dropout| dropout != 0.0) => {
            // The text is read several times.
            return Err("its `dropout` makes other tokens each time; set it to null".into());
        }
        _ => {}
    }
    let last = vocabulary.values().copied().max().unwrap_or_default();
    let dtype = if i16::try_from(last).is_ok() { Dtype::I16 } else { Dtype::I32 };
    let values = u64::from(last).saturating_add(1);
    Ok(Tokenizer { library, dtype, values, longest_line })
}

/// The problem of the library's error, as one short line.
fn bad(error: impl fmt::Display) -> Problem {
    let error = error.to_string();
    let (part, rest) = match error.strip_prefix(NO_VARIANT) {
        Some(rest) => rest.split_once(' ').unwrap_or((rest, "")),
        None => return Problem::BadTokenizer(plain_line(&error, MAX_REASON)),
    };
    let part = part.trim_end_matches("Untagged").trim_end_matches("Wrapper");
    Problem::BadTokenizer(format!("its `{part}` is of no known kind, or not whole ({rest})"))
}

/// How serde begins where none of the types fits that a part of the file may have.
const NO_VARIANT: &str = "data did not match any variant of untagged enum ";
