//! Compute Engine's metadata server.
//!
//! <https://cloud.google.com/compute/docs/instances/create-use-spot#detect-preemption>,
//! <https://cloud.google.com/compute/docs/metadata/getting-live-migration-notice>

use super::{
    Announcement, When,
    service::{Service, ServiceError},
};
use std::time::Duration;

/// Without it nothing is answered.
const FLAVOR: (&str, &str) = ("Metadata-Flavor", "Google");
const PREEMPTED: &str = "computeMetadata/v1/instance/preempted";
const MAINTENANCE: &str = "computeMetadata/v1/instance/maintenance-event";
/// The event of a machine that can't be moved while it runs, such as one with GPUs.
const TERMINATE: &str = "TERMINATE_ON_HOST_MAINTENANCE";
/// A machine that is preempted runs on for so long.
const PREEMPTED_WITHIN: Duration = Duration::from_secs(30);
/// One that ends for maintenance for so long at least; one with GPUs for up to an hour, which isn't announced.
const TERMINATED_WITHIN: Duration = Duration::from_secs(60);

/// A Compute Engine instance.
#[derive(Debug)]
pub(crate) struct Gcp;

impl Gcp {
    /// Is this machine one?
    pub(crate) async fn find(service: &Service) -> Result<Self, ServiceError> {
        is_preempted(service).await.map(|_| Self)
    }

    /// The notice, where there is one.
    pub(crate) async fn ask(
        &self,
        service: &Service,
    ) -> Result<Option<Announcement>, ServiceError> {
        if is_preempted(service).await? {
            return Ok(Some(announced("preempted", PREEMPTED_WITHIN)));
        }
        // A machine that is moved runs on.
        let event = service.get(MAINTENANCE, FLAVOR).await?;
        let ends = event.is_some_and(|event| event.trim() == TERMINATE);
        Ok(ends.then(|| announced("host maintenance", TERMINATED_WITHIN)))
    }
}

fn announced(what: &str, within: Duration) -> Announcement {
    Announcement { what: what.to_owned(), when: When::Within(within) }
}

async fn is_preempted(service: &Service) -> Result<bool, ServiceError> {
    let text = service.get(PREEMPTED, FLAVOR).await?.unwrap_or_default();
    match text.trim() {
        "TRUE" => Ok(true),
        "FALSE" => Ok(false),
        _ => Err(ServiceError::Garbage(text)),
    }
}
