//! Compute Engine's metadata server.
//!
//! <https://cloud.google.com/compute/docs/instances/create-use-spot#detect-preemption>

use super::{
    Notice,
    service::{Service, ServiceError},
};
use jiff::{SignedDuration, Timestamp};

/// Without it nothing is answered.
const FLAVOR: (&str, &str) = ("Metadata-Flavor", "Google");
const PREEMPTED: &str = "computeMetadata/v1/instance/preempted";
/// The machine runs on for so long.
const LEFT: SignedDuration = SignedDuration::from_secs(30);

/// A Compute Engine instance.
#[derive(Debug)]
pub(crate) struct Gcp {
    /// When it is going to be stopped, reckoned from when that was first said.
    at: Option<Timestamp>,
}

impl Gcp {
    /// Is this machine one?
    pub(crate) async fn find(service: &Service) -> Result<Self, ServiceError> {
        let text = service.get(PREEMPTED, FLAVOR).await?;
        match text.as_deref().map(is_preempted) {
            Some(Some(_)) => Ok(Self { at: None }),
            _ => Err(ServiceError::Garbage("neither TRUE nor FALSE".to_owned())),
        }
    }

    /// The notice, where there is one.
    pub(crate) async fn ask(&mut self, service: &Service) -> Result<Option<Notice>, ServiceError> {
        let text = service.get(PREEMPTED, FLAVOR).await?.unwrap_or_default();
        match is_preempted(&text) {
            Some(true) => {
                let at = *self.at.get_or_insert_with(|| {
                    Timestamp::now().saturating_add(LEFT).unwrap_or(Timestamp::MAX)
                });
                Ok(Some(Notice { what: "preempted".to_owned(), at: Some(at) }))
            }
            Some(false) => Ok(None),
            None => Err(ServiceError::Garbage(text)),
        }
    }
}

fn is_preempted(text: &str) -> Option<bool> {
    match text.trim() {
        "TRUE" => Some(true),
        "FALSE" => Some(false),
        _ => None,
    }
}
