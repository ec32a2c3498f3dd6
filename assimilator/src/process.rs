//! A process that assimilates for a server elsewhere. It takes units over HTTP, and reads and writes the blobs itself.

use crate::{
    canary::Trainer,
    http_queue::{HttpQueue, HttpQueueError},
    pipeline::Assimilator,
    thread_pool::Workers,
    upload_source::StagedUploads,
};
use sojourn_blobs::{BlobStore, ConnectError, StoreSettings};
use sojourn_http::{Backoff, HttpClient};
use sojourn_protocol::assimilation::AssimilationsView;
use sojourn_slot::SlotConfig;
use std::{io, time::Duration};
use tokio::{
    runtime::Handle,
    sync::watch,
    time::{Instant, sleep},
};

/// At the start, a server that doesn't answer at all is waited for so long; later, and where all stand by, for ever.
const FIRST_CONTACT_TIMEOUT: Duration = Duration::from_secs(10);
/// Ceilings of the first and the longest pause before it is asked again.
const FIRST_PAUSE: Duration = Duration::from_millis(400);
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The configuration of such a process.
#[derive(Debug)]
pub struct ProcessConfig {
    /// The servers, with the token of assimilators.
    pub http: HttpClient,
    /// A name for people.
    pub name: String,
    /// Where the blobs are.
    pub blobs: String,
    /// Keys and endpoints of the object store.
    pub settings: StoreSettings,
    /// How many units it does at once.
    pub threads: usize,
    /// How a trainer is started, for jobs that check losses before a merge.
    pub trainer: Option<SlotConfig>,
    /// Models with larger checkpoints are merged by ranges.
    pub split_over: u64,
}

/// Why a process can't assimilate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum ProcessError {
    /// No server answers, or it refuses.
    #[error(transparent)]
    Server(#[from] HttpQueueError),
    #[error(
        "the server keeps its blobs in its own folder, which no other process reaches: start it with `--blobs URL`"
    )]
    OwnFolder,
    #[error("the server's blobs are at `{of_server}`, not at `{given}`")]
    OtherBlobs { of_server: String, given: String },
    /// The blobs can't be reached.
    #[error(transparent)]
    Blobs(#[from] ConnectError),
    #[error("the system refused")]
    System(#[source] io::Error),
}

/// Assimilates until `end`, and then finishes the current units.
///
/// # Errors
/// Where the server or the blobs can't be reached at the start, or don't belong together.
pub async fn run(
    config: ProcessConfig,
    end: impl Future<Output = ()> + Send,
) -> Result<(), ProcessError> {
    let split_over = config.split_over;
    let ProcessConfig { http, name, blobs: url, settings, threads, trainer, .. } = config;
    let (ending, to_end) = watch::channel(false);
    let runtime = Handle::current();
    let queue = HttpQueue::new(http, name.clone(), runtime.clone(), to_end);
    let begun = async {
        check_blobs(&first_contact(&queue).await?, &url)?;
        Ok::<_, ProcessError>(BlobStore::connect(&url, &settings).await?)
    };
    tokio::pin!(end);
    let blobs = tokio::select! {
        blobs = begun => blobs?,
        () = &mut end => return Ok(()),
    };
    let uploads = StagedUploads::new(blobs.staging(), runtime.clone());
    let mut assimilator =
        Assimilator::new(queue, uploads, blobs, runtime.clone()).with_split_over(split_over);
    match trainer {
        Some(trainer) => assimilator = assimilator.with_losses(Trainer::new(trainer, runtime)),
        None => tracing::info!(
            "there is no trainer here: units that need a loss check are left to other processes"
        ),
    }
    let workers = Workers::start(threads..=threads, assimilator).map_err(ProcessError::System)?;
    tracing::info!(name, threads, blobs = url, "assimilating");
    end.await;
    tracing::info!("stopping after the current units");
    let _ = ending.send(true);
    let ended = tokio::task::spawn_blocking(move || drop(workers)).await;
    ended.map_err(|error| ProcessError::System(io::Error::other(error)))
}

/// The queue's state, from the first server that answers.
async fn first_contact(queue: &HttpQueue) -> Result<AssimilationsView, HttpQueueError> {
    let deadline = Instant::now() + FIRST_CONTACT_TIMEOUT;
    let mut backoff = Backoff::from(FIRST_PAUSE, MAX_PAUSE);
    loop {
        let view = async {
            queue.check().await?;
            queue.view().await
        };
        match view.await {
            Err(error)
                if error.is_passing() && (error.is_answer() || Instant::now() < deadline) =>
            {
                tracing::warn!(%error, "no server is active yet; trying again");
                sleep(backoff.next(None)).await;
            }
            answer => return answer,
        }
    }
}

/// Checks that the server keeps its blobs in the given store.
fn check_blobs(view: &AssimilationsView, given: &str) -> Result<(), ProcessError> {
    let plain = |url: &str| url.trim_end_matches('/').to_owned();
    match &view.blobs {
        None => Err(ProcessError::OwnFolder),
        Some(of_server) if plain(of_server) == plain(given) => Ok(()),
        Some(of_server) => {
            Err(ProcessError::OtherBlobs { of_server: of_server.clone(), given: given.to_owned() })
        }
    }
}
