//! Values as a page shows them.

use maud::{Markup, html};
use sojourn_protocol::{figures, time::UnixMillis};

/// A time, which the page's script also says in words: how long ago.
pub(crate) fn time(at: UnixMillis) -> Markup {
    let text = figures::timestamp(at);
    html! { time datetime=(text) { (text) } }
}

/// A metric's value, or a dash.
pub(crate) fn metric(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.4}"))
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
    html! { span class={ "state " (name) } { (name) } }
}
