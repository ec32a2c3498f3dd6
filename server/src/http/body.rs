//! The pace of a request's body: whoever sends it too slowly holds a connection for nothing.
//!
//! A body has so much time to be waited for: a minute at first, and more as bytes come, but never more than a minute. So a body
//! that was fast isn't waited for longer than any other. The time in which the server itself reads nothing doesn't count.

use crate::network::BodyMemory;
use actix_web::{
    HttpMessage as _,
    dev::{Payload, ServiceRequest},
    error::PayloadError,
};
use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use sojourn_protocol::quantity::to_u64;
use std::{
    future::Future as _,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep_until, timeout};

/// The longest time without a byte.
const MAX_SILENCE: Duration = Duration::from_secs(60);
/// A body that comes no faster is given up when it has been waited for [`MAX_SILENCE`] in all.
const BYTES_PER_SECOND: u64 = 1_000;
/// Most bytes of a body that are read and dropped when nobody knows the sender, so that it reads the answer.
const MAX_DROPPED_BYTES: usize = 256 << 10;
/// And for so long at most.
const MAX_DROPPING: Duration = Duration::from_secs(2);

/// Has a request's body keep the pace, whoever reads it. Where it takes of the memory for bodies, it is counted there as it
/// comes, until it was read.
pub(super) fn pace(request: &mut ServiceRequest, memory: Option<BodyMemory>) {
    if let Payload::None = request.parts_mut().1 {
        return;
    }
    let body = request.take_payload();
    let payload: Pin<Box<dyn Stream<Item = Result<Bytes, PayloadError>>>> =
        Box::pin(PacedBody { body, patience: MAX_SILENCE, wait: None, memory });
    request.set_payload(Payload::Stream { payload });
}

/// Reads and drops a little of a body that nobody will read. False where there is none.
pub(super) async fn drop_some(request: &mut ServiceRequest) -> bool {
    if let Payload::None = request.parts_mut().1 {
        return false;
    }
    let mut body = request.take_payload();
    let drop_all = async {
        let mut dropped = 0;
        while let Some(Ok(chunk)) = body.next().await {
            dropped += chunk.len();
            if dropped > MAX_DROPPED_BYTES {
                break;
            }
        }
    };
    let _ = timeout(MAX_DROPPING, drop_all).await;
    true
}

struct PacedBody {
    body: Payload,
    /// How long it may still be waited for.
    patience: Duration,
    /// While the body is waited for.
    wait: Option<Wait>,
    /// The body's part of the memory for bodies, where it is held there.
    memory: Option<BodyMemory>,
}

struct Wait {
    begun: Instant,
    end: Pin<Box<Sleep>>,
}

impl PacedBody {
    /// Counts the time that these bytes were waited for, and what they are worth.
    fn received(&mut self, bytes: usize) {
        let waited = self.wait.take().map_or(Duration::ZERO, |wait| wait.begun.elapsed());
        let earned = Duration::from_millis(to_u64(bytes).saturating_mul(1_000) / BYTES_PER_SECOND);
        self.patience =
            self.patience.saturating_sub(waited).saturating_add(earned).min(MAX_SILENCE);
    }
}

impl Stream for PacedBody {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(next) = Pin::new(&mut self.body).poll_next(context) {
            if let Some(Ok(chunk)) = &next {
                let bytes = chunk.len();
                self.received(bytes);
                if self.memory.as_mut().is_some_and(|memory| !memory.take(bytes)) {
                    let why = "the bodies of requests take too much memory just now";
                    let error = io::Error::new(io::ErrorKind::QuotaExceeded, why);
                    return Poll::Ready(Some(Err(PayloadError::Io(error))));
                }
            }
            return Poll::Ready(next);
        }
        let patience = self.patience;
        let wait = self.wait.get_or_insert_with(|| {
            let begun = Instant::now();
            Wait { begun, end: Box::pin(sleep_until(begun + patience)) }
        });
        match wait.end.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                let why = "the body comes too slowly";
                let error = io::Error::new(io::ErrorKind::TimedOut, why);
                Poll::Ready(Some(Err(PayloadError::Io(error))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;
    use futures::stream;

    /// A request whose body comes in chunks of `bytes`, one in each `pause`.
    fn request(bytes: usize, pause: Duration) -> ServiceRequest {
        let chunks = stream::unfold((), move |()| async move {
            tokio::time::sleep(pause).await;
            Some((Ok(Bytes::from(vec![0; bytes])), ()))
        });
        let mut request = TestRequest::post().to_srv_request();
        request.set_payload(Payload::Stream { payload: Box::pin(chunks) });
        request
    }

    async fn received(mut request: ServiceRequest, chunks: usize) -> Result<usize, PayloadError> {
        pace(&mut request, None);
        let mut body = request.take_payload();
        let mut received = 0;
        for _ in 0..chunks {
            if let Some(chunk) = body.next().await {
                received += chunk?.len();
            }
        }
        Ok(received)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_is_given_up_and_one_that_is_slow_is_not() {
        let trickles = request(1, Duration::from_secs(1));
        let error = received(trickles, 1_000).await.unwrap_err();
        assert!(error.to_string().contains("too slowly"), "{error}");
        // Ten times as fast as it must be, for over an hour.
        let slow = request(10_000, Duration::from_secs(1));
        assert_eq!(received(slow, 4_000).await.unwrap(), 40_000_000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_came_fast_is_waited_for_no_longer_than_another() {
        let begun = Instant::now();
        for later in [Duration::from_secs(1 << 20), Duration::from_secs(59)] {
            // All but the last byte at once, then nothing, or a byte now and then.
            let chunks = stream::unfold(false, move |has_begun| async move {
                let bytes = if has_begun { 1 } else { 16 << 20 };
                tokio::time::sleep(if has_begun { later } else { Duration::ZERO }).await;
                Some((Ok(Bytes::from(vec![0; bytes])), true))
            });
            let mut request = TestRequest::post().to_srv_request();
            request.set_payload(Payload::Stream { payload: Box::pin(chunks) });
            let error = received(request, 1_000).await.unwrap_err();
            assert!(error.to_string().contains("too slowly"), "{error}");
        }
        assert!(begun.elapsed() < Duration::from_secs(200), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_reads_slowly_does_not_give_a_body_up_for_it() {
        let mut request = request(1_000, Duration::from_millis(1));
        pace(&mut request, None);
        let mut body = request.take_payload();
        for _ in 0..10 {
            assert!(body.next().await.unwrap().is_ok());
            tokio::time::sleep(Duration::from_secs(100)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_body_that_nobody_reads_little_is_taken() {
        let begun = Instant::now();
        let mut endless = request(1 << 10, Duration::from_millis(1));
        drop_some(&mut endless).await;
        drop_some(&mut request(1, Duration::from_secs(10))).await;
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}
