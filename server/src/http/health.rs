//! Whether the server lives, and how much it has received and sent.

use super::{App, JsonAnswer, JsonResult};
use sojourn_core::request;
use sojourn_protocol::api::Health;

pub(super) async fn health(app: App) -> JsonResult<Health> {
    let totals = app.traffic.totals();
    let storage = app.storage.seen();
    let position = app.shell.request(request::GetPosition {}).await?;
    Ok(JsonAnswer(Health {
        status: storage.level.status().to_owned(),
        storage,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        journal_position: position.0,
        received_bytes: totals.received_bytes,
        sent_bytes: totals.sent_bytes,
        checkpoint_uploads: totals.checkpoint_uploads,
        blob_downloads: totals.blob_downloads,
    }))
}
