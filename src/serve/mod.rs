//! The server of this process, joined with the threads of this process that assimilate.

mod queue;

use queue::CoreQueue;
use sojourn_assimilator::{
    Assimilator, DEFAULT_SMALL_RESULTS, DEFAULT_SPLIT_OVER, SpooledOrStaged, StagedUploads,
    Trainer, Workers,
};
use sojourn_server::{AssimilationHandle, AssimilationThreads, LocalAssimilators};
use sojourn_slot::SlotConfig;
use std::{io, num::NonZero, ops::RangeInclusive, sync::Arc};
use tokio::runtime::Handle;

/// The threads of this process that assimilate.
#[derive(Debug)]
pub(crate) struct AssimilatorConfig {
    /// At least and at most so many: as many as there is work for.
    pub(crate) threads: RangeInclusive<usize>,
    /// Models with larger checkpoints than this, in bytes, are merged by ranges.
    pub(crate) split_over: u64,
    /// How a trainer is started on this machine, for jobs that have results evaluated before they are merged.
    pub(crate) trainer: Option<SlotConfig>,
}

impl Default for AssimilatorConfig {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self { threads: 1..=cores, split_over: DEFAULT_SPLIT_OVER, trainer: None }
    }
}

impl AssimilatorConfig {
    /// The threads for the server to start; `None` where processes of their own assimilate.
    pub(crate) fn local(self) -> Option<LocalAssimilators> {
        (*self.threads.end() > 0).then(|| LocalAssimilators {
            has_trainer: self.trainer.is_some(),
            start: Box::new(|server| self.start(server)),
        })
    }

    fn start(self, server: AssimilationHandle) -> io::Result<Arc<dyn AssimilationThreads>> {
        let runtime = Handle::current();
        let blobs = server.blobs().clone();
        let source = SpooledOrStaged {
            uploads: server.uploads().clone(),
            staged: server
                .staging()
                .map(|staging| StagedUploads::new(staging.clone(), runtime.clone())),
        };
        let queue = CoreQueue { server, runtime: runtime.clone() };
        let mut assimilator = Assimilator::new(queue, source, blobs, runtime.clone())
            .with_split_over(self.split_over)
            .with_small_results(DEFAULT_SMALL_RESULTS);
        if let Some(trainer) = self.trainer {
            assimilator = assimilator.with_losses(Trainer::new(trainer, runtime));
        }
        Ok(Arc::new(Threads(Workers::start(self.threads, assimilator)?)))
    }
}

/// Assimilators' threads, as the server calls them.
#[derive(Debug)]
struct Threads(Workers);

impl AssimilationThreads for Threads {
    fn wake_one(&self) {
        self.0.notify();
    }

    fn wake_all(&self) {
        self.0.notify_waiting();
    }

    fn running(&self) -> usize {
        self.0.running()
    }

    fn stop(&self) {
        self.0.stop();
    }
}
