//! A connection with deadlines: for the next request's head, for an answer that nobody reads, and an end to reading where the
//! server has refused the sender.
//!
//! The framework's own deadline is for a connection's first head. A second one could come a byte at a time, for ever.

use super::connections::{Admission, Permit};
use crate::traffic::{Refusal, Traffic};
use std::{
    cell::Cell,
    future::Future as _,
    io,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};

/// A request's head comes within so long of its first byte, and a connection's first one of its begin.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The head on a connection that is to be refused: such connections are few.
const REFUSED_HEAD_TIMEOUT: Duration = Duration::from_secs(1);
/// A TLS handshake ends within so long.
pub(crate) const TLS_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// An answer of which nothing was read for so long is given up. Longer than a slow line takes to empty the system's buffers.
const ANSWER_STALL_TIMEOUT: Duration = Duration::from_secs(600);

/// A connection, as those see it who answer its requests.
#[derive(Debug)]
pub(crate) struct Connection {
    permit: Permit,
    is_reading_over: Cell<bool>,
    /// Requests that have begun.
    begun: Cell<u64>,
    /// Of these, the ones whose answer isn't whole.
    active: Cell<u32>,
}

impl Connection {
    fn new(permit: Permit) -> Rc<Self> {
        Rc::new(Self {
            permit,
            is_reading_over: Cell::new(false),
            begun: Cell::new(0),
            active: Cell::new(0),
        })
    }

    /// The connection's place among all connections.
    pub(crate) const fn permit(&self) -> &Permit {
        &self.permit
    }

    /// Reads nothing more: the connection ends with the answer.
    pub(crate) fn stop_reading(&self) {
        self.is_reading_over.set(true);
    }

    /// A request has begun, until the result is dropped.
    pub(crate) fn begin(self: &Rc<Self>) -> ActiveRequest {
        self.begun.set(self.begun.get().wrapping_add(1));
        self.active.set(self.active.get().saturating_add(1));
        ActiveRequest(Rc::clone(self))
    }

    fn is_idle_since(&self, begun: u64) -> bool {
        self.active.get() == 0 && self.begun.get() == begun
    }
}

/// A request whose answer isn't whole.
#[derive(Debug)]
pub(crate) struct ActiveRequest(Rc<Connection>);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.active.set(self.0.active.get().saturating_sub(1));
    }
}

/// The time by which a head must have come.
struct HeadDeadline {
    timer: Pin<Box<Sleep>>,
    /// The requests that had begun before it.
    begun: u64,
}

/// The bytes of a connection.
pub(crate) struct GuardedStream<T> {
    io: T,
    connection: Rc<Connection>,
    traffic: Arc<Traffic>,
    head: Option<HeadDeadline>,
    /// While nobody reads the answer.
    stall: Option<Pin<Box<Sleep>>>,
}

impl<T> GuardedStream<T> {
    /// Must be made within a Tokio runtime.
    pub(crate) fn new(io: T, permit: Permit, traffic: Arc<Traffic>) -> Self {
        let timeout = match permit.admission() {
            Admission::Requests => HEAD_TIMEOUT,
            Admission::Refusal(_) => REFUSED_HEAD_TIMEOUT,
        };
        let head = HeadDeadline { timer: Box::pin(sleep(timeout)), begun: 0 };
        Self { io, connection: Connection::new(permit), traffic, head: Some(head), stall: None }
    }

    pub(crate) const fn connection(&self) -> &Rc<Connection> {
        &self.connection
    }

    /// More has come of a head, or of a body. An error where it is a head that should be whole.
    fn note_received(&mut self) -> io::Result<()> {
        let begun = self.connection.begun.get();
        if !self.connection.is_idle_since(begun) {
            return Ok(());
        }
        match &self.head {
            // Bytes that come without a pause give the timer no turn.
            Some(head) if head.begun == begun => match head.timer.deadline() <= Instant::now() {
                true => Err(self.too_slow("no request came in time")),
                false => Ok(()),
            },
            _ => {
                self.head = Some(HeadDeadline { timer: Box::pin(sleep(HEAD_TIMEOUT)), begun });
                Ok(())
            }
        }
    }

    /// An error where a head has been waited for too long.
    fn check_head(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let Some(head) = &mut self.head else { return Ok(()) };
        if !self.connection.is_idle_since(head.begun) {
            self.head = None;
            return Ok(());
        }
        match head.timer.as_mut().poll(context) {
            Poll::Pending => Ok(()),
            Poll::Ready(()) => Err(self.too_slow("no request came in time")),
        }
    }

