//! Says that something has changed, as server-sent events: what a page that is open needs to know, so that it asks for what is new.
//!
//! While anybody listens, one task looks now and then at how far the journal is. A listener hears the latest one alone:
//! nothing is kept for one that is slow, and one that is gone is noticed when it is written to.

use super::{App, AppState, auth::User};
use crate::shell::ShellHandle;
use actix_web::{
    HttpResponse,
    http::header::{CONTENT_TYPE, HeaderValue},
};
use bytes::Bytes;
use parking_lot::Mutex;
use std::{convert::Infallible, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

/// Between two looks at the journal's position.
const INTERVAL: Duration = Duration::from_millis(500);
/// Without a change so much later something is sent, which shows whether the listener is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Then a listener is to come again, and says again who it is.
const LIFETIME: Duration = Duration::from_secs(3600);

/// The journal's position, for whoever listens.
#[derive(Debug, Default)]
pub(crate) struct Changes(Mutex<Option<watch::Receiver<u64>>>);

impl Changes {
    /// The position, from now on; 0 before it is known. Must be called within a Tokio runtime.
    fn listen(&self, shell: &ShellHandle) -> watch::Receiver<u64> {
        let mut shared = self.0.lock();
        // A task that has ended has dropped its end.
        if let Some(position) = shared.as_ref().filter(|position| position.has_changed().is_ok()) {
            return position.clone();
        }
        let (sender, position) = watch::channel(0);
        let shell = shell.clone();
        *shared = Some(position.clone());
        tokio::spawn(async move { look(&shell, &sender).await });
        position
    }
}

/// Looks at the position until nobody listens but the shared receiver, from which others are made.
async fn look(shell: &ShellHandle, sender: &watch::Sender<u64>) {
    while sender.receiver_count() > 1 {
        let position = shell.counts().durable();
        sender.send_if_modified(|known| std::mem::replace(known, position) != position);
        sleep(INTERVAL).await;
    }
}

pub(super) async fn changes(app: App, _: User) -> HttpResponse {
    stream(&app)
}

/// The events, for whoever was let in.
pub(super) fn stream(app: &AppState) -> HttpResponse {
    let position = app.changes.listen(&app.shell);
    let until = Instant::now() + LIFETIME;
    let events = futures::stream::unfold((position, until), async |(mut position, until)| {
        let text = match timeout(KEEP_ALIVE, position.changed()).await {
            _ if Instant::now() >= until => return None,
            Ok(Ok(())) => {
                let position = *position.borrow_and_update();
                format!("event: changed\ndata: {position}\n\n")
            }
            Ok(Err(_)) => return None,
            Err(_) => ":\n\n".to_owned(),
        };
        Some((Ok::<Bytes, Infallible>(text.into()), (position, until)))
    });
    let first = futures::stream::once(async { Ok(Bytes::from_static(b"retry: 2000\n\n")) });
    let mut answer = HttpResponse::Ok();
    answer.insert_header((CONTENT_TYPE, HeaderValue::from_static("text/event-stream")));
    answer.insert_header(("x-accel-buffering", "no"));
    answer.streaming(Box::pin(futures::StreamExt::chain(first, events)))
}
