//! The loop that knows the month: it keeps the count of bytes, and tells the agent how many there are.

use super::{Fact, Month, ZoneName, zone};
use crate::context::Context;
use jiff::{Timestamp, tz::TimeZone};
use sojourn_client_core::Event;
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::{task::spawn_blocking, time::sleep};

/// How often the count is written, and the calendar looked at.
const SAVE_INTERVAL: Duration = Duration::from_secs(10);

/// The month that it is here: what is paid for by the month is paid for by the local one. Where the time zone isn't known, the month
/// of UTC.
pub(crate) fn this_month(zone: Option<&ZoneName>) -> Month {
    let zone = zone::zone(zone).unwrap_or(TimeZone::UTC);
    Month::of(Timestamp::now().to_zoned(zone).date())
}

/// Counts for as long as the daemon runs.
pub(crate) async fn count<R>(context: &Context<R>) -> Infallible {
    let (owner, usage) = (&context.owner, &context.storage.usage);
    let (mut changes, mut over) = (owner.subscribe(), usage.subscribe());
    loop {
        changes.mark_unchanged();
        over.mark_unchanged();
        usage.set(this_month(owner.zone_name().as_ref()), owner.limits().monthly);
        let unknown: &[Fact] = if usage.is_unknown() { &[Fact::MonthBytes] } else { &[] };
        owner.unknowns().set(&[Fact::MonthBytes], unknown);
        context.tell(Event::Owner(usage.budget()));
        let kept = Arc::clone(usage);
        // Not run at all: the program is ending, and writes it then.
        let _ = spawn_blocking(move || kept.save()).await;
        tokio::select! {
            () = sleep(SAVE_INTERVAL) => {}
            // The senders live as long as `context`.
            _ = changes.changed() => {}
            _ = over.changed() => {}
        }
    }
}
