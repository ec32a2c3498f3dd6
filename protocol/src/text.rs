//! Text that comes from outside, such as names of devices and messages of errors: it is shown in terminals, logs and
//! pages, which must not obey it.

/// Characters of a device's name and of a version.
pub const MAX_NAME_CHARS: usize = 200;

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

/// The characters that no plain line has, as a class of regular expressions names them.
pub const NOT_IN_PLAIN_LINES: &str =
    "\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069";

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
}
