//! Numbers and lists, as people read them.

/// A number in at most six digits.
pub(crate) fn short(number: f64) -> String {
    let magnitude = number.abs();
    if number.fract() == 0.0 && magnitude < 1e12 {
        return format!("{number:.0}");
    }
    if (1e-3..1e6).contains(&magnitude) {
        let text = format!("{number:.3}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    format!("{number:.3e}")
}

/// The first words, as a list that may go on.
pub(crate) fn some<'a>(words: impl IntoIterator<Item = &'a str>, most: usize) -> String {
    let mut words = words.into_iter();
    let mut text: Vec<String> = words.by_ref().take(most).map(clipped).collect();
    if words.next().is_some() {
        text.push("...".to_owned());
    }
    text.join(", ")
}

/// A word of limited length, on one line.
pub(crate) fn clipped(word: &str) -> String {
    const LIMIT: usize = 24;
    let shown = |sign: char| if sign.is_control() { '\u{fffd}' } else { sign };
    let mut text: String = word.chars().take(LIMIT).map(shown).collect();
    if word.chars().nth(LIMIT).is_some() {
        text.push('…');
    }
    text
}

/// A text as TOML writes it.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            character if character.is_control() => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// A key as TOML writes it: bare where it may be.
pub(crate) fn key(text: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !text.is_empty() && text.bytes().all(is_bare) { text.to_owned() } else { quoted(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_words_are_short() {
        assert_eq!([short(3.0), short(0.125), short(-2.5)], ["3", "0.125", "-2.5"]);
        assert_eq!(short(1.5e-7), "1.500e-7");
        assert_eq!(some(["a", "b", "c"], 2), "a, b, ...");
        assert_eq!(some(["a", "b"], 2), "a, b");
    }

    #[test]
    fn texts_and_keys_are_toml() {
        assert_eq!(quoted("a \"b\" \\ \u{7f}"), r#""a \"b\" \\ \u007f""#);
        assert_eq!([key("a_b-1"), key("a b"), key("")], ["a_b-1", "\"a b\"", "\"\""]);
    }
}
