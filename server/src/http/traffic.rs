//! The traffic over the network, and what was refused.

use super::{App, JsonAnswer, auth::User};
use sojourn_protocol::view::TrafficView;

pub(super) async fn traffic(app: App, _: User) -> JsonAnswer<TrafficView> {
    JsonAnswer(app.traffic.totals())
}
