//! JSON that isn't in lines: one document, or text in another encoding. The first bytes show it.

use super::begins;
use crate::error::Problem;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The problem of a file that begins so, where that is JSON and no JSON lines.
pub(super) fn problem(start: &[u8]) -> Option<Problem> {
    if let Some(encoding) = utf_16(start) {
        return Some(Problem::JsonInUtf16(encoding));
    }
    let start = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    let list = start.trim_ascii_start().strip_prefix(b"[")?;
    begins(list).then_some(Problem::JsonList)
}

/// The encoding of JSON that begins with these bytes, where it is UTF-16, as `iconv` calls it.
fn utf_16(start: &[u8]) -> Option<&'static str> {
    let (marked, units) = match start {
        [0xff, 0xfe, units @ ..] => (Some("UTF-16"), units),
        [0xfe, 0xff, units @ ..] => (Some("UTF-16"), units),
        units => (None, units),
    };
    let is_big_endian = start.starts_with(b"\xfe\xff") || units.first() == Some(&0);
    let (zeros, signs) = if is_big_endian { (0, 1) } else { (1, 0) };
    let every_second = |from: usize| units.iter().skip(from).step_by(2);
    // The first signs of JSON are those of ASCII, each beside a zero.
    let is_ascii = every_second(zeros).take(4).eq([0; 4].iter());
    let text: Vec<u8> = every_second(signs).copied().collect();
    let list = text.trim_ascii_start().strip_prefix(b"[").unwrap_or(&text);
    let unmarked = if is_big_endian { "UTF-16BE" } else { "UTF-16LE" };
    (is_ascii && begins(list)).then_some(marked.unwrap_or(unmarked))
}

/// The first key of the object with which a file begins whose value is a list of objects, by these bytes of it.
pub(super) fn list_of_objects(start: &[u8]) -> Option<String> {
    let (mut depth, mut string, mut is_escaped) = (0_u32, None, false);
    // The last string of the object itself, which is a key if a colon follows it.
    let mut key = String::new();
    for (at, byte) in start.iter().enumerate() {
        if let Some(from) = string {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => {
                    if depth == 1 {
                        let text = start.get(from..=at).unwrap_or_default();
                        key = serde_json::from_slice(text).unwrap_or_default();
                    }
                    string = None;
                }
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => string = Some(at),
            b'[' if depth == 1 && begins(start.get(at + 1..).unwrap_or_default()) => {
                return Some(key);
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_objects_is_found_by_its_key() {
        let found = |text: &str| list_of_objects(text.as_bytes());
        assert_eq!(found("{\n  \"data\": [\n    {\"a\": 1"), Some("data".to_owned()));
        let text = r#"{"a\"[": "x: [{", "n": {"m": [{"a": 1}]}, "l": [1, {}], "rows": [{}"#;
        assert_eq!(found(text), Some("rows".to_owned()));
        for text in [r#"{"columns": ["a"], "data": [[1]]}"#, r#"{"a": 1}"#, "[{\"a\": 1}]", ""] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn utf_16_is_known_with_and_without_its_mark() {
        let units = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            text.encode_utf16().flat_map(bytes).collect()
        };
        let object = "{\"größe\": 1}";
        for (bytes, encoding) in [
            (units(object, u16::to_le_bytes), Some("UTF-16LE")),
            (units(object, u16::to_be_bytes), Some("UTF-16BE")),
            (units(&format!("\u{feff}{object}"), u16::to_le_bytes), Some("UTF-16")),
            (units(&format!("\u{feff}[{object}]"), u16::to_be_bytes), Some("UTF-16")),
            (units("a;b\n1;2", u16::to_le_bytes), None),
            (object.as_bytes().to_vec(), None),
            (Vec::new(), None),
        ] {
            assert_eq!(utf_16(&bytes), encoding);
        }
    }
}
