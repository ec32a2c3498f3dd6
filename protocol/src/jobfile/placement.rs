//! `[placement]`.

use super::reader::{Node, Section};
use crate::spec::{
    HIGHEST_PRIORITY, LARGEST_SHARE, MOST_REPLICAS, OrderChoice, PlacementSpec, Replicas,
};

/// Far more hosts than there are.
const MOST_HOSTS: u32 = 10_000_000;

/// Reads `[placement]`; all of it may be left out.
pub(super) fn read(root: &Section<'_>) -> Option<PlacementSpec> {
    let defaults = PlacementSpec::new(OrderChoice::Auto, true, 1);
    let Some(node) = root.optional("placement") else { return Some(defaults) };
    let section = node.section()?;
    let merging = "merging, which this version has not got; it trains in hop order";
    let merge = match section.optional("merge") {
        None => Some(()),
        Some(node) => node.refuse(format!("asks for {merging}")),
    };
    let order = match section.optional("order") {
        None => Some(defaults.order),
        Some(node) if node.as_string() == Some("merge") => {
            node.refuse(format!("is `\"merge\"`: {merging}"))
        }
        Some(node) => node.word(&[("auto", OrderChoice::Auto), ("hop", OrderChoice::Hop)]),
    };
    let reproducible =
        section.optional("reproducible").map_or(Some(defaults.reproducible), |node| node.boolean());
    let threads =
        section.optional("threads").map_or(Some(defaults.threads), |node| node.integer(1, 1024));
    let replicas =
        section.optional("replicas").map_or(Some(defaults.replicas), |node| replicas(&node));
    let priority = section
        .optional("priority")
        .map_or(Some(defaults.priority), |node| node.integer(-HIGHEST_PRIORITY, HIGHEST_PRIORITY));
    let share = section
        .optional("share")
        .map_or(Some(defaults.share), |node| node.integer(1, LARGEST_SHARE));
    let max_hosts = section
        .optional("max_hosts")
        .map_or(Some(None), |node| node.integer(1, MOST_HOSTS).map(Some));
    merge?;
    Some(PlacementSpec {
        order: order?,
        reproducible: reproducible?,
        threads: threads?,
        replicas: replicas?,
        priority: priority?,
        share: share?,
        max_hosts: max_hosts?,
        ..defaults
    })
}

fn replicas(node: &Node<'_>) -> Option<Replicas> {
    if node.is_string() {
        return node.word(&[("demand", Replicas::Demand)]);
    }
    node.integer(1, MOST_REPLICAS).map(Replicas::Fixed)
}
