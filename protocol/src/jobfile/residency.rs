//! `residency` of `[placement]`: a policy by its word, or a table of the policy and its parameters.

use super::reader::{JobFileNode, optional, refuse_others};
use crate::spec::{Growth, Listing, MAX_LOOKS, Rebalancing, ResidencyPolicy, Scope, SpeCon};
use sojourn_forms::{Node, Table};

const GROWTHS: &[(&str, Growth)] =
    &[("per-trial", Growth::PerTrial), ("per-look", Growth::PerLook)];
const SCOPES: &[(&str, Scope)] = &[("host", Scope::Host), ("cluster", Scope::Cluster)];
const LISTINGS: &[(&str, Listing)] =
    &[("improved", Listing::Improved), ("thesis", Listing::Thesis), ("printed", Listing::Printed)];

/// The policies by their words, with their defaults.
fn policies() -> [(&'static str, ResidencyPolicy); 4] {
    [
        ("none", ResidencyPolicy::None),
        ("least-loaded", ResidencyPolicy::LeastLoaded),
        ("specon", ResidencyPolicy::SpeCon(SpeCon::default())),
        ("srpt", ResidencyPolicy::ShortestRemaining(Rebalancing::default())),
    ]
}

/// Reads `residency`.
pub(super) fn read(node: &Node<'_>) -> Option<ResidencyPolicy> {
    if node.is_string() {
        return node.word(&policies());
    }
    let section = node.section()?;
    let policy = section.required("policy", "a policy such as `\"specon\"`")?;
    let policy = policy.word(&policies())?;
    let policy = match policy {
        ResidencyPolicy::None | ResidencyPolicy::LeastLoaded => {
            refuse_others(&section, policy.name(), &[])?;
            policy
        }
        // Every key of the table is one of its parameters.
        ResidencyPolicy::SpeCon(_) => ResidencyPolicy::SpeCon(specon(&section)?),
        ResidencyPolicy::ShortestRemaining(defaults) => {
            refuse_others(&section, policy.name(), &["interval"])?;
            let interval = optional(&section, "interval", defaults.interval, Node::duration)?;
            ResidencyPolicy::ShortestRemaining(Rebalancing { interval })
        }
    };
    match policy.check() {
        Ok(()) => Some(policy),
        Err((key, wanted)) => section.refuse(key, wanted),
    }
}

fn specon(section: &Table<'_>) -> Option<SpeCon> {
    let defaults = match optional(section, "reproduction", false, Node::boolean)? {
        true => SpeCon { listing: Listing::Printed, ..SpeCon::thesis() },
        false => SpeCon::default(),
    };
    let count = |node: &Node<'_>| node.integer(0, MAX_LOOKS);
    let alpha = optional(section, "alpha", defaults.alpha, Node::number);
    let growth = optional(section, "growth", defaults.growth, |node| node.word(GROWTHS));
    let interval = optional(section, "interval", defaults.interval, Node::duration);
    let least_batches = optional(section, "least_batches", defaults.least_batches, count);
    let confirm = optional(section, "confirm", defaults.confirm, count);
    let scope = optional(section, "scope", defaults.scope, |node| node.word(SCOPES));
    let margin = optional(section, "margin", defaults.margin, Node::number);
    let absolute = optional(section, "absolute", defaults.absolute, Node::boolean);
    let listing = optional(section, "listing", defaults.listing, |node| node.word(LISTINGS));
    Some(SpeCon {
        alpha: alpha?,
        growth: growth?,
        interval: interval?,
        least_batches: least_batches?,
        confirm: confirm?,
        scope: scope?,
        margin: margin?,
        absolute: absolute?,
        listing: listing?,
    })
}
