//! The encoding of text files that nobody has said.

use crate::{
    error::IngestError,
    format::{Kind, kind_of},
    source::{SourceFile, is_utf_16},
};
use sojourn_protocol::{quantity::to_u64, spec::TextEncoding};
use std::io::Read;

const CHUNK: usize = 256 << 10;

/// The same files, in the encoding that was found: UTF-16 by its byte order mark, and the usual one of Windows where bytes aren't UTF-8.
pub(super) fn found(parts: Vec<SourceFile>) -> Result<Vec<SourceFile>, IngestError> {
    let mut encoding = TextEncoding::Utf8;
    for part in &parts {
        let start = part.start()?;
        let marked = part.clone().in_encoding(TextEncoding::Utf16);
        if is_utf_16(&start) && kind_of(&marked)? == Kind::Csv {
            encoding = TextEncoding::Utf16;
            break;
        }
        if start.is_empty() || kind_of(part)? != Kind::Csv {
            return Ok(parts);
        }
        if !is_utf_8(part)? {
            encoding = TextEncoding::Windows1252;
        }
    }
    Ok(parts.into_iter().map(|part| part.in_encoding(encoding)).collect())
}

/// Is the whole file UTF-8?
fn is_utf_8(part: &SourceFile) -> Result<bool, IngestError> {
    let mut stream = part.read()?;
    let mut bytes: Vec<u8> = Vec::with_capacity(CHUNK);
    loop {
        let read = (&mut stream).take(to_u64(CHUNK)).read_to_end(&mut bytes);
        let is_at_end = read.map_err(|error| part.failed(error))? == 0;
        match std::str::from_utf8(&bytes) {
            Ok(_) => bytes.clear(),
            // A character that goes on in the next bytes.
            Err(error) if error.error_len().is_none() && !is_at_end => {
                bytes.drain(..error.valid_up_to());
            }
            Err(_) => return Ok(false),
        }
        if is_at_end {
            return Ok(true);
        }
    }
}
