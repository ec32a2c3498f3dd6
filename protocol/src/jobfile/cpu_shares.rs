//! `host_shares` of `[placement]`: a policy by its word, or a table of the policy and its parameters.

use super::reader::{JobFileNode, optional, refuse_others};
use crate::spec::{Apply, CpuSharePolicy, First, FlowCon, Order, Threshold};
use sojourn_forms::{Node, Table};

/// The keys of FlowCon's parameters.
const OF_FLOWCON: &[&str] =
    &["alpha", "threshold", "interval", "beta", "longest_interval", "absolute", "apply"];
/// The keys of the policies by which one trial goes first.
const OF_FIRST: &[&str] = &["interval", "least"];
const THRESHOLDS: &[(&str, Threshold)] =
    &[("per-trial", Threshold::PerTrial), ("per-second", Threshold::PerSecond)];
const WAYS: &[(&str, Apply)] = &[("weight", Apply::Weight), ("cap", Apply::Cap)];

/// The policies by their words, with their defaults.
fn policies() -> [(&'static str, CpuSharePolicy); 4] {
    let first = |order| CpuSharePolicy::First(First::new(order));
    [
        ("equal", CpuSharePolicy::Equal),
        ("flowcon", CpuSharePolicy::FlowCon(FlowCon::default())),
        ("srpt", first(Order::ShortestRemaining)),
        ("las", first(Order::LeastAttained)),
    ]
}

/// Reads `host_shares`.
pub(super) fn read(node: &Node<'_>) -> Option<CpuSharePolicy> {
    if node.is_string() {
        return node.word(&policies());
    }
    let section = node.section()?;
    let policy = section.required("policy", "a policy such as `\"flowcon\"`")?;
    let policy = match policy.word(&policies())? {
        CpuSharePolicy::Equal => {
            refuse_others(&section, "equal", &[])?;
            CpuSharePolicy::Equal
        }
        CpuSharePolicy::FlowCon(defaults) => {
            refuse_others(&section, "flowcon", OF_FLOWCON)?;
            CpuSharePolicy::FlowCon(flowcon(&section, defaults)?)
        }
        CpuSharePolicy::First(defaults) => {
            let name = CpuSharePolicy::First(defaults).name();
            refuse_others(&section, name, OF_FIRST)?;
            let interval = optional(&section, "interval", defaults.interval, Node::duration);
            let least = optional(&section, "least", defaults.least, Node::number);
            CpuSharePolicy::First(First { interval: interval?, least: least?, ..defaults })
        }
    };
    match policy.check() {
        Ok(()) => Some(policy),
        Err((key, wanted)) => section.refuse(key, wanted),
    }
}

fn flowcon(section: &Table<'_>, defaults: FlowCon) -> Option<FlowCon> {
    let alpha = optional(section, "alpha", defaults.alpha, Node::number);
    let threshold =
        optional(section, "threshold", defaults.threshold, |node| node.word(THRESHOLDS));
    let interval = optional(section, "interval", defaults.interval, Node::duration);
    let beta = optional(section, "beta", defaults.beta, Node::number);
    let longest = defaults.longest_interval.max(interval?);
    let longest = optional(section, "longest_interval", longest, Node::duration);
    let absolute = optional(section, "absolute", defaults.absolute, Node::boolean);
    let apply = optional(section, "apply", defaults.apply, |node| node.word(WAYS));
    Some(FlowCon {
        alpha: alpha?,
        threshold: threshold?,
        interval: interval?,
        beta: beta?,
        longest_interval: longest?,
        absolute: absolute?,
        apply: apply?,
    })
}
