//! The owner's limits and manual pause, and the pace that follows from both.

use super::{Allowance, Change, Kind, Limits, Memory, PaceDecision, Paces, Reason, SettingsError};
use crate::transfer::Rates;
use parking_lot::Mutex;
use sojourn_protocol::trainer::Pace;
use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use tokio::{sync::watch, time::Instant};

/// The longest pause by hand that has an end.
const MAX_PAUSE: Duration = Duration::from_secs(366 * 86_400);

/// The owner's limits and commands, and the current decision.
#[derive(Debug)]
pub(crate) struct Owner {
    state: Mutex<State>,
    /// Rates where no limit says other ones.
    rates: Rates,
    /// The most bytes of cached blobs, likewise.
    cache_bytes: u64,
    /// Notified of each change by the owner.
    changes: watch::Sender<()>,
    /// The shares of the time in which units compute.
    cpu_pace: watch::Sender<Pace>,
    gpu_pace: watch::Sender<Pace>,
    /// Whether the pause has lasted so long that hops end early.
    suspended: AtomicBool,
    /// Notified of each decision.
    looks: watch::Sender<()>,
    /// Whether the daemon drains.
    drains: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    allowance: Allowance,
    manual_pause: Option<ManualPause>,
    /// None before the first look.
    decision: Option<PaceDecision>,
    /// Has a pause been ended since the last look?
    resumed: bool,
}

impl State {
    fn manual_pause(&mut self) -> Option<ManualPause> {
        self.manual_pause = self.manual_pause.filter(|pause| match pause {
            ManualPause::Open => true,
            ManualPause::Until(until) => *until > Instant::now(),
        });
        self.manual_pause
    }
}

/// A pause that the owner has asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ManualPause {
    /// Until they say otherwise.
    Open,
    /// Until then.
    Until(Instant),
}

impl Owner {
    pub(crate) fn new(allowance: Allowance, rates: Rates, cache_bytes: u64) -> Self {
        Self {
            state: Mutex::new(State {
                allowance,
                manual_pause: None,
                decision: None,
                resumed: false,
            }),
            rates,
            cache_bytes,
            changes: watch::Sender::new(()),
            // Until the first look nothing runs.
            cpu_pace: watch::Sender::new(Pace::PAUSED),
            gpu_pace: watch::Sender::new(Pace::PAUSED),
            suspended: AtomicBool::new(false),
            looks: watch::Sender::new(()),
            drains: watch::Sender::new(false),
        }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    pub(crate) fn limits(&self) -> Limits {
        self.state.lock().allowance.limits().clone()
    }

    /// How fast blobs may come and go.
    pub(super) fn rates(&self) -> Rates {
        let limits = self.limits();
        Rates {
            download: limits.download.map(|rate| rate.0).or(self.rates.download),
            upload: limits.upload.map(|rate| rate.0).or(self.rates.upload),
        }
    }

    /// The most bytes that cached blobs may take.
    pub(crate) fn cache_bytes(&self) -> u64 {
        self.limits().disk.map_or(self.cache_bytes, |size| size.0)
    }

    /// Changes limits, and writes them to the file.
    pub(crate) fn change(&self, changes: &[Change]) -> Result<Limits, SettingsError> {
        let mut state = self.state.lock();
        state.allowance.change(changes)?;
        let limits = state.allowance.limits().clone();
        drop(state);
        self.changes.send_replace(());
        Ok(limits)
    }

    /// Pauses, for so long or until [`Owner::resume`].
    pub(crate) fn pause(&self, length: Option<Duration>) {
        let until = length.map(|length| Instant::now() + length.min(MAX_PAUSE));
        self.state.lock().manual_pause = Some(until.map_or(ManualPause::Open, ManualPause::Until));
        // At once, also while the machine is being checked.
        self.hold(PaceDecision::Pause { reason: Reason::Owner });
        self.changes.send_replace(());
    }

    /// Ends a pause by hand. Limits may want another.
    pub(crate) fn resume(&self) {
        let mut state = self.state.lock();
        state.manual_pause = None;
        state.resumed = true;
        drop(state);
        self.changes.send_replace(());
    }

    /// Ends with the first decision after [`Owner::resume`].
    pub(crate) async fn resumed(&self) {
        let mut looks = self.looks.subscribe();
        // The sender lives as long as `self`.
        while self.state.lock().resumed && looks.changed().await.is_ok() {}
    }

    /// The pause by hand, if it isn't over.
    pub(crate) fn manual_pause(&self) -> Option<ManualPause> {
        self.state.lock().manual_pause()
    }

    /// The rest of the manual pause.
    pub(crate) fn pause_left(&self) -> Option<Duration> {
        match self.manual_pause()? {
            ManualPause::Open => None,
            ManualPause::Until(until) => Some(until.saturating_duration_since(Instant::now())),
        }
    }

    /// Where limits are kept.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        self.state.lock().allowance.path().map(Path::to_owned)
    }

