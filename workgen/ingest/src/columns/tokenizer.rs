//! The file of a tokenizer, in the format of the `tokenizers` library (`tokenizer.json`), and the tokens of a line.
//!
//! It may come from anywhere. So what the library makes of it is bounded or refused.

use crate::{
    error::{IngestError, Problem},
    guard::{MAX_REASON, guarded},
    source::SourceFile,
};
use sojourn_protocol::{dtype::Dtype, quantity::to_u64, text::plain_line};
use std::{fmt, io::Read as _};

/// The largest file of a tokenizer.
const MAX_FILE: u64 = 256 << 20;

/// What makes tokens of text.
pub(super) struct Tokenizer {
    library: tokenizers::Tokenizer,
    /// The type that holds all tokens.
    pub(super) dtype: Dtype,
    /// What they are numbered below.
    pub(super) values: u64,
}

impl Tokenizer {
    pub(super) fn open(file: &SourceFile) -> Result<Self, IngestError> {
        let mut json = Vec::new();
        let mut stream = file.read()?.take(MAX_FILE.saturating_add(1));
        stream.read_to_end(&mut json).map_err(|error| file.failed(error))?;
        if to_u64(json.len()) > MAX_FILE {
            return Err(file.refuse(Problem::LargeTokenizer { limit: MAX_FILE }));
        }
        let read = guarded(|| tokenizers::Tokenizer::from_bytes(&json))
            .unwrap_or_else(|why| Err(format!("it panics over this file ({why})").into()));
        let mut library = read.map_err(|error| file.refuse(bad(error)))?;
        // The text is one stream: nothing of it is padded, and nothing cut off.
        library.with_padding(None);
        library.with_truncation(None).map_err(|error| file.refuse(bad(error)))?;
        let vocabulary = library.get_vocab(true);
        let last = vocabulary.values().copied().max().unwrap_or_default();
        let dtype = if i16::try_from(last).is_ok() { Dtype::I16 } else { Dtype::I32 };
        let values = u64::from(last).saturating_add(1);
        Ok(Self { library, dtype, values })
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

/// What the library says, as one short line.
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
