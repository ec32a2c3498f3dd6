//! After a failure of the journal or of the core: callers are refused, and the state is recovered from the journal.

use super::{
    driver::Driver,
    error::ShellError,
    faults::recovery_backoff,
    handle::{cannot_serve, core_failed, no_room, standing_by, unavailable},
    message::{Input, Next, refuse},
};
use crate::journal::JournalError;
use sojourn_core::{CoreFault, FoldError};
use sojourn_http::Backoff;
use sojourn_protocol::error::ApiError;
use std::{
    sync::mpsc::RecvTimeoutError,
    time::{Duration, Instant},
};

/// How often a standby server looks whether the active one is gone.
const STANDBY_INTERVAL: Duration = Duration::from_millis(250);
/// A server that can't go on from a journal that other servers may use leaves it to them for so long, at least: they look far
/// more often.
const MIN_ABSTENTION: Duration = Duration::from_secs(5);
/// And for so long at most, after several attempts: somebody may have mended what was wrong.
const MAX_ABSTENTION: Duration = Duration::from_secs(60);

impl Driver {
    /// The core has a fault: nothing of that step is journalled, everyone who waits hears of an internal error, and
    /// the state is read anew from the journal. Faults that come again soon are followed by longer and longer pauses.
    pub(super) fn reload(&mut self, fault: &CoreFault) -> Next {
        self.counts.core_failed();
        let error = fault as &dyn std::error::Error;
        match fault {
            CoreFault::Fold(FoldError { event, position, .. }) => {
                tracing::error!(error, event, position = position.0, "the core failed; reloading");
            }
            _ => tracing::error!(error, "the core failed; reloading"),
        }
        for reply in std::mem::take(&mut self.waiting).into_values() {
            // The caller may have gone.
            drop(reply.send(Err(core_failed())));
        }
        // The writer first appends the events of earlier steps.
        self.end_writer();
        let pause = self.faults.pause();
        match self.refuse_for(pause, &unavailable()) {
            Next::Stop => Next::Stop,
            Next::Run => self.recover_journal(),
        }
    }

    /// The journal has failed, and what it holds is unknown. All that was decided since is given up, all callers that
    /// wait are refused, and the state is recovered anew until that works.
    pub(super) fn recover_journal(&mut self) -> Next {
        self.waiting.clear();
        self.end_writer();
        let mut backoff = recovery_backoff();
        let mut abstention = Backoff::from(MIN_ABSTENTION, MAX_ABSTENTION);
        let mut stands_by_for = None;
        loop {
            let (refusal, length) = match self.start_over() {
                Ok(()) => {
                    tracing::info!(position = self.core.position().0, "going on from the journal");
                    // Who was let in meanwhile was let in by the tokens of before, which another server may have replaced.
                    return self.refuse_for(Duration::ZERO, &unavailable());
                }
                Err(ShellError::Journal(JournalError::Standby { active })) => {
                    let refusal = standing_by(&active);
                    if stands_by_for.as_ref() != Some(&active) {
                        tracing::info!(active, "standing by");
                        stands_by_for = Some(active);
                    }
                    (refusal, STANDBY_INTERVAL)
                }
                Err(error) => {
                    self.counts.journal_failed();
                    // What this server can't do, another may.
                    self.journals.leave();
                    let is_full =
                        matches!(&error, ShellError::Journal(journal) if journal.is_full());
                    let cause = &error as &dyn std::error::Error;
                    if is_full || error.is_passing() || !self.journals.is_shared() {
                        tracing::error!(
                            error = cause,
                            "can't go on from the journal; trying again"
                        );
                        let refusal = if is_full { no_room() } else { unavailable() };
                        (refusal, backoff.next(None))
                    } else {
                        let pause = abstention.next(Some(MIN_ABSTENTION));
                        let seconds = pause.as_secs();
                        tracing::error!(
                            error = cause,
                            seconds,
                            "can't go on from the journal; leaving it to other servers before trying again"
                        );
                        (cannot_serve(), pause)
                    }
                }
            };
            if self.refuse_for(length, &refusal) == Next::Stop {
                return Next::Stop;
            }
        }
    }

    /// Refuses all inputs for this long, and those that have come already in any case.
    fn refuse_for(&self, pause: Duration, refusal: &ApiError) -> Next {
        let end = Instant::now() + pause;
        loop {
            match self.inbox.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(Input::Stop | Input::Broken { for_good: true, .. })
                | Err(RecvTimeoutError::Disconnected) => return Next::Stop,
                Ok(input) => refuse(input, refusal),
                Err(RecvTimeoutError::Timeout) => return Next::Run,
            }
        }
    }
}
