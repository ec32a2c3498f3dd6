//! Renewals of a claim: a unit that takes long isn't handed out again while it is worked at.

use crate::queue::{Offer, Queue, Unit};
use std::{
    convert::Infallible,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

/// Renewals in the term of a claim, so that one may be lost.
const RENEWALS_PER_TERM: u64 = 3;

/// Does `work` for a unit while another thread renews its claim.
pub(crate) fn while_renewing<T>(queue: &impl Queue, unit: &Unit, work: impl FnOnce() -> T) -> T {
    let interval = Duration::from_millis((unit.term.0 / RENEWALS_PER_TERM).max(1));
    let (working, ended) = mpsc::channel::<Infallible>();
    thread::scope(|scope| {
        let renew = move || {
            while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                match queue.renew(unit.lease, unit.claim) {
                    Ok(Offer::Taken) => {}
                    // The claim is another's now. The work goes on: the first offer counts.
                    Ok(_) => break,
                    Err(error) => tracing::debug!(%error, "a claim can't be renewed"),
                }
            }
        };
        let thread = thread::Builder::new().name("renewals".to_owned());
        if let Err(error) = thread.spawn_scoped(scope, renew) {
            tracing::warn!(%error, "the claim of a unit isn't renewed");
        }
        let result = work();
        drop(working);
        result
    })
}
