//! Tracks whether the server answers and can be trusted. Each change is logged once, and pauses end when it is back.

use sojourn_http::{Backoff, CallError, Recovery};
use sojourn_protocol::error::error_chain;
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use tokio::sync::watch;

/// Whether the server answers, as the daemon knows. Only requests that any server answers (enrol, work, heartbeat) count; a
/// failed transfer alone doesn't mean that the server is away.
#[derive(Debug)]
pub(crate) struct Contact {
    away: watch::Sender<bool>,
    /// The server is away because it can't be trusted.
    distrusted: AtomicBool,
    ever_made: AtomicBool,
    returns: watch::Sender<u64>,
}

impl Contact {
    pub(crate) fn new() -> Self {
        Self {
            away: watch::Sender::new(false),
            distrusted: AtomicBool::new(false),
            ever_made: AtomicBool::new(false),
            returns: watch::Sender::new(0),
        }
    }

    /// The server has answered.
    pub(crate) fn made(&self) {
        self.ever_made.store(true, Ordering::Release);
        self.distrusted.store(false, Ordering::Release);
        if self.away.send_replace(false) {
            tracing::info!("the server is back");
            self.returns.send_modify(|count| *count += 1);
        }
    }

    /// The server has not answered, or can't serve now.
    pub(crate) fn lost(&self, failure: &CallError) {
        // A refusal isn't absence: the daemon ends, and says why.
        if failure.recovery() == Recovery::End {
            return;
        }
        let distrusted = matches!(failure, CallError::Untrusted { .. });
        let before = self.distrusted.swap(distrusted, Ordering::AcqRel);
        if !self.away.send_replace(true) || (distrusted && !before) {
            let cause = error_chain(failure);
            tracing::warn!(
                cause,
                "the server is away; keeping leases and results, and trying again"
            );
        }
    }

    /// Has the server answered at least once?
    pub(crate) fn was_made(&self) -> bool {
        self.ever_made.load(Ordering::Acquire)
    }

    pub(crate) fn is_away(&self) -> bool {
        *self.away.borrow()
    }

    /// Pauses before another attempt, shorter where the server comes back meanwhile.
    pub(crate) async fn pause(&self, backoff: &mut Backoff, asked: Option<Duration>) {
        let mut returns = self.returns.subscribe();
        tokio::select! {
            () = tokio::time::sleep(backoff.next(asked)) => {}
            // The sender lives as long as `self`: this ends only with a return.
            _ = returns.changed() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use sojourn_protocol::error::{ApiError, ErrorKind};

    #[test]
    fn a_server_that_refuses_the_token_is_not_away() {
        let contact = Contact::new();
        let error = ApiError::new(ErrorKind::Unauthorized, "this host's token was revoked");
        let server = "http://a".to_owned();
        contact.lost(&CallError::Refused { server, error, retry_after: None });
        assert!(!contact.is_away());
    }

    #[tokio::test]
    async fn a_pause_ends_with_the_servers_return() {
        let contact = Contact::new();
        let mut backoff = Backoff::new(Duration::from_secs(30));
        contact.lost(&CallError::timed_out("http://a", Duration::from_secs(1)));
        assert!(contact.is_away());
        // Hours, unless the return ends it.
        let mut pause = Box::pin(contact.pause(&mut backoff, Some(Duration::from_secs(86_400))));
        assert!(pause.as_mut().now_or_never().is_none());
        contact.made();
        pause.await;
        assert!(!contact.is_away());

        // No return, no end.
        contact.made();
        let pause = contact.pause(&mut backoff, Some(Duration::from_secs(86_400)));
        assert!(pause.now_or_never().is_none());
    }
}
