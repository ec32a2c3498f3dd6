//! `[placement]`.

use super::{cpu_shares, merge, reader::JobFileNode, residency};
use crate::{
    money::MicroUsd,
    spec::{
        LocalSteps, MAX_DEADLINE, MAX_HOSTS, MAX_MERGE_IN_FLIGHT, MAX_PRIORITY, MAX_QUORUM,
        MAX_REPLICAS, MAX_SLOT_SHARE, MAX_THREADS, MIN_DEADLINE, MIN_MERGE_IN_FLIGHT, OrderChoice,
        PlacementSpec, Replicas, Verify, VerifyChoice, Visits,
    },
    time::Millis,
};
use sojourn_forms::{Node, Table};

const ORDERS: &[(&str, OrderChoice)] =
    &[("auto", OrderChoice::Auto), ("hop", OrderChoice::Hop), ("merge", OrderChoice::Merge)];
const VISITS: &[(&str, Visits)] = &[("fixed", Visits::Fixed), ("free", Visits::Free)];
const VERIFY: &[(&str, VerifyChoice)] =
    &[("strangers", VerifyChoice::STRANGERS), ("none", VerifyChoice::NONE)];
const LOCAL_STEPS: &[(&str, LocalSteps)] =
    &[("shard", LocalSteps::Shard), ("by-speed", LocalSteps::BySpeed)];

/// Reads `[placement]`; all of it may be left out.
pub(super) fn read(root: &Table<'_>) -> Option<PlacementSpec> {
    let defaults = PlacementSpec::new(OrderChoice::Auto, true, 1);
    let Some(node) = root.optional("placement") else { return Some(defaults) };
    let section = node.section()?;
    let order = section.optional("order").map_or(Some(defaults.order), |node| node.word(ORDERS));
    // How to merge may be said whatever the order is, so that the order alone has to be changed.
    let merge = section.optional("merge").map_or(Some(None), |node| merge::read(&node).map(Some));
    let merge_below = section
        .optional("merge_below")
        .map_or(Some(defaults.merge_below), |node| thousandths(&node));
    let merge_in_flight = section.optional("merge_in_flight").map_or(Some(None), |node| {
        node.integer(MIN_MERGE_IN_FLIGHT, MAX_MERGE_IN_FLIGHT).map(Some)
    });
    let local_steps = section
        .optional("local_steps")
        .map_or(Some(defaults.local_steps), |node| node.word(LOCAL_STEPS));
    let visits =
        section.optional("visits").map_or(Some(None), |node| visits(&node, order?).map(Some));
    let reproducible =
        section.optional("reproducible").map_or(Some(defaults.reproducible), |node| node.boolean());
    let threads = section
        .optional("threads")
        .map_or(Some(defaults.threads), |node| node.integer(1, MAX_THREADS));
    let replicas =
        section.optional("replicas").map_or(Some(defaults.replicas), |node| replicas(&node));
    let priority = section
        .optional("priority")
        .map_or(Some(defaults.priority), |node| node.integer(-MAX_PRIORITY, MAX_PRIORITY));
    let slot_share = section
        .optional("share")
        .map_or(Some(defaults.slot_share), |node| node.integer(1, MAX_SLOT_SHARE));
    let max_hosts = section
        .optional("max_hosts")
        .map_or(Some(None), |node| node.integer(1, MAX_HOSTS).map(Some));
    let verify = section.optional("verify").map_or(Some(None), |node| verify(&node).map(Some));
    let reproducible = match (reproducible?, section.optional("verify")) {
        (false, Some(node)) if verify? != Some(VerifyChoice::NONE) => {
            return node
                .refuse("needs `reproducible = true`: other arithmetic comes to other results");
        }
        (reproducible, _) => reproducible,
    };
    let budget = section.optional("budget").map_or(Some(None), |node| amount(&node).map(Some));
    let deadline =
        section.optional("deadline").map_or(Some(None), |node| deadline(&node).map(Some));
    let cpu_shares = section
        .optional("host_shares")
        .map_or(Some(defaults.cpu_shares), |node| cpu_shares::read(&node));
    let residency = section
        .optional("residency")
        .map_or(Some(defaults.residency), |node| residency::read(&node));
    let placement = PlacementSpec {
        order: order?,
        reproducible,
        threads: threads?,
        replicas: replicas?,
        priority: priority?,
        slot_share: slot_share?,
        max_hosts: max_hosts?,
        merge: merge?,
        merge_below: merge_below?,
        merge_in_flight: merge_in_flight?,
        local_steps: local_steps?,
        verify: verify?,
        visits: visits?,
        budget: budget?,
        deadline: deadline?,
        cpu_shares: cpu_shares?,
        residency: residency?,
    };
    match placement.check_residency() {
        Ok(()) => Some(placement),
        Err(reason) => section.refuse("residency", reason),
    }
}

/// An amount of money that machines may cost, such as `"20 usd"`.
pub(super) fn amount(node: &Node<'_>) -> Option<MicroUsd> {
    let text = node.string("an amount such as `\"20 usd\"`")?;
    match text.parse::<MicroUsd>() {
        Ok(MicroUsd(0)) => node.refuse("is nothing; leave it out where no machines are bought"),
        Ok(amount) => Some(amount),
        Err(wanted) => node.refuse(format!("is `{text}`; {wanted}")),
    }
}

/// `deadline = "8h"`.
fn deadline(node: &Node<'_>) -> Option<Millis> {
    let text = node.string("a length of time such as `\"8h\"`")?;
    match text.parse::<Millis>() {
        Ok(time) if (MIN_DEADLINE..=MAX_DEADLINE).contains(&time) => Some(time),
        Ok(_) => {
            node.refuse(format!("is {text}; it has to be from {MIN_DEADLINE} to {MAX_DEADLINE}"))
        }
        Err(wanted) => node.refuse(format!("is `{text}`; {wanted}")),
    }
}

/// Results that are merged in the order in which they arrive follow from no order of visits.
fn visits(node: &Node<'_>, order: OrderChoice) -> Option<Visits> {
    let visits = node.word(VISITS)?;
    if visits == Visits::Fixed && order == OrderChoice::Merge {
        return node.refuse(
            "doesn't go with `order = \"merge\"`: results are merged in the order in which they arrive",
        );
    }
    Some(visits)
}

fn replicas(node: &Node<'_>) -> Option<Replicas> {
    if node.is_string() {
        return node.word(&[("demand", Replicas::Demand)]);
    }
    node.integer(1, MAX_REPLICAS).map(Replicas::Fixed)
}

/// `verify = "strangers"`, `"none"`, or `{ quorum = 2, rate = 0.1 }` for all hosts.
fn verify(node: &Node<'_>) -> Option<VerifyChoice> {
    if node.is_string() {
        return node.word(VERIFY);
    }
    let section = node.section()?;
    let quorum =
        section.optional("quorum").map_or(Some(Verify::QUORUM), |node| node.integer(2, MAX_QUORUM));
    let rate = section.optional("rate").map_or(Some(Verify::RATE), |node| {
        let rate = thousandths(&node)?;
        if rate == 0 { node.refuse("is 0; at least 0.001 is wanted") } else { Some(rate) }
    });
    Some(VerifyChoice::All(Verify { quorum: quorum?, rate: rate? }))
}

/// A ratio, as so many thousandths.
fn thousandths(node: &Node<'_>) -> Option<u32> {
    let ratio = node.number()?;
    if !(0.0..=1.0).contains(&ratio) {
        return node.refuse(format!("is {ratio}; a number from 0 to 1 is wanted"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1000")]
    Some((ratio * 1000.0).round() as u32)
}
