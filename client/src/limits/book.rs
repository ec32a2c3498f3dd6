//! The loop that knows the month: it keeps the count of bytes, and gives back what can't be begun any more.

use super::Month;
use crate::{farewell::return_unstarted, host::Host, runner::UnitRunner};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::{task::spawn_blocking, time::sleep};

/// How often the count is written, and the calendar looked at.
const EVERY: Duration = Duration::from_secs(10);

/// The month that it is here: what is paid for by the month is paid for by the local one.
pub(crate) fn this_month() -> Month {
    Month::of(jiff::Zoned::now().date())
}

/// Counts for as long as the daemon runs.
pub(crate) async fn book<R: UnitRunner>(host: &Host<R>) -> Infallible {
    let volume = &host.volume;
    let (mut changes, mut opened) = (host.owner.subscribe(), volume.subscribe());
    let mut was_open = true;
    loop {
        changes.mark_unchanged();
        volume.set(this_month(), host.owner.limits().monthly);
        let is_open = *opened.borrow_and_update();
        match volume.now().and_then(|now| now.closed_until) {
            Some(until) if was_open => {
                tracing::info!(%until, "the month's bytes are used up; nothing new is taken");
            }
            None if !was_open => tracing::info!("bytes may come and go again"),
            _ => {}
        }
        was_open = is_open;
        if volume.is_over() {
            return_unstarted(host).await;
        }
        let kept = Arc::clone(volume);
        // Not run at all: the program is ending, and writes it then.
        let _ = spawn_blocking(move || kept.save()).await;
        tokio::select! {
            () = sleep(EVERY) => {}
            // The senders live as long as `host`.
            _ = changes.changed() => {}
            _ = opened.changed() => {}
        }
    }
}
