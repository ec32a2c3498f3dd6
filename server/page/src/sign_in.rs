//! Signing in with a token.

use crate::frame;
use maud::{DOCTYPE, Markup, html};

/// The page that asks for a token. `to`: the address to go on to; `why`: what was wrong with the last token.
#[must_use]
pub fn sign_in(to: &str, why: Option<&str>) -> Markup {
    let content = html! {
        h1 { "Sojourn" }
        form.stack method="post" action="/sign-in" {
            label for="token" { "Token" }
            input #token name="token" type="password" required autofocus autocomplete="current-password"
                aria-describedby="hint";
            input type="hidden" name="to" value=(to);
            @if let Some(why) = why { p.error role="alert" { (why) } }
            button { "Sign in" }
            p #hint .hint {
                "The server's own is in " code { "admin-token" } " of its data folder. One that may only read: "
                code { "sojourn token new --name NAME --rights read" } "."
            }
        }
    };
    frame::bare("Sign in", &content)
}

/// Asks for the same address again, as a page of this server: the browser sends its cookie with that. `to`: the address.
#[must_use]
pub fn again(to: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="refresh" content={ "0; url=" (to) };
                title { "Sojourn" }
            }
            body { a href=(to) { "Go on" } }
        }
    }
}
