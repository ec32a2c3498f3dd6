//! Text that hosts send.

/// Text of a host as a terminal shows it and doesn't obey it: without control characters, and of at most so many
/// characters.
pub(crate) fn plain_text(text: &str, max_chars: usize) -> String {
    let shown = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().filter(shown).take(max_chars).collect()
}
