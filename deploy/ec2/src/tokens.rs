//! Client tokens: EC2 carries two requests with one token out once.

use sojourn_fleet::cloud::Order;
use sojourn_protocol::{digest::Hasher, machines::MachineName};

/// The token of a machine of an order: of its name, and of what the order says beside the price limit. It has as many
/// characters as EC2 takes, 64.
///
/// The enrolment token isn't part of it. Who asks again after a crash has another one, and is told by
/// [`TokenReused`](sojourn_fleet::cloud::CloudError::TokenReused) that the machine was bought.
pub(crate) fn client_token(fleet: &str, name: &MachineName, order: &Order) -> String {
    let mut digest = Hasher::default();
    let mut add = |text: &str| {
        digest.update(text.as_bytes());
        digest.update(&[0]);
    };
    add(fleet);
    add(name.as_str());
    add(order.market.name());
    for pool in &order.pools {
        add(&pool.region);
        add(&pool.zone);
        add(&pool.instance_type);
    }
    digest.finish().to_string()
}
