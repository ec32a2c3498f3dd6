//! The traffic over the network, and what was refused.

use super::{App, JsonAnswer, auth::User};
use sojourn_protocol::view::TrafficView;

/// Counts of connections, requests, bytes and refusals since this server started.
#[utoipa::path(
    get,
    path = "/v1/traffic",
    operation_id = "traffic",
    responses((status = 200, description = "The counts.", body = TrafficView)),
    security(("admin" = []))
)]
pub(super) async fn traffic(app: App, _: User) -> JsonAnswer<TrafficView> {
    JsonAnswer(app.traffic.totals())
}
