//! `merge` of `[placement]`: a rule by its name, or a table of the rule and its parameters.

use super::{
    reader::{JobFileNode, optional},
    vocabulary,
};
use crate::spec::{
    Alpha, MAX_ARRIVALS, MAX_LOSS_RATIO, MergeSpec, OptimizerMerge, Outer, RuleSpec, Staleness,
};
use sojourn_forms::{Node, Table, list};

/// The rules by their words, with their defaults.
const RULES: &[(&str, RuleSpec)] = &[
    ("adasum", RuleSpec::ADASUM),
    ("vc-asgd", RuleSpec::VC_ASGD),
    ("delta", RuleSpec::DELTA),
    ("fedbuff", RuleSpec::FEDBUFF),
    ("delayed-nesterov", RuleSpec::DELAYED_NESTEROV),
    ("easgd", RuleSpec::EASGD),
    ("downpour", RuleSpec::DOWNPOUR),
    ("dc-asgd", RuleSpec::DC_ASGD),
];
const OPTIMIZERS: &[(&str, OptimizerMerge)] = &[
    ("average", OptimizerMerge::Average),
    ("reset", OptimizerMerge::Reset),
    ("last", OptimizerMerge::Last),
    ("discount", OptimizerMerge::Discount),
];
const STALENESS: &[(&str, Staleness)] = &[
    ("constant", Staleness::Constant),
    ("polynomial", Staleness::ROOT),
    ("hinge", Staleness::HINGE),
];
const OUTER: &[(&str, Outer)] = &[("sgd", Outer::SGD), ("nesterov", Outer::NESTEROV)];

/// Reads `merge`.
pub(super) fn read(node: &Node<'_>) -> Option<MergeSpec> {
    let default = MergeSpec::default();
    if node.is_string() {
        return node.word(RULES).map(MergeSpec::of);
    }
    let section = node.section()?;
    let rule =
        optional(&section, "rule", default.rule, |node| node.word(RULES)).and_then(|defaults| {
            let foreign = own_keys(&section, defaults.name(), keys_of(defaults));
            let rule = parameters(&section, defaults)?;
            foreign?;
            in_range(node, &section, rule)
        });
    let optimizer = optional(&section, "optimizer", None, |node| node.word(OPTIMIZERS).map(Some));
    let canary = optional(&section, "canary", None, |node| canary(node).map(Some));
    let suited = MergeSpec::of(rule?);
    let optimizer = optimizer?.unwrap_or(suited.optimizer);
    Some(MergeSpec { optimizer, canary: canary?, ..suited })
}

fn canary(node: &Node<'_>) -> Option<f64> {
    let most = node.number()?;
    if !(1.0..=MAX_LOSS_RATIO).contains(&most) {
        return node.refuse(format!(
            "is {most}: so many times the current version's loss, from 1 to {MAX_LOSS_RATIO}, is wanted"
        ));
    }
    Some(most)
}

/// The keys of a rule, besides those of every rule.
const fn keys_of(rule: RuleSpec) -> &'static [&'static str] {
    match rule {
        RuleSpec::VcAsgd { .. } => &["alpha", "staleness"],
        RuleSpec::Delta { .. } => &["gain", "staleness"],
        RuleSpec::Adasum { .. } => &["staleness"],
        RuleSpec::Fedbuff { .. } => &["arrivals", "outer", "staleness"],
        RuleSpec::DelayedNesterov { .. } => &["period", "rate", "momentum"],
        RuleSpec::Easgd { .. } => &["moving_rate"],
        RuleSpec::Downpour { .. } => &["rate"],
        RuleSpec::DcAsgd { .. } => &["lambda", "decay"],
    }
}

/// Refuses the keys of others than what is called `name`.
fn own_keys(section: &Table<'_>, name: &str, own: &[&str]) -> Option<()> {
    const OF_ALL: &[&str] = &["rule", "optimizer", "canary", "name"];
    let others = vocabulary::keys(section.path())
        .iter()
        .filter(|key| !own.contains(key) && !OF_ALL.contains(key));
    let mut mine = Some(());
    for node in others.filter_map(|key| section.optional(key)) {
        mine = node.refuse(format!("is no key of `{name}`, which has {}", list(own)));
    }
    mine
}

