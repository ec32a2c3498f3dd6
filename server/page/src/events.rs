//! The events of a job, as the journal has them.

use crate::words;
use maud::{Markup, html};
use sojourn_protocol::view::EventView;

/// Events, the last one first.
#[must_use]
pub fn list(events: &[EventView]) -> Markup {
    html! {
        ol.events {
            @for event in events.iter().rev() {
                li #{ "event-" (event.position) } {
                    (words::time(event.at)) " " span title=(event.kind) { (event.sentence()) } " "
                    details { summary { "all of it" } pre { (event.event) } }
                }
            }
        }
    }
}
