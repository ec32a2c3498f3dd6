//! The pace of a request's body: whoever sends it too slowly holds a connection for nothing.

use crate::network::BodyShare;
use actix_web::{
    HttpMessage as _,
    dev::{Payload, ServiceRequest},
    error::PayloadError,
};
use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use std::{
    future::Future as _,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep_until, timeout};

/// A body has so long to come.
const ALLOWANCE: Duration = Duration::from_secs(60);
/// And a second more for each so many bytes that have.
const BYTES_PER_SECOND: u64 = 1_000;
/// Most bytes of a body that are read and dropped when nobody knows the sender, so that it reads the answer.
const MAX_DROPPED_BYTES: usize = 256 << 10;
/// And for so long at most.
const MAX_DROPPING: Duration = Duration::from_secs(2);

/// Has a request's body keep the pace, whoever reads it. Where it has a share of the memory for bodies, it is counted there as it
/// comes, until it was read.
pub(super) fn pace(request: &mut ServiceRequest, share: Option<BodyShare>) {
    if let Payload::None = request.parts_mut().1 {
        return;
    }
    let body = request.take_payload();
    let begun = Instant::now();
    let payload: Pin<Box<dyn Stream<Item = Result<Bytes, PayloadError>>>> =
        Box::pin(PacedBody { body, begun, received: 0, timer: None, share });
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
    begun: Instant,
    received: u64,
    /// While the body is waited for.
    timer: Option<Pin<Box<Sleep>>>,
    /// Its part of the memory for bodies, where it is held there.
    share: Option<BodyShare>,
}

impl PacedBody {
    fn due(&self) -> Instant {
        self.begun + ALLOWANCE + Duration::from_secs(self.received / BYTES_PER_SECOND)
    }
}

impl Stream for PacedBody {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(next) = Pin::new(&mut self.body).poll_next(context) {
            self.timer = None;
            if let Some(Ok(chunk)) = &next {
                self.received = self.received.saturating_add(chunk.len() as u64);
                let bytes = chunk.len();
                if self.share.as_mut().is_some_and(|share| !share.take(bytes)) {
                    let why = "the bodies of requests take too much memory just now";
                    let error = io::Error::new(io::ErrorKind::QuotaExceeded, why);
                    return Poll::Ready(Some(Err(PayloadError::Io(error))));
                }
            }
            return Poll::Ready(next);
        }
        let due = self.due();
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        match timer.as_mut().poll(context) {
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
    async fn of_a_body_that_nobody_reads_little_is_taken() {
        let begun = Instant::now();
        let mut endless = request(1 << 10, Duration::from_millis(1));
        drop_some(&mut endless).await;
        drop_some(&mut request(1, Duration::from_secs(10))).await;
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}
