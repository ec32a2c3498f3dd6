//! Notes that users make about jobs.

use super::JobHandler;
use crate::reply::Reply;
use sojourn_protocol::{api::MAX_NOTE_CHARS, ids::JobId, text::plain_line};
use sojourn_state::Event;

impl JobHandler<'_> {
    /// Notes something about a job, which may have ended. It replaces the note before.
    pub(crate) fn note(&mut self, job: JobId, note: &str) -> Reply<()> {
        let note = plain_line(note, MAX_NOTE_CHARS);
        if self.state().find_job(job)?.note != note {
            self.record(Event::JobNoted { job, note })?;
        }
        Ok(())
    }
}
