//! Asks for notices, again and again.

use super::{Notice, cloud::Cloud, service::Service};
use std::{future::pending, time::Duration};

/// How often a cloud is looked for: at the start of a machine its network may not be there yet.
const TRIES: u32 = 12;

/// A watch over notices.
#[derive(Debug)]
pub(crate) struct Watch {
    service: Option<Service>,
    cloud: Option<Cloud>,
    tries: u32,
    every: Duration,
    /// What was told last.
    told: Option<Notice>,
}

impl Watch {
    /// Over what the service says, asked so often; without one there are no notices.
    pub(crate) fn new(service: Option<Service>, every: Duration) -> Self {
        Self { service, cloud: None, tries: 0, every, told: None }
    }

    /// The next notice that says something new. May be dropped at any point.
    pub(crate) async fn next(&mut self) -> Notice {
        let Some(service) = &self.service else { return pending().await };
        loop {
            if let Some(cloud) = &mut self.cloud {
                match cloud.ask(service).await {
                    Ok(Some(notice)) if self.told.as_ref() != Some(&notice) => {
                        self.told = Some(notice.clone());
                        return notice;
                    }
                    Ok(_) => {}
                    Err(error) => tracing::debug!(%error, "no word of notices"),
                }
            } else if self.tries < TRIES {
                self.tries += 1;
                self.cloud = Cloud::find(service).await;
                if let Some(cloud) = &self.cloud {
                    tracing::info!(cloud = cloud.name(), "the cloud's notices are watched");
                    continue;
                }
            } else {
                return pending().await;
            }
            tokio::time::sleep(self.every).await;
        }
    }
}
