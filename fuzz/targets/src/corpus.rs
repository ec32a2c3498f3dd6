//! The inputs that fuzzing begins with, and the words that it knows: files of the checkout.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The folder `fuzz` of the checkout.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The inputs of a target by the names of their files, in order.
///
/// # Errors
/// Where there are none to read.
pub fn inputs(target: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut inputs = Vec::new();
    for entry in fs::read_dir(folder().join("corpus").join(target))? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        inputs.push((name.unwrap_or_default(), fs::read(&path)?));
    }
    inputs.sort();
    Ok(inputs)
}

/// The words of a target's dictionary, which is in libFuzzer's format: a quoted word a line, `\xAB` for a byte.
///
/// # Errors
/// Where it can't be read, or a line is none.
pub fn words(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let text = fs::read_to_string(folder().join("dictionaries").join(format!("{target}.dict")))?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            word(line).ok_or_else(|| {
                let message = format!("`{line}` is no word of a dictionary");
                io::Error::new(io::ErrorKind::InvalidData, message)
            })
        })
        .collect()
}

fn word(line: &str) -> Option<Vec<u8>> {
    let mut rest = line.strip_prefix('"')?.strip_suffix('"')?;
    let mut word = Vec::new();
    while let Some(symbol) = rest.chars().next() {
        let (byte, length) = match rest.as_bytes() {
            [b'\\', b'x', ..] => (u8::from_str_radix(rest.get(2..4)?, 16).ok()?, 4),
            [b'\\', quoted @ (b'"' | b'\\'), ..] => (*quoted, 2),
            [byte, ..] if symbol.is_ascii() && symbol != '\\' => (*byte, 1),
            _ => return None,
        };
        word.push(byte);
        rest = rest.get(length..)?;
    }
    (!word.is_empty()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_and_have_bytes_by_number() {
        assert_eq!(word(r#""ab""#), Some(b"ab".to_vec()));
        assert_eq!(word(r#""\x00\xfF\"\\n""#), Some(b"\x00\xff\"\\n".to_vec()));
        for wrong in ["", "ab", "\"\"", "\"\\n\"", "\"\\xg0\"", "\"\u{e9}\""] {
            assert_eq!(word(wrong), None, "{wrong}");
        }
    }
}
