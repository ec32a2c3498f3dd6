//! The keys by which pages are used without a mouse. `assets/keys.js` does what this lists.

use maud::{Markup, html};

/// Keys that are pressed one after the other, and what they do.
const KEYS: [(&[&str], &str); 10] = [
    (&["?"], "show this list"),
    (&["/"], "find jobs, trials, hosts, settings"),
    (&["g", "j"], "go to the jobs"),
    (&["g", "h"], "go to the hosts"),
    (&["g", "f"], "go to the failures"),
    (&["j"], "next row of the table"),
    (&["k"], "row before"),
    (&["Enter"], "open the row"),
    (&["1 to 6"], "tabs of a job, from the left"),
    (&["Esc"], "close this list"),
];

/// The list of keys, which the key `?` and the button in the frame show.
pub(crate) fn dialog() -> Markup {
    html! {
        dialog #keys aria-labelledby="keys-title" {
            h2 #keys-title { "Keys" }
            table {
                tbody {
                    @for (keys, does) in KEYS {
                        tr {
                            th scope="row" {
                                @for (at, key) in keys.iter().enumerate() { @if at > 0 { " then " } kbd { (key) } }
                            }
                            td { (does) }
                        }
                    }
                }
            }
            p { label { input type="checkbox" #keys-on checked; " Keys are on, in this browser" } }
            form method="dialog" { button { "Close" } }
        }
    }
}
