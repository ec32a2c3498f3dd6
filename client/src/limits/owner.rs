//! The owner's limits and commands, and the pace that follows from both.

use super::{
    Allowance, Change, Commands, Kind, Limits, Memory, PaceDecision, Paces, Reason, SettingsError,
    Unknowns, ZoneName,
    commands::{Moment, Rest},
    zone,
};
use crate::transfer::Rates;
use jiff::{Timestamp, civil::DateTime};
use parking_lot::Mutex;
use sojourn_protocol::{
    quantity::SaturatingFrom as _,
    time::{Millis, UnixMillis},
    trainer::Pace,
};
use std::{
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use tokio::sync::watch;

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
    /// Facts that limits need and that aren't known.
    unknowns: Unknowns,
}

#[derive(Debug)]
struct State {
    allowance: Allowance,
    commands: Commands,
    /// The local time of the last look, where a limit depends on it and it is known.
    local: Option<DateTime>,
    /// None before the first look.
    decision: Option<PaceDecision>,
    /// Has a pause been ended since the last look?
    resumed: bool,
}

impl State {
    fn manual_pause(&mut self) -> Option<ManualPause> {
        if self.commands.is_unreadable() {
            return Some(ManualPause { reason: Reason::CommandsUnknown, left: None });
        }
        let left = match self.commands.pause(&Moment::now())? {
            Rest::For(left) => Some(left),
            Rest::Open | Rest::Over => None,
        };
        Some(ManualPause { reason: Reason::Owner, left })
    }
}

/// A pause that the owner has asked for, or may have asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ManualPause {
    /// The reason for the pause.
    pub(crate) reason: Reason,
    /// The rest of it; none where only the owner ends it.
    pub(crate) left: Option<Duration>,
}

/// Is it a pause that only the owner ends, or its time?
fn is_by_hand(reason: &Reason) -> bool {
    matches!(reason, Reason::Owner | Reason::CommandsUnknown)
}

impl Owner {
    pub(crate) fn new(
        mut allowance: Allowance,
        commands: Commands,
        rates: Rates,
        cache_bytes: u64,
    ) -> Self {
        let drains = commands.drains();
        if let Err(error) = allowance.forget_replaced() {
            tracing::warn!(%error, "`replaced-limits.json` can't be written");
        }
        let state = State { allowance, commands, local: None, decision: None, resumed: false };
        let owner = Self {
            state: Mutex::new(state),
            rates,
            cache_bytes,
            changes: watch::Sender::new(()),
            // Until the first look nothing runs.
            cpu_pace: watch::Sender::new(Pace::PAUSED),
            gpu_pace: watch::Sender::new(Pace::PAUSED),
            suspended: AtomicBool::new(false),
            looks: watch::Sender::new(()),
            drains: watch::Sender::new(drains),
            unknowns: Unknowns::default(),
        };
        owner.log_kept();
        owner
    }

    /// Logs the commands from before this start that hold.
    fn log_kept(&self) {
        if let Some(pause) = self.manual_pause() {
            let until = pause.left.map(|left| self.shown(until(left)));
            let until = until.as_deref().unwrap_or("the owner resumes");
            let reason = pause.reason;
            tracing::info!(%reason, until, "paused from before this start");
        }
        for (limit, flag) in self.state.lock().allowance.replaced() {
            tracing::info!(
                limit,
                flag,
                "the owner has replaced this limit of a flag: the file's holds"
            );
        }
        if self.drains() {
            tracing::info!(
                "draining from before this start: what is there is sent, and nothing new taken"
            );
        }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// The limits that hold now. A value by the hour is the one of the last look.
    pub(crate) fn limits(&self) -> Limits {
        let state = self.state.lock();
        state.allowance.limits().at(state.local)
    }

    /// The limits as the owner has given them.
    pub(crate) fn given_limits(&self) -> Limits {
        self.state.lock().allowance.limits().clone()
    }

    /// The time zone that the owner names.
    pub(crate) fn zone_name(&self) -> Option<ZoneName> {
        self.state.lock().allowance.settings().timezone.clone()
    }

    /// A time for people, by the machine's time zone.
    pub(crate) fn shown(&self, at: UnixMillis) -> String {
        zone::shown(self.zone_name().as_ref(), at)
    }

    /// Sets the local time that values by the hour follow; none where it isn't known.
    pub(super) fn set_local(&self, local: Option<DateTime>) {
        self.state.lock().local = local;
    }

    /// Facts that limits need and that aren't known.
    pub(crate) const fn unknowns(&self) -> &Unknowns {
        &self.unknowns
    }

    /// How fast blobs may come and go.
    pub(super) fn rates(&self) -> Rates {
        let limits = self.limits();
        let lowest = |rate: super::ByHour<super::Rate>| rate.lowest().0;
        Rates {
            download: limits.download.map(lowest).or(self.rates.download),
            upload: limits.upload.map(lowest).or(self.rates.upload),
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
    ///
    /// # Errors
    /// Where the pause can't be kept on the disk. It holds until the next start all the same.
    pub(crate) fn pause(&self, length: Option<Duration>) -> io::Result<()> {
        let kept = self.state.lock().commands.begin_pause(length);
        // At once, also while the machine is being checked.
        self.hold(PaceDecision::Pause { reason: Reason::Owner });
        self.changes.send_replace(());
        kept
    }

    /// Ends a pause by hand. Limits may want another.
    ///
    /// # Errors
    /// Where that can't be kept on the disk: the next start pauses again.
    pub(crate) fn resume(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        let kept = state.commands.resume();
        state.resumed = true;
        drop(state);
        self.changes.send_replace(());
        kept
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

    /// When a pause for this reason ends, where that is known.
    pub(crate) fn pause_ends(&self, reason: &Reason) -> Option<UnixMillis> {
        match reason {
            Reason::Owner => self.manual_pause()?.left.map(until),
            Reason::Hours => {
                let zone = zone::zone(self.zone_name().as_ref())?;
                let local = Timestamp::now().to_zoned(zone.clone()).datetime();
                zone::instant(&zone, self.given_limits().hours?.next(local)?)
            }
            _ => None,
        }
    }

    /// Where limits are kept.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        self.state.lock().allowance.path().map(Path::to_owned)
    }

    /// Has the daemon end once running units have ended; paused ones end early.
    ///
    /// # Errors
    /// Where that can't be kept on the disk: a daemon that is killed meanwhile takes work again at its next start.
    pub(crate) fn drain(&self) -> io::Result<()> {
        let kept = self.state.lock().commands.set_drain(true);
        self.drains.send_replace(true);
        self.changes.send_replace(());
        kept
    }

    /// The daemon ends in order: what was to be drained is drained.
    pub(crate) fn drain_ended(&self) {
        if let Err(error) = self.state.lock().commands.set_drain(false) {
            tracing::warn!(%error, "the file with the owner's commands can't be written: the next start drains too");
        }
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
            (Some(pause), _) => PaceDecision::Pause { reason: pause.reason },
            // A decision from before the owner's resume; the next one follows.
            (None, PaceDecision::Pause { reason }) if is_by_hand(&reason) => return,
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

/// The time after so long.
fn until(left: Duration) -> UnixMillis {
    let millis = Timestamp::now().as_millisecond();
    let now = UnixMillis(u64::try_from(millis).unwrap_or(0));
    now + Millis(u64::saturating_from(left.as_millis()))
}
