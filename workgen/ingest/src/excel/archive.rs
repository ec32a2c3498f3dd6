//! The members of a workbook's archive: counted before anything is kept of them.
//!
//! The crate that reads workbooks holds all words in memory, as many as the file says there are. So members are unpacked once
//! for nothing, and the count is compared with their bytes.

use crate::{
    bounds::{Step, refusal},
    error::{IngestError, Problem},
    source::SourceFile,
};
use sojourn_protocol::quantity::to_u64;
use std::io::{self, BufReader, Read};
use zip::{ZipArchive, result::ZipError};

/// The most bytes of a member, unpacked.
const MAX_MEMBER: u64 = 4 << 30;
/// The most bytes between two tags, which are held in memory.
const MAX_TEXT: usize = 64 << 20;
/// Bytes that are unpacked at once.
const CHUNK: usize = 256 << 10;
/// The member that holds the words of all cells, in small letters.
const WORDS: &str = "xl/sharedstrings.xml";
/// The attribute by which it says how many there are, in its first bytes.
const COUNT: &[u8] = b"uniqueCount=\"";
/// The fewest bytes of a word: `<si/>`.
const WORD_BYTES: u64 = 5;

/// Unpacks all members, and refuses those that hold too much or less than they say.
pub(super) fn check(file: &SourceFile) -> Result<(), IngestError> {
    let damaged = |reason: String| file.refuse(Problem::Damaged { how: "Excel", reason });
    let bad = |error: ZipError| damaged(error.to_string());
    let failed = |error: io::Error| match refusal(error) {
        Ok(refused) => refused,
        Err(error) => damaged(error.to_string()),
    };
    let mut archive = ZipArchive::new(BufReader::new(file.raw()?)).map_err(bad)?;
    let mut chunk = vec![0; CHUNK];
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(bad)?;
        let name = member.name().map_err(bad)?.to_ascii_lowercase();
        let (is_words, is_text) = (name == WORDS, name.ends_with(".xml"));
        let (mut bytes, mut words, mut since_tag) = (0, 0, 0_usize);
        loop {
            let count = read_full(&mut member, &mut chunk).map_err(failed)?;
            let read = chunk.get(..count).unwrap_or_default();
            if bytes == 0 && is_words {
                words = said(read);
            }
            if read.is_empty() {
                break;
            }
            file.bounds().admit(Step::Unpacked(to_u64(count)))?;
            bytes += to_u64(count);
            if bytes > MAX_MEMBER {
                return Err(damaged(format!("a member has over {MAX_MEMBER} bytes")));
            }
            since_tag = match read.iter().rposition(|byte| *byte == b'<') {
                Some(at) => count - at,
                None => since_tag.saturating_add(count),
            };
            if since_tag > MAX_TEXT && is_text {
                return Err(damaged(format!("a cell has over {MAX_TEXT} bytes")));
            }
        }
        if words > bytes / WORD_BYTES {
            return Err(damaged("it has fewer words than it says".to_owned()));
        }
    }
    Ok(())
}

/// Fills the chunk, as far as there are bytes.
fn read_full(from: &mut impl Read, chunk: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = chunk.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match from.read(rest)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// The number of words that the beginning of their member says.
fn said(start: &[u8]) -> u64 {
    let Some(at) = start.windows(COUNT.len()).position(|bytes| bytes == COUNT) else { return 0 };
    let digits = start.get(at + COUNT.len()..).unwrap_or_default();
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |all: u64, digit| all.saturating_mul(10).saturating_add((digit - b'0').into()))
}
