//! The policy of the autoscaler's role allows what is called, and nothing else.

use serde_json::Value;
use std::collections::BTreeSet;

/// The rights that EC2 checks beside the called actions: it launches and tags in the caller's name. It hands the machines their
/// role, and makes its own roles with an account's first fleet.
const IMPLIED: [&str; 4] =
    ["ec2:CreateTags", "ec2:RunInstances", "iam:CreateServiceLinkedRole", "iam:PassRole"];

fn allowed() -> BTreeSet<String> {
    let text = include_str!("../../../terraform/autoscaler-policy.json");
    let policy: Value = serde_json::from_str(text).unwrap();
    let mut allowed = BTreeSet::new();
    for statement in policy["Statement"].as_array().unwrap() {
        assert_eq!(statement["Effect"], "Allow");
        let actions = match &statement["Action"] {
            Value::String(action) => vec![action.clone()],
            actions => serde_json::from_value(actions.clone()).unwrap(),
        };
        allowed.extend(actions);
    }
    allowed
}

/// Fails unless exactly these actions of EC2 are allowed.
pub(crate) fn assert_allows(called: &BTreeSet<String>) {
    let called = called.iter().map(|action| format!("ec2:{action}"));
    let expected: BTreeSet<String> = called.chain(IMPLIED.map(str::to_owned)).collect();
    assert_eq!(allowed(), expected, "left: the policy, right: what is called and implied");
}
