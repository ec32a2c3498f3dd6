//! Values as a page shows them.

use maud::{Markup, html};
use serde_json::Value;
use sojourn_protocol::{figures, spec::Goal, time::UnixMillis};

/// A time, which the page's script also says in words: how long ago.
pub(crate) fn time(at: UnixMillis) -> Markup {
    let text = figures::timestamp(at);
    html! { time datetime=(text) { (text) } }
}

/// A metric's value, or a dash.
pub(crate) fn metric(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), figures::metric)
}

/// Which values are better, as the charts' script reads it.
pub(crate) const fn goal(goal: Goal) -> &'static str {
    match goal {
        Goal::Min => "min",
        Goal::Max => "max",
    }
}

/// A share of a whole, as a bar with its text.
pub(crate) fn progress(name: &str, done: u64, of: u64) -> Markup {
    let text = format!("{} of {}", figures::count(done), figures::count(of));
    html! {
        label.progress { (name) " " progress max=(of.max(1)) value=(done.min(of.max(1))) { (text) } " " (text) }
    }
}

/// A state, with the colour that it has everywhere.
pub(crate) fn state(name: &str) -> Markup {
    state_as(name, name)
}

/// A state, in finer words.
pub(crate) fn state_as(name: &str, words: &str) -> Markup {
    html! { span class={ "state " (name) } { (words) } }
}

/// A setting's value: a text without quotes, a number with four digits.
pub(crate) fn setting(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64().filter(|_| !number.is_i64()) {
            Some(number) => {
                let rounded = format!("{number:.3e}").parse().unwrap_or(number);
                let is_plain = (0.001..100_000.0).contains(&number.abs()) || number == 0.0;
                if is_plain { rounded.to_string() } else { format!("{rounded:e}") }
            }
            None => number.to_string(),
        },
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::setting;
    use serde_json::json;

    #[test]
    fn numbers_of_settings_have_few_digits() {
        let of = |value| setting(&value);
        assert_eq!(of(json!(0.0799424199064292)), "0.07994");
        assert_eq!(of(json!(0.5)), "0.5");
        assert_eq!(of(json!(1.0)), "1");
        assert_eq!(of(json!(-2.25)), "-2.25");
        assert_eq!(of(json!(0.000_007_947_710_32)), "7.948e-6");
        assert_eq!(of(json!(1e-4)), "1e-4");
        assert_eq!(of(json!(64)), "64");
        assert_eq!(of(json!("adam")), "adam");
        assert_eq!(of(json!([64, 32])), "[64,32]");
    }
}