    /// Has the daemon end once running units have ended; paused ones end early.
    pub(crate) fn drain(&self) {
        self.drains.send_replace(true);
        self.changes.send_replace(());
    }

    pub(crate) fn drains(&self) -> bool {
        *self.drains.borrow()
    }

    /// Ends when the daemon is to drain.
    pub(crate) async fn drained(&self) {
        // The sender lives as long as `self`.
        let _ = self.drains.subscribe().wait_for(|drains| *drains).await;
    }

    /// Applies a decision, unless the owner has just paused.
    pub(super) fn hold(&self, decision: PaceDecision) {
        // Locked throughout, so that the later of two decisions holds.
        let mut state = self.state.lock();
        let decision = match (state.manual_pause(), decision) {
            (Some(_), _) => PaceDecision::Pause { reason: Reason::Owner },
            // A decision from before the owner's resume; the next one follows.
            (None, PaceDecision::Pause { reason: Reason::Owner }) => return,
            (None, decision) => decision,
        };
        state.resumed = false;
        let paces = match &decision {
            PaceDecision::Run(paces) => *paces,
            PaceDecision::Pause { .. } => Paces::PAUSED,
        };
        let before = state.decision.replace(decision.clone());
        match (&before, &decision) {
            (before, now) if before.as_ref() == Some(now) => {}
            (_, PaceDecision::Pause { reason }) => tracing::info!(%reason, "work pauses"),
            (Some(PaceDecision::Pause { .. }), PaceDecision::Run(_)) => {
                tracing::info!("work goes on")
            }
            (_, PaceDecision::Run(Paces { cpu, gpu })) => {
                tracing::debug!(cpu = cpu.get(), gpu = gpu.get(), "the paces are set");
            }
        }
        for (sender, pace) in [(&self.cpu_pace, paces.cpu), (&self.gpu_pace, paces.gpu)] {
            sender.send_if_modified(|now| std::mem::replace(now, pace) != pace);
        }
        self.looks.send_replace(());
    }

    /// Hops end early from now on, or no longer. False where that is so already.
    pub(super) fn suspend(&self, suspended: bool) -> bool {
        self.suspended.swap(suspended, Ordering::Relaxed) != suspended
    }

    /// Bytes of the machine's memory that are lent, where that is limited.
    pub(crate) fn memory(&self) -> Option<u64> {
        self.limits().memory.map(Memory::bytes)
    }

    /// The pace of slots of a kind, as it changes.
    pub(crate) fn pace(&self, kind: Kind) -> watch::Receiver<Pace> {
        match kind {
            Kind::Cpu => self.cpu_pace.subscribe(),
            Kind::Gpu => self.gpu_pace.subscribe(),
        }
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.suspended.load(Ordering::Relaxed)
    }

    /// Why nothing computes, where nothing does.
    pub(crate) fn reason(&self) -> Option<Reason> {
        match &self.state.lock().decision {
            Some(PaceDecision::Pause { reason }) => Some(reason.clone()),
            Some(PaceDecision::Run(_)) | None => None,
        }
    }

    /// May units compute?
    pub(super) fn computes(&self) -> bool {
        // All slots pause at once.
        *self.cpu_pace.borrow() > Pace::PAUSED
    }
}
