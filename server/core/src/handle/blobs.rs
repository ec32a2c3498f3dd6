//! Which blobs the state has, and what may be put in the store.

use crate::{command::ReplyTo, core::Core, effect::Answer, event::Event, state::BlobStatus};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    error::ErrorKind,
};

impl Core {
    pub(crate) fn missing(&mut self, to: ReplyTo, blobs: &[BlobRef]) {
        let (there, missing): (Vec<BlobRef>, Vec<BlobRef>) =
            blobs.iter().partition(|blob| self.state.blobs.is_published(blob));
        // Who asks is about to submit: what is there must stay until then.
        for blob in there {
            if self.state.blobs.references(&blob.sha256) == 0 {
                self.emit(Event::BlobPublished { blob });
            }
        }
        let missing: Vec<Digest> = missing.iter().map(|blob| blob.sha256).collect();
        self.reply(to, Ok(Answer::Missing(missing)));
    }

    pub(crate) fn authorize_publish(&mut self, to: ReplyTo, blob: BlobRef) {
        if self.refuse_doomed(to, blob) {
            return;
        }
        self.reply(to, Ok(Answer::PublishAuthorized));
    }

    pub(crate) fn published(&mut self, to: ReplyTo, blob: BlobRef) {
        if self.refuse_doomed(to, blob) {
            return;
        }
        // Said again for a known blob that nothing refers to, so that its grace period starts anew.
        let idle = self.state.blobs.references(&blob.sha256) == 0;
        if idle || !self.state.blobs.is_published(&blob) {
            self.emit(Event::BlobPublished { blob });
            self.soft.work_changed = true;
        }
        self.reply(to, Ok(Answer::Published));
    }

    pub(crate) fn deleted(&mut self, blob: Digest) {
        if self.state.blobs.status(&blob) == Some(BlobStatus::Doomed) {
            self.emit(Event::BlobDeleted { blob });
        }
    }

    pub(crate) fn lost(&mut self, blob: Digest) {
        if self.state.blobs.status(&blob) == Some(BlobStatus::Published) {
            self.emit(Event::BlobLost { blob });
        }
    }

    fn refuse_doomed(&mut self, to: ReplyTo, blob: BlobRef) -> bool {
        let doomed = self.state.blobs.status(&blob.sha256) == Some(BlobStatus::Doomed);
        if doomed {
            let message = format!("blob {} is being deleted: send it again", blob.sha256.short());
            self.refuse(to, ErrorKind::Unavailable, message);
        }
        doomed
    }
}