fn parameters(section: &Table<'_>, defaults: RuleSpec) -> Option<RuleSpec> {
    let weight = |default| optional(section, "staleness", default, staleness);
    let number = |key, default| optional(section, key, default, Node::number);
    let count = |key, default| {
        optional(section, key, default, |node| node.integer(1, MAX_ARRIVALS).map(Some))
    };
    Some(match defaults {
        RuleSpec::VcAsgd { alpha: default, staleness } => {
            let (alpha, staleness) =
                (optional(section, "alpha", default, alpha), weight(staleness));
            RuleSpec::VcAsgd { alpha: alpha?, staleness: staleness? }
        }
        RuleSpec::Delta { gain, staleness } => {
            let gain = optional(section, "gain", gain, |node| node.number().map(Some));
            let staleness = weight(staleness);
            RuleSpec::Delta { gain: gain?, staleness: staleness? }
        }
        RuleSpec::Fedbuff { arrivals, outer: default, staleness } => {
            let arrivals = count("arrivals", arrivals);
            let (outer, staleness) =
                (optional(section, "outer", default, outer), weight(staleness));
            RuleSpec::Fedbuff { arrivals: arrivals?, outer: outer?, staleness: staleness? }
        }
        RuleSpec::Adasum { staleness } => RuleSpec::Adasum { staleness: weight(staleness)? },
        RuleSpec::DelayedNesterov { period, rate, momentum } => {
            let period = count("period", period);
            let (rate, momentum) = (number("rate", rate), number("momentum", momentum));
            RuleSpec::DelayedNesterov { period: period?, rate: rate?, momentum: momentum? }
        }
        RuleSpec::Easgd { moving_rate } => {
            let given = |node: &Node<'_>| node.number().map(Some);
            RuleSpec::Easgd { moving_rate: optional(section, "moving_rate", moving_rate, given)? }
        }
        RuleSpec::Downpour { rate } => RuleSpec::Downpour { rate: number("rate", rate)? },
        RuleSpec::DcAsgd { lambda, decay } => {
            let (lambda, decay) = (number("lambda", lambda), number("decay", decay));
            RuleSpec::DcAsgd { lambda: lambda?, decay: decay? }
        }
    })
}

fn alpha(node: &Node<'_>) -> Option<Alpha> {
    if node.is_string() {
        return node.word(&[("e/(e+1)", Alpha::Epochs)]);
    }
    node.number().map(Alpha::Constant)
}

fn staleness(node: &Node<'_>) -> Option<Staleness> {
    if node.is_string() {
        return node.word(STALENESS);
    }
    let section = node.section()?;
    match (section.optional("polynomial"), section.optional("hinge")) {
        (Some(node), None) => node.number().map(|a| Staleness::Polynomial { a }),
        (None, Some(node)) => hinge(&node),
        (None, None) => node.refuse("has neither `polynomial` nor `hinge`; one of them is wanted"),
        (Some(_), Some(_)) => {
            node.refuse("has both `polynomial` and `hinge`; one of them is wanted")
        }
    }
}

fn hinge(node: &Node<'_>) -> Option<Staleness> {
    let section = node.section()?;
    let Staleness::Hinge { a, b } = Staleness::HINGE else { return None };
    let a = optional(&section, "a", a, Node::number);
    let b = optional(&section, "b", b, |node| node.integer(0, u32::MAX));
    Some(Staleness::Hinge { a: a?, b: b? })
}

fn outer(node: &Node<'_>) -> Option<Outer> {
    if node.is_string() {
        return node.word(OUTER);
    }
    let section = node.section()?;
    let name = section.required("name", "`sgd` or `nesterov`")?.word(OUTER)?;
    let number = |key, default| optional(&section, key, default, Node::number);
    match name {
        Outer::Sgd { rate } => {
            let foreign = own_keys(&section, "sgd", &["rate"]);
            let rate = number("rate", rate)?;
            foreign.map(|()| Outer::Sgd { rate })
        }
        Outer::Nesterov { rate, momentum } => {
            let (rate, momentum) = (number("rate", rate), number("momentum", momentum));
            Some(Outer::Nesterov { rate: rate?, momentum: momentum? })
        }
    }
}

/// Refuses a parameter out of its range, where the file gives it.
fn in_range(node: &Node<'_>, section: &Table<'_>, rule: RuleSpec) -> Option<RuleSpec> {
    let Err(fault) = rule.check() else { return Some(rule) };
    let (outermost, inner) = fault.key.split_once('.').unwrap_or((fault.key, ""));
    let place = section.optional(outermost).map(|place| {
        let below = |key: &str| place.peek().and_then(|table| table.optional(key));
        let of_hinge = || below("hinge").and_then(|hinge| hinge.peek()?.optional(inner));
        below(inner).or_else(|| below("polynomial")).or_else(of_hinge).unwrap_or(place)
    });
    place.as_ref().unwrap_or(node).refuse(fault.reason)
}
