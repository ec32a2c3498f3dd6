//! The frame of all pages: head, navigation, live updates.

use crate::{assets, keys};
use maud::{DOCTYPE, Markup, html};
use sojourn_protocol::{ids::TokenId, tokens::Rights, view::JobView};

/// The policy of every page: it runs and loads the server's own files alone, and is part of no other page.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The place from which somebody looks at a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    /// A session: all pages are there.
    Session,
    /// A link to one job's page, without a token.
    Link,
    /// A file, which has no server.
    File,
}

/// The viewer of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Viewer {
    /// The viewer's rights: buttons for anything else are left out.
    rights: Rights,
    /// The viewer's token; `None`: the server's own.
    token: Option<TokenId>,
    /// The place from which the viewer looks.
    from: From,
}

impl Viewer {
    /// A viewer who has a link to one job's page.
    pub(crate) const GUEST: Self = Self { rights: Rights::Read, token: None, from: From::Link };
    /// The reader of a job's report.
    pub(crate) const READER: Self = Self { rights: Rights::Read, token: None, from: From::File };

    /// A user with these rights.
    #[must_use]
    pub const fn of(rights: Rights) -> Self {
        Self::with_token(rights, None)
    }

    /// A user with these rights by this token; `None`: by the server's own.
    #[must_use]
    pub const fn with_token(rights: Rights, token: Option<TokenId>) -> Self {
        Self { rights, token, from: From::Session }
    }

    /// May the viewer have checkpoints?
    #[must_use]
    pub fn may_download(self) -> bool {
        self.from == From::Session
    }

    /// May the viewer see the pages of trials?
    pub(crate) fn sees_trials(self) -> bool {
        self.from == From::Session
    }

    /// May the viewer change hosts?
    #[must_use]
    pub fn may_administer(self) -> bool {
        self.rights >= Rights::Administer
    }

    /// May the viewer see who submitted a job?
    pub(crate) fn sees_owners(self) -> bool {
        self.from != From::Link
    }

    /// May the viewer submit jobs?
    #[must_use]
    pub fn may_submit(self) -> bool {
        self.rights >= Rights::Submit
    }

    /// May the viewer change this job? The core decides: this says which buttons it would refuse.
    #[must_use]
    pub fn may_change(self, job: &JobView) -> bool {
        let is_own = job.owner.as_ref().is_none_or(|owner| owner.token == self.token);
        self.may_administer() || (self.may_submit() && is_own)
    }
}

/// Pages of the navigation: address and name.
const PAGES: [(&str, &str); 4] =
    [("/", "Jobs"), ("/hosts", "Hosts"), ("/failures", "Failures"), ("/find", "Find")];

/// The page that describes the API.
const API: &str = "/v1/docs";

/// A whole page. `here`: its address in the navigation.
pub(crate) fn page(title: &str, here: &str, content: &Markup) -> Markup {
    let body = html! {
        body data-root="/" {
            (navigation(here)) (main_of(content)) (keys::dialog())
            script defer src=(assets::url("keys.js")) { }
            script defer src=(assets::url("notify.js")) { }
        }
    };
    document(title, &body, true)
}

/// The same with a script of its own.
pub(crate) fn with_script(title: &str, here: &str, content: &Markup, script: &str) -> Markup {
    let content = html! { (content) script defer src=(assets::url(script)) { } };
    page(title, here, &content)
}

fn navigation(here: &str) -> Markup {
    html! {
        header {
            a.skip href="#main" { "Skip to the content" }
            nav aria-label="Pages" {
                a.brand href="/" { "Sojourn" }
                @for (address, name) in PAGES {
                    a href=(address) aria-current=[(address == here).then_some("page")] { (name) }
                }
            }
            span #connection role="status" { }
            button.plain.by-keys #show-keys type="button" aria-haspopup="dialog" aria-controls="keys" { "Keys" }
            a href=(API) { "API" }
            form method="post" action="/sign-out" { button.plain { "Sign out" } }
        }
    }
}

/// The page of a job for whoever has a link to it. `at`: the address where its script hears of changes.
pub(crate) fn shared(title: &str, at: &str, content: &Markup) -> Markup {
    let body = html! {
        body data-changes={ (at) "/changes" } data-probe={ (at) "?part=head" } {
            header {
                a.skip href="#main" { "Skip to the content" }
                span.brand { "Sojourn" }
                span.hint.rest { "A shared page, to look at" }
                span #connection role="status" { }
            }
            (main_of(content))
        }
    };
    document(title, &body, true)
}

fn main_of(content: &Markup) -> Markup {
    html! { main #main tabindex="-1" { (content) } }
}

/// A page without navigation.
pub(crate) fn bare(title: &str, content: &Markup) -> Markup {
    document(title, &html! { body { main.bare #main { (content) } } }, false)
}

/// A page that anybody may read, without what only a signed-in viewer has.
pub(crate) fn open(title: &str, content: &Markup) -> Markup {
    let body = html! {
        header {
            a.skip href="#main" { "Skip to the content" }
            nav aria-label="Pages" { a.brand href="/" { "Sojourn" } }
        }
        main #main tabindex="-1" { (content) }
    };
    document(title, &body, false)
}

fn document(title: &str, body: &Markup, is_live: bool) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="dark light";
                title { (title) " · Sojourn" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href=(assets::url("page.css"));
                @if is_live {
                    link rel="stylesheet" href=(assets::url("uplot.css"));
                    script defer src=(assets::url("idiomorph.js")) { }
                    script defer src=(assets::url("uplot.js")) { }
                    script defer src=(assets::url("charts.js")) { }
                    script defer src=(assets::url("live.js")) { }
                }
            }
            (body)
        }
    }
}
