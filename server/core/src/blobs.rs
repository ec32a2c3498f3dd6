//! Which blobs the state has, what may be put in the store, and what is deleted there.

use crate::{
    effect::Effect,
    fault::CoreFault,
    ledger::Ledger,
    reply::{Refusal, Reply},
};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    error::ErrorKind,
    time::UnixMillis,
};
use sojourn_scheduling::{config::CoreConfig, waiters::Wake};
use sojourn_state::{BlobStatus, Blobs, Event};

/// When the next blob is to be condemned or deleted.
#[must_use]
pub(crate) fn next_collection(blobs: &Blobs, config: &CoreConfig) -> Option<UnixMillis> {
    let times = [
        blobs.oldest_idle().map(|(at, _)| at + config.condemn_after),
        blobs.oldest_awaited().map(|(at, _)| at + config.awaited_for),
        blobs.oldest_condemned().map(|(at, _)| at + config.delete_after),
    ];
    times.into_iter().flatten().min()
}

/// Publication and deletion of blobs.
pub(crate) struct BlobHandler<'a> {
    pub(crate) ledger: Ledger<'a>,
}

impl BlobHandler<'_> {
    /// Which of these blobs the state lacks. Whoever asks is about to submit: the others stay until then.
    pub(crate) fn missing(&mut self, blobs: &[BlobRef]) -> Reply<Vec<Digest>> {
        let (there, missing): (Vec<BlobRef>, Vec<BlobRef>) =
            blobs.iter().partition(|blob| self.ledger.state.blobs.is_published(blob));
        for blob in there {
            if self.ledger.state.blobs.references(&blob.sha256) == 0 {
                self.ledger.record(Event::BlobPublished { blob })?;
            }
        }
        Ok(missing.iter().map(|blob| blob.sha256).collect())
    }

    /// May this blob be put in the store? Not while its deletion is under way.
    pub(crate) fn authorize_publish(&self, blob: BlobRef) -> Reply<()> {
        if self.ledger.state.blobs.status(&blob.sha256) == Some(BlobStatus::Doomed) {
            let message = format!("blob {} is being deleted: send it again", blob.sha256.short());
            return Err(Refusal::new(ErrorKind::Unavailable, message));
        }
        Ok(())
    }

    /// A blob is in the store.
    pub(crate) fn published(&mut self, blob: BlobRef) -> Reply<()> {
        self.authorize_publish(blob)?;
        // Recorded again for a known blob that nothing refers to, so that its grace period starts anew.
        let unused = self.ledger.state.blobs.references(&blob.sha256) == 0;
        if unused || !self.ledger.state.blobs.is_published(&blob) {
            self.ledger.record(Event::BlobPublished { blob })?;
            self.ledger.waiters.wake(Wake::All);
        }
        Ok(())
    }

    /// A blob whose deletion was asked for is gone.
    pub(crate) fn deleted(&mut self, blob: Digest) -> Result<(), CoreFault> {
        match self.ledger.state.blobs.status(&blob) {
            Some(BlobStatus::Doomed) => self.ledger.record(Event::BlobDeleted { blob }),
            _ => Ok(()),
        }
    }

    /// The store has lost a blob.
    pub(crate) fn lost(&mut self, blob: Digest) -> Result<(), CoreFault> {
        match self.ledger.state.blobs.status(&blob) {
            Some(BlobStatus::Published) => self.ledger.record(Event::BlobLost { blob }),
            _ => Ok(()),
        }
    }

    /// Condemns blobs that nothing refers to, and deletes those that were condemned long enough ago.
    pub(crate) fn collect(&mut self) -> Result<(), CoreFault> {
        let (now, config) = (self.ledger.clock.now(), self.ledger.config);
        while let Some((since, blob)) = self.ledger.state.blobs.oldest_idle()
            && since + config.condemn_after <= now
        {
            self.ledger.record(Event::BlobCondemned { blob })?;
        }
        while let Some((since, blob)) = self.ledger.state.blobs.oldest_awaited()
            && since + config.awaited_for <= now
        {
            self.ledger.record(Event::BlobCondemned { blob })?;
        }
        while let Some((since, blob)) = self.ledger.state.blobs.oldest_condemned()
            && since + config.delete_after <= now
        {
            self.ledger.record(Event::BlobDoomed { blob })?;
            self.ledger.effect(Effect::Delete(blob));
        }
        Ok(())
    }

    /// Asks again for deletions that were under way when the server ended.
    pub(crate) fn resume_deletions(&mut self) {
        for blob in self.ledger.state.blobs.doomed() {
            self.ledger.output.push(Effect::Delete(blob));
        }
    }
}
