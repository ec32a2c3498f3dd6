//! The page for errors.

use crate::frame;
use maud::{Markup, html};

/// The page that says what can't be shown or done, and why.
#[must_use]
pub fn fault(message: &str) -> Markup {
    let content = html! {
        h1 { "That didn't work" }
        p.error role="alert" { (message) }
        p { a href="/" { "All jobs" } }
    };
    frame::bare("Error", &content)
}
