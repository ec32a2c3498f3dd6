//! Sends a finished checkpoint to the server, from any offset on. One attempt per call.

use super::Bandwidth;
use crate::api::{Api, Form};
use bytes::Bytes;
use futures::stream;
use reqwest::Body;
use sojourn_http::{CallError, UploadTarget};
use sojourn_protocol::{api::UploadState, digest::BlobRef, ids::LeaseId, quantity::to_usize};
use std::{
    io::{self, Read, Seek, SeekFrom},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{fs::File, io::AsyncReadExt, sync::watch};

/// Why an upload broke off.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    /// The server, or the way to it.
    #[error(transparent)]
    Server(#[from] CallError),
    #[error("the finished checkpoint can't be read")]
    Disk(#[from] io::Error),
}

/// A checkpoint on its way to the server.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) lease: LeaseId,
    /// The bytes to send.
    pub(crate) blob: BlobRef,
    /// The form of these bytes.
    pub(crate) form: Form,
    /// The file.
    pub(crate) path: &'a Path,
    /// Bytes that the server has already.
    pub(crate) offset: u64,
    /// The upload target in the object store, which takes the blob as a whole; `None` to send to the server.
    pub(crate) target: Option<UploadTarget>,
    /// Bytes handed to the connection so far, including `offset`.
    pub(crate) sent: Arc<AtomicU64>,
}

/// The state of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The next chunk waits for bandwidth.
    Waits,
    /// The connection was given bytes, and has to take them.
    Moves,
}

/// Sends a checkpoint from the offset on, no faster than `bandwidth` allows. Fails if nothing moves for `stall`.
pub(crate) async fn upload(
    api: &Api,
    bandwidth: &Arc<Bandwidth>,
    outgoing: &Outgoing<'_>,
    stall: Duration,
) -> Result<UploadState, UploadError> {
    let _permit = bandwidth.upload.permit().await;
    let Outgoing { lease, blob, form, path, offset, ref target, ref sent } = *outgoing;
    let begun = Instant::now();
    sent.store(offset, Ordering::Relaxed);
    let _shown = bandwidth.moving.upload(lease, blob, Arc::clone(sent));
    let _run = bandwidth.upload.speed.begin(Arc::clone(sent));
    let (source, piece) = (path.to_owned(), bandwidth.upload.piece());
    let opened = tokio::task::spawn_blocking(move || open(&source, blob.bytes, offset, piece));
    let (file, first) = opened.await.map_err(io::Error::other)??;
    // Every chunk that the connection takes is a step; the last wait is for the answer.
    let (steps, mut step) = watch::channel(Step::Waits);
    let pacer = ChunkPacer { bandwidth: Arc::clone(bandwidth), sent: Arc::clone(sent), steps };
    let rest = blob.bytes.saturating_sub(offset);
    let begin = (File::from_std(file), Some(first), rest, pacer);
    let chunks = stream::try_unfold(begin, |(mut file, first, rest, pacer)| async move {
        if rest == 0 {
            return Ok(None);
        }
        let chunk = match first {
            Some(first) => first,
            None => {
                let mut chunk = vec![0; wanted(rest, pacer.bandwidth.upload.piece())];
                let read = file.read(&mut chunk).await?;
                chunk.truncate(read);
                chunk
            }
        };
        if chunk.is_empty() {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        pacer.pass(chunk.len()).await;
        let rest = rest.saturating_sub(chunk.len() as u64);
        Ok(Some((Bytes::from(chunk), (file, None, rest, pacer))))
    });
    let body = Body::wrap_stream(chunks);
    let answer = async {
        match target {
            Some(target) => api.put(target, blob, body).await,
            None => api.upload(lease, blob, form, offset, body).await,
        }
    };
    let stalled = async {
        loop {
            let at = *step.borrow_and_update();
            let moved = match at {
                Step::Waits => step.changed().await,
                Step::Moves => match tokio::time::timeout(stall, step.changed()).await {
                    Ok(moved) => moved,
                    Err(_) => return,
                },
            };
            if moved.is_err() {
                // All is sent: the answer has as long as any step.
                return tokio::time::sleep(stall).await;
            }
        }
    };
    tokio::select! {
        answer = answer => {
            let answer = answer?;
            bandwidth.delta_policy.sent(rest, begun.elapsed());
            Ok(answer)
        }
        () = stalled => Err(api.timed_out(stall).into()),
    }
}

/// Holds the chunks of an upload back to the bandwidth, and counts them.
struct ChunkPacer {
    bandwidth: Arc<Bandwidth>,
    sent: Arc<AtomicU64>,
    steps: watch::Sender<Step>,
}

impl ChunkPacer {
    /// Waits until so many bytes may pass.
    async fn pass(&self, bytes: usize) {
        self.steps.send_replace(Step::Waits);
        self.bandwidth.upload.take(bytes).await;
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
        self.steps.send_replace(Step::Moves);
    }
}

/// Opens the file at `offset` and reads the first chunk, both in one blocking task: most checkpoints of small models fit in one
/// chunk. Blocks the thread.
fn open(
    path: &Path,
    bytes: u64,
    offset: u64,
    piece: usize,
) -> io::Result<(std::fs::File, Vec<u8>)> {
    let mut file = std::fs::File::open(path)?;
    if file.metadata()?.len() != bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    file.seek(SeekFrom::Start(offset))?;
    let mut first = vec![0; wanted(bytes.saturating_sub(offset), piece)];
    file.read_exact(&mut first)?;
    Ok((file, first))
}

/// How much of `rest` is read at once.
fn wanted(rest: u64, piece: usize) -> usize {
    to_usize(rest).min(piece)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::Timing, transfer::Rates};
    use sojourn_http::Servers;
    use sojourn_protocol::digest::Digest;
    use tokio::{
        io::{AsyncWriteExt, copy, sink},
        net::TcpListener,
    };

    #[tokio::test]
    async fn a_refusal_by_a_proxy_is_heard_though_the_body_is_not_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        // As nginx does: the answer after the head, and what still comes goes nowhere.
        let proxy = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_u8().await.unwrap();
            let head = "HTTP/1.1 413 Request Entity Too Large\r\nconnection: close\r\n";
            let answer = format!("{head}content-length: 22\r\n\r\n<html>\r\n  413\r\n</html>");
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            copy(&mut stream, &mut sink()).await
        });
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("checkpoint");
        let bytes = vec![7; 8 << 20];
        std::fs::write(&path, &bytes).unwrap();
        let blob = BlobRef { sha256: Digest::of(&bytes), bytes: bytes.len() as u64 };
        let timing = Timing::default();
        let servers = Servers::parse(&format!("http://{address}/"), false).unwrap();
        let api = Api::new(servers, None, timing).unwrap();
        let bandwidth = Arc::new(Bandwidth::new(Rates::default(), &Arc::default()));
        let sent = Arc::default();
        let (lease, form) = (LeaseId(1), Form::Whole);
        let target = None;
        let outgoing = Outgoing { lease, blob, form, path: &path, offset: 0, target, sent };
        let sent = upload(&api, &bandwidth, &outgoing, timing.answer).await;
        let Err(UploadError::Server(failure)) = sent else { panic!("{sent:?}") };
        assert!(failure.advice().unwrap().contains("client_max_body_size"), "{failure}");
        assert!(failure.to_string().ends_with("(status 413): <html> 413 </html>"), "{failure}");
        drop(api);
        let _ = proxy.await.unwrap();
    }
}
