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

/// The text as a name: a plain line without what nobody sees, and without spaces at its ends.
#[must_use]
pub fn plain_name(text: &str, max_chars: usize) -> String {
    let seen: String =
        text.chars().filter(|c| !is_obeyed(*c) && !is_invisible(*c)).take(max_chars).collect();
    seen.trim().to_owned()
}

/// Is it a name that people can tell from others: a plain line without invisible characters, and without spaces at its ends?
#[must_use]
pub fn is_plain_name(text: &str, max_chars: usize) -> bool {
    is_plain_line(text, max_chars) && !text.chars().any(is_invisible) && text.trim() == text
}

/// The characters that no name has, as a class of regular expressions names them. Those beyond the first plane are refused too, and
/// have no place in such a class.
pub const NOT_IN_NAMES: &str = "\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\
     \\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb";

/// Does nobody see the character: a format character, one that Unicode leaves out where it can't be shown
/// (`Default_Ignorable_Code_Point`), or a letter that is blank?
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
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

    #[test]
    fn a_name_has_no_letters_that_nobody_sees() {
        for hidden in
            "\u{ad}\u{34f}\u{115f}\u{180e}\u{200b}\u{200c}\u{200d}\u{2060}\u{2063}\u{2800}\u{3164}\u{fe0f}\u{feff}\u{fff9}\u{e0041}\u{202e}\u{1b}"
                .chars()
        {
            let name = format!("lab{hidden}3");
            assert!(!is_plain_name(&name, 20), "{hidden:?}");
            assert_eq!(plain_name(&name, 20), "lab3", "{hidden:?}");
        }
        for spaced in [" lab", "lab ", "lab\u{a0}", "\u{3000}lab", "\u{2003}lab"] {
            assert!(!is_plain_name(spaced, 20), "{spaced:?}");
            assert_eq!(plain_name(spaced, 20), "lab");
        }
        for fine in ["", "Lab 3, room 12", "\u{e4}\u{4e2d}\u{627}\u{1f680}"] {
            assert!(is_plain_name(fine, 20), "{fine}");
            assert_eq!(plain_name(fine, 20), fine);
        }
    }

    proptest! {
        #[test]
        fn a_plain_name_is_one(text: String, most in 0usize..40) {
            prop_assert!(is_plain_name(&plain_name(&text, most), most));
        }

        #[test]
        fn a_plain_line_is_one(text: String, most in 0usize..40) {
            prop_assert!(is_plain_line(&plain_line(&text, most), most));
        }
    }
}
