//! A simulated host's call to its server, and what its agent hears of the end.

use sojourn_client_core::{AskId, CallError, Event, ReleaseReason, ReportError, UploadError};
use sojourn_core::Answer;
use sojourn_protocol::{error::ApiError, ids::LeaseId};

/// A call on its way.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Ask(AskId),
    Beat,
    Report(LeaseId),
    /// Asks how much of a checkpoint the server has, before the rest of it is sent.
    Locate(LeaseId),
    Release(Box<(Vec<LeaseId>, ReleaseReason)>),
}

impl Call {
    /// The event of an answer or a refusal; none where it isn't one to this call.
    pub(crate) fn answered(self, answer: Result<Answer, ApiError>) -> Option<Event> {
        Some(match (self, answer) {
            (Self::Ask(ask), Ok(Answer::Work(answer))) => Event::Work(ask, Ok(*answer)),
            (Self::Beat, Ok(Answer::Heartbeat(answer))) => Event::Heartbeat(Ok(answer)),
            (Self::Report(lease), Ok(Answer::Report(answer))) => Event::Report(lease, Ok(answer)),
            (Self::Release(call), Ok(Answer::Released(answer))) => {
                Event::Released(call.0, Ok(answer))
            }
            (call, Err(error)) => call.failed(Some(&error)),
            (_, Ok(_)) => return None,
        })
    }

    /// The event of a call that was refused, or has no answer.
    pub(crate) fn failed(self, refusal: Option<&ApiError>) -> Event {
        let call = CallError::default();
        match self {
            Self::Ask(ask) => Event::Work(ask, Err(call)),
            Self::Beat => Event::Heartbeat(Err(call)),
            Self::Release(release) => Event::Released(release.0, Err(call)),
            Self::Locate(lease) => Event::UploadFailed(lease, UploadError::Later(call)),
            Self::Report(lease) => {
                let error = refusal.map(ReportError::from_refusal);
                Event::Report(lease, Err(error.unwrap_or(ReportError::NoAnswer(call))))
            }
        }
    }
}
