//! Asks for notices, again and again.

use super::{Announcement, Notice, cloud::Cloud, service::Service};
use jiff::Timestamp;
use std::{future::pending, time::Duration};
use tokio::time::Instant;

/// How often a cloud is looked for: at the start of a machine its network may not be there yet.
const TRIES: u32 = 12;

/// A watch over notices.
#[derive(Debug)]
pub(crate) struct Watch {
    service: Option<Service>,
    cloud: Option<Cloud>,
    tries: u32,
    every: Duration,
    /// The last notice.
    last: Option<Announcement>,
}

impl Watch {
    /// Over what the service says, asked so often; without one there are no notices.
    pub(crate) fn new(service: Option<Service>, every: Duration) -> Self {
        Self { service, cloud: None, tries: 0, every, last: None }
    }

    /// The next notice that says something new. May be dropped at any point.
    pub(crate) async fn next(&mut self) -> Notice {
        loop {
            if let Some(notice) = self.look().await {
                return notice;
            }
            if self.service.is_none() || (self.cloud.is_none() && self.tries >= TRIES) {
                return pending().await;
            }
            tokio::time::sleep(self.every).await;
        }
    }

    /// Asks once. A notice, if there is one that says something new. May be dropped at any point.
    pub(crate) async fn look(&mut self) -> Option<Notice> {
        let service = self.service.as_ref()?;
        if self.cloud.is_none() && self.tries < TRIES {
            self.tries += 1;
            self.cloud = Cloud::find(service).await;
            if let Some(cloud) = &self.cloud {
                tracing::info!(cloud = cloud.name(), "the cloud's notices are watched");
            }
        }
        let announcement = match self.cloud.as_mut()?.ask(service).await {
            Ok(announcement) => announcement?,
            Err(error) => {
                tracing::debug!(%error, "no word of notices");
                return None;
            }
        };
        if self.last.as_ref() == Some(&announcement) {
            return None;
        }
        let notice = announcement.notice(Instant::now(), Timestamp::now());
        self.last = Some(announcement);
        Some(notice)
    }
}
