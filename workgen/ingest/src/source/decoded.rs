//! Text in another encoding than UTF-8, decoded in a stream.

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_16BE, UTF_16LE, WINDOWS_1252};
use sojourn_protocol::spec::TextEncoding;
use std::io::{self, Read};

/// Bytes that are decoded at once.
const CHUNK: usize = 64 << 10;
/// Bytes of the longest byte order mark.
const MARK: u64 = 3;
const UTF_8_MARK: &[u8] = b"\xef\xbb\xbf";

/// Bytes that are no text of the encoding.
#[derive(Debug, thiserror::Error)]
#[error("bytes that are no text in `{}`", .0.text())]
pub(crate) struct NotInEncoding(pub(crate) TextEncoding);

/// Does a file that begins with these bytes say that it is UTF-16?
pub(crate) fn is_utf_16(start: &[u8]) -> bool {
    start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff")
}

/// The text of `stream` as UTF-8. A byte order mark wins over what was said, but for UTF-8.
pub(super) fn decoded(
    mut stream: Box<dyn Read + Send>,
    encoding: TextEncoding,
) -> io::Result<Box<dyn Read + Send>> {
    if encoding == TextEncoding::Utf8 {
        return Ok(stream);
    }
    let mut start = Vec::new();
    stream.by_ref().take(MARK).read_to_end(&mut start)?;
    let decoder = |encoding: &'static Encoding| Some(encoding.new_decoder_with_bom_removal());
    let decoder = match encoding {
        _ if start.starts_with(UTF_8_MARK) => {
            return Ok(Box::new(io::Cursor::new(start).chain(stream)));
        }
        _ if start.starts_with(b"\xfe\xff") => decoder(UTF_16BE),
        _ if start.starts_with(b"\xff\xfe") => decoder(UTF_16LE),
        TextEncoding::Utf16 => decoder(UTF_16LE),
        TextEncoding::Windows1252 => decoder(WINDOWS_1252),
        TextEncoding::Latin1 | TextEncoding::Utf8 => None,
    };
    Ok(Box::new(Decoded {
        stream: io::Cursor::new(start).chain(stream),
        decoder,
        encoding,
        bytes: vec![0; CHUNK],
        text: Vec::new(),
        given: 0,
        is_at_end: false,
    }))
}

/// A decoder of a stream.
struct Decoded<R> {
    stream: R,
    /// The decoder; none where each byte is the character of its number, as in Latin-1.
    decoder: Option<Decoder>,
    encoding: TextEncoding,
    bytes: Vec<u8>,
    text: Vec<u8>,
    /// Bytes of the text that have been given.
    given: usize,
    is_at_end: bool,
}

impl<R: Read> Decoded<R> {
    /// Decodes the next bytes.
    fn fill(&mut self) -> io::Result<()> {
        let count = self.stream.read(&mut self.bytes)?;
        let bytes = self.bytes.get(..count).unwrap_or_default();
        self.is_at_end = count == 0;
        self.given = 0;
        self.text.clear();
        let Some(decoder) = &mut self.decoder else {
            for byte in bytes {
                let mut utf8 = [0; 2];
                self.text.extend_from_slice(char::from(*byte).encode_utf8(&mut utf8).as_bytes());
            }
            return Ok(());
        };
        let most = decoder.max_utf8_buffer_length_without_replacement(count);
        self.text.resize(most.unwrap_or(0), 0);
        let (result, _, written) =
            decoder.decode_to_utf8_without_replacement(bytes, &mut self.text, self.is_at_end);
        self.text.truncate(written);
        match result {
            DecoderResult::InputEmpty => Ok(()),
            DecoderResult::Malformed(..) | DecoderResult::OutputFull => {
                Err(io::Error::other(NotInEncoding(self.encoding)))
            }
        }
    }
}

impl<R: Read> Read for Decoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.text.len() && !self.is_at_end {
            self.fill()?;
        }
        let mut rest = self.text.get(self.given..).unwrap_or_default();
        let count = rest.read(buffer)?;
        self.given = self.given.saturating_add(count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A stream that gives one byte at a time.
    struct Drops(io::Cursor<Vec<u8>>);

    impl Read for Drops {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let one = buffer.len().min(1);
            self.0.read(&mut buffer[..one])
        }
    }

    fn text(encoding: TextEncoding, bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        let stream = Drops(io::Cursor::new(bytes.to_vec()));
        decoded(Box::new(stream), encoding)?.read_to_string(&mut text)?;
        Ok(text)
    }

    fn utf_16(text: &str, is_big_endian: bool) -> Vec<u8> {
        let bytes = |unit: u16| if is_big_endian { unit.to_be_bytes() } else { unit.to_le_bytes() };
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn each_encoding_is_read_and_a_byte_order_mark_wins() {
        assert_eq!(text(TextEncoding::Latin1, b"K\xf6ln \x80").unwrap(), "Köln \u{80}");
        assert_eq!(text(TextEncoding::Windows1252, b"K\xf6ln \x80").unwrap(), "Köln €");
        assert_eq!(text(TextEncoding::Utf16, &utf_16("Köln 🦀", false)).unwrap(), "Köln 🦀");
        for is_big_endian in [false, true] {
            for encoding in [TextEncoding::Utf16, TextEncoding::Latin1] {
                let marked = utf_16("\u{feff}é", is_big_endian);
                assert_eq!(text(encoding, &marked).unwrap(), "é");
            }
        }
        assert_eq!(text(TextEncoding::Windows1252, "\u{feff}é".as_bytes()).unwrap(), "\u{feff}é");
        assert_eq!(
            text(TextEncoding::Utf8, b"\xff").unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
        assert_eq!(text(TextEncoding::Utf16, b"").unwrap(), "");
    }

    #[test]
    fn half_a_character_is_no_text() {
        for bytes in [&b"a\0b"[..], b"\x3d\xd8a\0", b"\x3d\xd8"] {
            let error = text(TextEncoding::Utf16, bytes).unwrap_err();
            assert!(error.get_ref().is_some_and(|error| error.is::<NotInEncoding>()), "{error}");
        }
    }

    proptest! {
        #[test]
        fn text_is_the_same_after_both_ways(written in "[a-zé€🦀,\n]{0,40}") {
            prop_assert_eq!(text(TextEncoding::Utf16, &utf_16(&written, false)).unwrap(), written);
        }
    }
}
