//! Text that comes from outside, such as names of devices and messages of errors: it is shown in terminals, logs and
//! pages, which must not obey it.

use serde::{Deserialize as _, Deserializer, de::Error as _};

/// Characters of a device's name and of a version.
pub const MAX_NAME_CHARS: usize = 200;
/// Characters of an untrusted text that a message repeats.
const QUOTED_CHARS: usize = 40;

/// The text without what a terminal obeys instead of showing it, and of at most so many characters. Lines stay lines.
#[must_use]
pub fn plain_text(text: &str, max_chars: usize) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !is_obeyed(*c)).take(max_chars).collect()
}

/// The same as one line.
#[must_use]
pub fn plain_line(text: &str, max_chars: usize) -> String {
    text.chars().filter(|c| !is_obeyed(*c)).take(max_chars).collect()
}

/// Is it one line that a table can print, of at most so many characters?
#[must_use]
pub fn is_plain_line(text: &str, max_chars: usize) -> bool {
    text.chars().count() <= max_chars && !text.chars().any(is_obeyed)
}

/// Reads a name, which is a line of at most [`MAX_NAME_CHARS`] characters: for `#[serde(deserialize_with)]`.
pub(crate) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    if is_plain_line(&name, MAX_NAME_CHARS) {
        return Ok(name);
    }
    let begins: String = name.escape_debug().take(QUOTED_CHARS).collect();
    Err(D::Error::custom(format!(
        "the name that begins with `{begins}` isn't one line of at most {MAX_NAME_CHARS} characters"
    )))
}

/// Does a terminal obey the character: a control character, a separator of lines, or one that turns the direction of what
/// follows?
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::Inventory;
    use proptest::prelude::*;

    const TRICKS: &str = "a\u{1b}[31mb\u{7}c\rd\ne\tf\u{202e}g\u{9b}h\u{2028}i";

    #[test]
    fn what_a_terminal_would_obey_is_left_out() {
        assert_eq!(plain_text(TRICKS, 100), "a[31mbcd\ne\tfghi");
        assert_eq!(plain_line(TRICKS, 100), "a[31mbcdefghi");
        assert_eq!(plain_line(TRICKS, 3), "a[3");
        assert!(is_plain_line("NVIDIA RTX 4090 \u{e4}\u{4e2d}", 20));
        assert!(!is_plain_line("123", 2));
    }

    proptest! {
        #[test]
        fn a_plain_line_is_one(text: String, most in 0usize..40) {
            prop_assert!(is_plain_line(&plain_line(&text, most), most));
        }
    }

    #[test]
    fn an_inventory_with_such_a_name_is_refused_and_the_message_can_be_shown() {
        let class = "0".repeat(64);
        let read = |device: &str, client: &str| {
            let (device, client) = (serde_json::json!(device), serde_json::json!(client));
            serde_json::from_str::<Inventory>(&format!(
                r#"{{"cached":[],"devices":[{{"name":{device},"numeric_class":"{class}","flops":1.0}}],"client":{client}}}"#
            ))
        };
        assert!(read("cpu", "0.1.0").is_ok());
        let long = "x".repeat(MAX_NAME_CHARS + 1);
        for (device, client) in [(TRICKS, "0.1.0"), ("cpu", TRICKS), (long.as_str(), "0.1.0")] {
            let message = read(device, client).unwrap_err().to_string();
            assert!(message.contains("isn't one line of at most 200 characters"), "{message}");
            assert!(is_plain_line(&message, 300), "{message:?}");
        }
    }
}
