//! Azure's scheduled events.
//!
//! <https://learn.microsoft.com/azure/virtual-machines/linux/scheduled-events>

use super::{
    Announcement, When,
    service::{Service, ServiceError},
};
use jiff::{Timestamp, fmt::rfc2822};
use serde::Deserialize;
use std::time::Duration;

/// Without it nothing is answered.
const METADATA: (&str, &str) = ("Metadata", "true");
const NAME: &str = "metadata/instance/compute/name?api-version=2021-02-01&format=text";
const EVENTS: &str = "metadata/scheduledevents?api-version=2020-07-01";
/// No event is announced longer before.
const MAX_NOTICE: Duration = Duration::from_secs(15 * 60);

/// An Azure virtual machine.
#[derive(Debug)]
pub(crate) struct Azure {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Events {
    events: Vec<Event>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    event_type: String,
    /// Of all machines that share a set with this one.
    #[serde(default)]
    resources: Vec<String>,
    /// The time of an HTTP header; empty once it has begun.
    #[serde(default)]
    not_before: String,
}

impl Azure {
    /// Is this machine one?
    pub(crate) async fn find(service: &Service) -> Result<Self, ServiceError> {
        match service.get(NAME, METADATA).await? {
            Some(name) if !name.trim().is_empty() && !name.trim_start().starts_with('<') => {
                Ok(Self { name: name.trim().to_owned() })
            }
            _ => Err(ServiceError::Garbage("there is no name".to_owned())),
        }
    }

    /// The notice, where there is one.
    pub(crate) async fn ask(
        &self,
        service: &Service,
    ) -> Result<Option<Announcement>, ServiceError> {
        match service.get(EVENTS, METADATA).await? {
            Some(text) => first(&text, &self.name),
            None => Ok(None),
        }
    }
}

/// The first event that ends this machine, or what runs on it.
fn first(text: &str, name: &str) -> Result<Option<Announcement>, ServiceError> {
    let Events { events } =
        serde_json::from_str(text).map_err(|error| ServiceError::Garbage(error.to_string()))?;
    let concerning = events.into_iter().filter(|event| event.concerns(name));
    let timed = concerning.map(|event| Ok((event.at()?, event.event_type)));
    let timed = timed.collect::<Result<Vec<_>, ServiceError>>()?;
    let first = timed.into_iter().min();
    Ok(first
        .map(|(time, what)| Announcement { what, when: When::At { time, at_most: MAX_NOTICE } }))
}

impl Event {
    fn concerns(&self, name: &str) -> bool {
        // A freeze is over in seconds, and everything goes on.
        let ends =
            ["Preempt", "Terminate", "Reboot", "Redeploy"].contains(&self.event_type.as_str());
        let named = self.resources.iter().any(|resource| resource.eq_ignore_ascii_case(name));
        ends && (named || self.resources.is_empty())
    }

    fn at(&self) -> Result<Timestamp, ServiceError> {
        if self.not_before.is_empty() {
            return Ok(Timestamp::UNIX_EPOCH);
        }
        let time = rfc2822::DateTimeParser::new().parse_timestamp(&self.not_before);
        time.map_err(|error| ServiceError::Garbage(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, resource: &str, not_before: &str) -> String {
        format!(
            r#"{{"EventId": "E", "EventType": "{kind}", "ResourceType": "VirtualMachine",
            "Resources": ["{resource}"], "EventStatus": "Scheduled", "NotBefore": "{not_before}"}}"#
        )
    }

    fn found(events: &[String]) -> Option<(String, i64)> {
        let text = format!(r#"{{"DocumentIncarnation": 2, "Events": [{}]}}"#, events.join(","));
        let Announcement { what, when } = first(&text, "spot_3").unwrap()?;
        let When::At { time, .. } = when else { panic!("{when:?}") };
        Some((what, time.as_second()))
    }

    #[test]
    fn the_first_event_that_ends_this_machine_counts() {
        let (early, late) = ("Mon, 19 Sep 2016 18:29:47 GMT", "Mon, 19 Sep 2016 18:39:47 GMT");
        assert_eq!(found(&[]), None);
        assert_eq!(
            found(&[event("Freeze", "spot_3", early), event("Preempt", "spot_2", early)]),
            None
        );
        let both = [event("Reboot", "spot_3", late), event("Preempt", "SPOT_3", early)];
        assert_eq!(found(&both), Some(("Preempt".to_owned(), 1_474_309_787)));
        assert_eq!(found(&[event("Preempt", "spot_3", "")]), Some(("Preempt".to_owned(), 0)));
        first("no JSON", "spot_3").unwrap_err();
        first(&format!(r#"{{"Events": [{}]}}"#, event("Preempt", "spot_3", "soon")), "spot_3")
            .unwrap_err();
    }
}
