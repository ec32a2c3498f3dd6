//! The name of a trial, for people: its architecture, and the values that it took where the search varies.

use crate::spec::Choices;
use serde_json::Value;
use std::collections::BTreeMap;

/// Characters of a value that a name has; of a longer one its beginning.
const MAX_VALUE_CHARS: usize = 100;

/// `mlp hidden=[64] lr=0.001`.
#[must_use]
pub fn trial_name(arch: &str, choices: &Choices) -> String {
    let chosen = choices_text(choices);
    if chosen.is_empty() { arch.to_owned() } else { format!("{arch} {chosen}") }
}

/// The values that a trial took where the search varies: `hidden=[64] lr=0.001`. A setting is named by the last word of its
/// key, as long as no other one of the trial ends with the same word.
#[must_use]
pub fn choices_text(choices: &Choices) -> String {
    let mut words: BTreeMap<&str, usize> = BTreeMap::new();
    for key in choices.keys() {
        *words.entry(last_word(key)).or_default() += 1;
    }
    let pairs = choices.iter().map(|(key, value)| {
        let word = last_word(key);
        let name = if words.get(word) == Some(&1) { word } else { key };
        format!("{name}={}", value_text(value))
    });
    pairs.collect::<Vec<_>>().join(" ")
}

/// The last word of a dimension's name: `lr` of `training.optimizer.lr`; `optimizer` of `training.optimizer.name`.
#[must_use]
pub fn last_word(key: &str) -> &str {
    let owner = key.strip_suffix(".name").unwrap_or(key);
    owner.rsplit('.').next().unwrap_or(owner)
}

/// Are these the last words of a dimension's name: `lr` or `optimizer.lr` of `training.optimizer.lr`?
#[must_use]
pub fn ends_with(key: &str, words: &str) -> bool {
    let ends = |key: &str| {
        key.strip_suffix(words).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    ends(key) || key.strip_suffix(".name").is_some_and(ends)
}

fn value_text(value: &Value) -> String {
    let text = match value {
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), number_text),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.char_indices().nth(MAX_VALUE_CHARS) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// A number with up to four digits that count: `32`, `0.003162`, `1e-5`.
fn number_text(number: f64) -> String {
    if number == 0.0 || (number.fract() == 0.0 && number.abs() < 1e9) {
        return format!("{number}");
    }
    let short: f64 = format!("{number:.3e}").parse().unwrap_or(number);
    if (1e-4..1e6).contains(&short.abs()) { format!("{short}") } else { format!("{short:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_are_named_by_their_last_word() {
        let chosen = Choices::from([
            ("model[1].channels".to_owned(), json!([16, 32])),
            ("training.optimizer.name".to_owned(), json!("adam")),
            ("training.optimizer.lr".to_owned(), json!(0.003_162_277_660_168_379)),
            ("training.batch_size".to_owned(), json!(32)),
        ]);
        assert_eq!(
            trial_name("cnn", &chosen),
            "cnn channels=[16,32] batch_size=32 lr=0.003162 optimizer=adam"
        );
        assert_eq!(trial_name("cnn", &Choices::new()), "cnn");
        let long = Choices::from([("model[0].hidden".to_owned(), json!(vec![4; 1_000_000]))]);
        assert_eq!(choices_text(&long).chars().count(), "hidden=".len() + 100 + "...".len());
        assert_eq!(number_text(0.000_01), "1e-5");
    }

    #[test]
    fn settings_that_end_with_the_same_word_have_their_whole_keys() {
        let chosen = Choices::from([
            ("training.optimizer.decay".to_owned(), json!(0.5)),
            ("training.schedule.decay".to_owned(), json!(0.1)),
            ("training.optimizer.lr".to_owned(), json!(1)),
        ]);
        assert_eq!(
            choices_text(&chosen),
            "training.optimizer.decay=0.5 lr=1 training.schedule.decay=0.1"
        );
    }
}
