//! Delivers what waits for one address: again with growing pauses until it is accepted, and under the same id each time.

use super::{
    book::{BookFile, Delivery},
    settings::Webhook,
};
use crate::shell::wall_time;
use sojourn_protocol::{
    backoff,
    quantity::{Micros, SaturatingFrom as _},
    time::{Millis, UnixMillis},
};
use std::{sync::Arc, time::Duration};
use tokio::{task::spawn_blocking, time::sleep};

/// The pause after the first attempt; it doubles with each further one.
const FIRST_PAUSE: Micros = Micros::from_secs(1);
const MAX_PAUSE: Micros = Micros::from_secs(3600);
/// After so long a delivery is given up.
const GIVE_UP_AFTER: Millis = Millis::from_secs(3 * 24 * 3600);
/// The status by which an address says that it is no more.
const GONE: u16 = 410;

/// The outcome of an attempt.
enum Attempt {
    Accepted,
    /// The address wants no more of it.
    Refused,
    Failed {
        why: String,
        retry_after: Option<Duration>,
    },
}

/// Delivers until it is dropped.
pub(super) async fn run(webhook: Webhook, book: Arc<BookFile>) {
    let webhook = Arc::new(webhook);
    let mut more = book.listen();
    loop {
        // Before the book is asked: what comes meanwhile is noticed.
        more.borrow_and_update();
        let next = book.next(&webhook.name);
        let wait = next.as_ref().map(|delivery| delivery.next_at - wall_time());
        match (next, wait) {
            (Some(delivery), Some(Millis(0))) => {
                let attempt = attempt(&webhook, &delivery).await;
                let (webhook, book) = (Arc::clone(&webhook), Arc::clone(&book));
                let settled =
                    spawn_blocking(move || settle(&webhook.name, &book, &delivery, attempt)).await;
                if let Err(error) = settled {
                    tracing::error!(%error, "webhooks end");
                    return;
                }
            }
            (Some(_), Some(Millis(wait))) => tokio::select! {
                () = sleep(Duration::from_millis(wait)) => {}
                _ = more.changed() => {}
            },
            // The other side is in `book`, which is here.
            _ => drop(more.changed().await),
        }
    }
}

async fn attempt(webhook: &Webhook, delivery: &Delivery) -> Attempt {
    let seconds = wall_time().0 / 1000;
    let headers = webhook.secret.headers(&delivery.id, seconds, &delivery.body);
    match webhook.receiver.post(&headers, delivery.body.clone()).await {
        Ok(answer) if (200..300).contains(&answer.status) => Attempt::Accepted,
        Ok(answer) if answer.status == GONE => Attempt::Refused,
        Ok(answer) => {
            let why = format!("the answer was {}", answer.status);
            Attempt::Failed { why, retry_after: answer.retry_after }
        }
        Err(error) => {
            let why = sojourn_protocol::error::error_chain(&error);
            Attempt::Failed { why, retry_after: None }
        }
    }
}

/// Notes the outcome. Blocks.
fn settle(name: &str, book: &BookFile, delivery: &Delivery, attempt: Attempt) {
    let Delivery { id, noticed_at, attempts, .. } = delivery;
    match attempt {
        Attempt::Accepted => book.end(name, id),
        Attempt::Refused => {
            tracing::error!(
                webhook = name,
                id,
                "a delivery is given up: the address says that it is gone"
            );
            book.end(name, id);
        }
        Attempt::Failed { why, .. } if wall_time() - *noticed_at >= GIVE_UP_AFTER => {
            tracing::error!(
                webhook = name,
                id,
                why,
                attempts,
                "a delivery is given up after three days"
            );
            book.end(name, id);
        }
        Attempt::Failed { why, retry_after } => {
            let pause = pause(*attempts, retry_after, random());
            tracing::warn!(
                webhook = name,
                id,
                why,
                attempts,
                pause_ms = pause.0,
                "a delivery has failed, and is tried again"
            );
            book.put_off(name, id, UnixMillis(wall_time().0.saturating_add(pause.0)));
        }
    }
}

/// How long to wait after so many attempts that have failed before this one: between half and all of a ceiling that doubles. `drawn`
/// is a random number.
fn pause(attempts: u32, retry_after: Option<Duration>, drawn: u64) -> Millis {
    let ceiling = backoff::ceiling(FIRST_PAUSE, MAX_PAUSE, attempts);
    let half = ceiling.0 / 2;
    let pause = Micros(half + drawn % half.max(1));
    Millis(backoff::pause(pause, retry_after.map(Micros::from)).0 / 1000)
}

/// Without randomness of the system the pauses of several servers may meet, which does no harm.
fn random() -> u64 {
    let mut bytes = [0; 8];
    match getrandom::fill(&mut bytes) {
        Ok(()) => u64::from_le_bytes(bytes),
        Err(_) => u64::saturating_from(wall_time().0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_an_hour_and_obey_the_receiver() {
        for drawn in [0, u64::MAX, 123_456_789] {
            let pauses: Vec<u64> = (0..20).map(|attempts| pause(attempts, None, drawn).0).collect();
            assert!(pauses.is_sorted(), "{pauses:?}");
            assert!((500..1_000).contains(&pauses[0]), "{pauses:?}");
            assert!((1_800_000..3_600_000).contains(&pauses[19]), "{pauses:?}");
        }
        assert_eq!(pause(0, Some(Duration::from_secs(60)), 0), Millis(60_000));
    }
}