    /// The result of a write, or an error where nothing could be written for too long.
    fn within_stall<R>(
        &mut self,
        written: Poll<io::Result<R>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.stall = None;
            return written;
        }
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(ANSWER_STALL_TIMEOUT)));
        match stall.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => Poll::Ready(Err(self.too_slow("nobody reads the answer"))),
        }
    }

    fn too_slow(&self, why: &'static str) -> io::Error {
        self.traffic.refused(Refusal::TooSlow);
        io::Error::new(io::ErrorKind::TimedOut, why)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for GuardedStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.connection.is_reading_over.get() {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        match Pin::new(&mut this.io).poll_read(context, buffer) {
            Poll::Ready(Ok(())) if buffer.filled().len() > before => {
                Poll::Ready(this.note_received())
            }
            Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => match this.check_head(context) {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            },
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for GuardedStream<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        self.within_stall(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(context);
        self.within_stall(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(context, slices);
        self.within_stall(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{AddressKey, ConnectionLimits, Connections};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    const SECOND: Duration = Duration::from_secs(1);

    fn guarded(total: usize) -> (GuardedStream<DuplexStream>, DuplexStream, Arc<Traffic>) {
        let traffic = Arc::<Traffic>::default();
        let limits = ConnectionLimits { total, per_address: None, refusing: 1 };
        let connections = Arc::new(Connections::new(limits, Arc::clone(&traffic)));
        let permit = connections.admit(AddressKey::of([127, 0, 0, 1].into())).unwrap();
        let (server, client) = duplex(1 << 10);
        (GuardedStream::new(server, permit, Arc::clone(&traffic)), client, traffic)
    }

    /// Sends a byte a second, and gives the time until the server has had enough.
    async fn trickled(
        stream: &mut GuardedStream<DuplexStream>,
        client: &mut DuplexStream,
    ) -> Duration {
        let begun = Instant::now();
        let mut ticks = tokio::time::interval(SECOND);
        let mut buffer = [0; 100];
        loop {
            tokio::select! {
                _ = ticks.tick() => client.write_all(b"x").await.unwrap(),
                read = stream.read(&mut buffer) => {
                    if read.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
                        return begun.elapsed();
                    }
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_trickles_has_a_deadline_the_second_one_too() {
        let (mut stream, mut client, traffic) = guarded(1);
        let took = trickled(&mut stream, &mut client).await;
        assert!(took >= HEAD_TIMEOUT && took <= HEAD_TIMEOUT + SECOND, "{took:?}");
        assert_eq!(traffic.totals().refused.too_slow, 1);

        let (mut stream, mut client, _) = guarded(1);
        let request = stream.connection().begin();
        // While a request is answered its body has a pace of its own, and the answer may take its time.
        let read = async { stream.read(&mut [0; 10]).await };
        assert!(tokio::time::timeout(100 * SECOND, read).await.is_err());
        drop(request);
        // Nothing comes: the framework closes idle connections.
        let read = async { stream.read(&mut [0; 10]).await };
        assert!(tokio::time::timeout(100 * SECOND, read).await.is_err());
        let took = trickled(&mut stream, &mut client).await;
        assert!(took >= HEAD_TIMEOUT && took <= HEAD_TIMEOUT + SECOND, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_to_be_refused_has_little_time() {
        let (mut stream, mut client, _) = guarded(0);
        assert!(matches!(stream.connection().permit().admission(), Admission::Refusal(_)));
        let took = trickled(&mut stream, &mut client).await;
        assert!(took >= REFUSED_HEAD_TIMEOUT && took <= REFUSED_HEAD_TIMEOUT + SECOND, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_reads_is_given_up_and_one_that_is_read_slowly_is_not() {
        let (mut stream, mut client, traffic) = guarded(1);
        let begun = Instant::now();
        let error = stream.write_all(&[0; 10_000]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() >= ANSWER_STALL_TIMEOUT);
        assert_eq!(traffic.totals().refused.too_slow, 1);
        drop(stream);
        let _ = client.read(&mut [0; 1 << 10]).await;

        let (mut stream, mut client, _) = guarded(1);
        let reads = async {
            let mut came = 0;
            while came < 10_000 {
                tokio::time::sleep(ANSWER_STALL_TIMEOUT / 2).await;
                came += client.read(&mut [0; 1 << 10]).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(stream.write_all(&[0; 10_000]), reads);
        written.unwrap();
    }

    #[tokio::test]
    async fn of_a_connection_that_was_refused_nothing_more_is_read() {
        let (mut stream, mut client, _) = guarded(1);
        client.write_all(b"more").await.unwrap();
        stream.connection().stop_reading();
        assert_eq!(stream.read(&mut [0; 10]).await.unwrap(), 0);
        stream.write_all(b"no").await.unwrap();
        let mut answer = [0; 2];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"no");
    }
}
