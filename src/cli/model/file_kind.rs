//! The kind of a file, by its first bytes, where it was named as a model file and isn't one.

/// How other files begin that a model could be taken to be in, or that are given in its place.
const KINDS: &[(&[u8], &str)] = &[
    (b"PK\x03\x04", "a ZIP archive, as NPZ files and PyTorch's `.pt` are"),
    (b"\x80\x02", "a Python pickle, as old `.pt` files are"),
    (b"\x80\x03", "a Python pickle"),
    (b"\x80\x04", "a Python pickle"),
    (b"\x80\x05", "a Python pickle"),
    (b"\x89HDF", "an HDF5 file, as Keras' `.h5` are"),
    (b"\x93NUMPY", "an NPY array"),
    (b"GGUF", "a GGUF file"),
    (b"PAR1", "a Parquet file"),
    (b"\x1f\x8b", "a file compressed by gzip"),
    (b"\x28\xb5\x2f\xfd", "a file compressed by zstd"),
    (b"\x7fELF", "a program"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
];

/// The kind of a file with this start; `None` where it may be safetensors, whose first eight bytes are the
/// length of a JSON object that follows.
pub(super) fn kind(start: &[u8]) -> Option<&'static str> {
    let is_object = start.get(8).is_none_or(|byte| *byte == b'{');
    let is_long = start.first_chunk().is_some_and(|length| u64::from_le_bytes(*length) >= 1 << 32);
    if start.len() >= 8 && is_object && !is_long {
        return None;
    }
    let known = KINDS.iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, what)| *what);
    known.or_else(|| {
        (start.len() >= 8).then_some(if is_text(start) { "text" } else { "a file of another kind" })
    })
}

/// Whether all bytes are those of text; a character may be cut off at the end.
fn is_text(start: &[u8]) -> bool {
    let whole = match std::str::from_utf8(start) {
        Ok(_) => start.len(),
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(_) => return false,
    };
    start.iter().take(whole).all(|byte| !byte.is_ascii_control() || byte.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_another_file_is_named() {
        for (start, what) in [
            (
                &b"PK\x03\x04\x14\0\0\0\x08\0"[..],
                Some("a ZIP archive, as NPZ files and PyTorch's `.pt` are"),
            ),
            (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 ", Some("a Python pickle, as old `.pt` files are")),
            (b"a,b,label\n1,2,\xc3", Some("text")),
            ("größe,breite\n1,2\n".as_bytes(), Some("text")),
            (b"{\"format\":1}", Some("text")),
            (b"\x08\x07\x12\x07pytorch", Some("a file of another kind")),
            (b"\x10\0\0\0\0\0\0\0{\"__metadata__", None),
            (b"\x02\0\0\0\0\0\0\0", None),
            (b"", None),
        ] {
            assert_eq!(kind(start), what, "{}", String::from_utf8_lossy(start));
        }
    }
}
