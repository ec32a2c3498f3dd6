//! Links to a job's page that need no user's token: those that there are, and a new one.

use crate::{frame, words};
use maud::{Markup, html};
use sojourn_protocol::{
    ids::JobId,
    tokens::{TokenState, TokenView},
};

/// Days for which a link may be made; none: until it is revoked.
const DAYS: [(u64, &str); 4] =
    [(1, "1 day"), (7, "7 days"), (30, "30 days"), (0, "until it is revoked")];
/// The days that are chosen at first.
const DEFAULT_DAYS: u64 = 7;

/// The links to a job's page that still open it, and the form for another one. Without links (`None`) for whoever may make none.
#[must_use]
pub fn links(job: JobId, links: Option<&[TokenView]>) -> Markup {
    let Some(links) = links else { return Markup::default() };
    let valid = || links.iter().filter(|link| link.state == TokenState::Valid);
    let address = format!("/jobs/{job}");
    html! {
        @if valid().next().is_none() { p.hint { "No link to this page. Whoever has one sees the job without a token, and nothing else." } }
        @else {
            ul.links {
                @for link in valid() {
                    li #{ "link-" (link.token) } {
                        "Link " (link.token) @if !link.label.is_default() { " " (link.label) } ", made " (words::time(link.created_at))
                        @match link.expires_at {
                            Some(at) => { ", ends " (words::time(at)) }
                            None => { ", until it is revoked" }
                        }
                        " "
                        form method="post" action=(address) {
                            input type="hidden" name="action" value="unshare";
                            input type="hidden" name="token" value=(link.token);
                            button.plain aria-label={ "Revoke link " (link.token) } { "Revoke" }
                        }
                    }
                }
            }
        }
        div.buttons {
            details #share {
                summary { "Share" }
                form.stack method="post" action=(address) {
                    input type="hidden" name="action" value="share";
                    label { "For whom " input name="label" maxlength="80" placeholder="a word for you"; }
                    label {
                        "For how long "
                        select name="days" {
                            @for (days, text) in DAYS { option value=(days) selected[days == DEFAULT_DAYS] { (text) } }
                        }
                    }
                    button { "Make a link" }
                }
            }
        }
    }
}

/// A link that was just made, which is shown once.
#[must_use]
pub fn made(job: JobId, link: &TokenView, address: &str) -> Markup {
    let content = html! {
        h1 { "A link to job " (job) }
        p { label { "Whoever has it sees the job's page, and nothing else: " input.address readonly value=(address); } }
        p.hint { "It isn't shown again. It is link " (link.token) ", which the job's page revokes." }
        p { a href={ "/jobs/" (job) } { "Back to the job" } }
    };
    frame::page("Link", "", &content)
}
