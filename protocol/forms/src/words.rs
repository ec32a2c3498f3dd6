//! Words of a message: the nearest known word to a mistyped one, and lists.

/// Longer words are near to none: comparing two takes time by the product of their lengths, and the message shows the near one.
const MAX_WORD_CHARS: usize = 100;

fn is_word(text: &str) -> bool {
    text.chars().nth(MAX_WORD_CHARS).is_none()
}

/// The candidate that `word` most likely stands for, if any is near. Texts of over 100 characters aren't.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if !is_word(word) {
        return None;
    }
    let word = word.to_lowercase();
    let closeness = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        let edits = strsim::normalized_damerau_levenshtein(&word, &candidate);
        let contains = word.len() >= 3
            && candidate.len() >= 3
            && (candidate.contains(&word) || word.contains(&candidate));
        if contains { edits.max(0.6) } else { edits }
    };
    candidates
        .into_iter()
        .filter(|candidate| is_word(candidate))
        .map(|candidate| (closeness(candidate), candidate))
        .filter(|(closeness, _)| *closeness >= 0.5)
        // The first of equals wins, so that the answer doesn't depend on `max_by`'s choice.
        .fold(None, |best: Option<(f64, &str)>, next| match best {
            Some(best) if best.0 >= next.0 => Some(best),
            _ => Some(next),
        })
        .map(|(_, candidate)| candidate)
}

/// Words in backticks, with commas.
#[must_use]
pub fn list(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// The hint about an unknown word: the nearest candidate, or the place where else it belongs, or all known words.
pub fn suggestion<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    elsewhere: impl FnOnce() -> Option<String>,
    known: &[&str],
) -> String {
    let near = nearest(word, candidates).map(|near| format!("`{near}`"));
    match near.or_else(elsewhere) {
        Some(place) => format!("did you mean {place}?"),
        None => format!("known here: {}", list(known)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_and_a_far_one_is_not() {
        let keys = ["epochs", "batch_size", "loss"];
        assert_eq!(nearest("epoch", keys), Some("epochs"));
        assert_eq!(nearest("batchsize", keys), Some("batch_size"));
        assert_eq!(nearest("Loss", keys), Some("loss"));
        assert_eq!(nearest("zebra", keys), None);
    }

    #[test]
    fn a_long_text_that_holds_the_word_is_not_near() {
        let longest = format!("{}label", "x".repeat(MAX_WORD_CHARS - 5));
        assert_eq!(nearest("label", [longest.as_str()]), Some(longest.as_str()));
        let longer = format!("x{longest}");
        assert_eq!(nearest("label", [longer.as_str()]), None);
        assert_eq!(nearest(&longer, ["label"]), None);
    }
}
