//! The protection that a quorum gives, by whose the hosts are.

use sojourn_protocol::view::{HostState, HostView};

/// Is a host of a stranger's among these?
pub(crate) fn has_strangers(hosts: &[HostView]) -> bool {
    hosts.iter().any(|host| host.stranger && host.state != HostState::Revoked)
}

/// Said where results are verified, or may be, and all hosts are of one owner.
pub(crate) const ONE_OWNER: &str = "all hosts are of one owner: a quorum of `verify` guards against \
    broken machines, not against that owner";

/// Are there several hosts, all of one owner? Revoked ones don't count.
pub(crate) fn are_of_one_owner(hosts: &[HostView]) -> bool {
    let mut owners =
        hosts.iter().filter(|host| host.state != HostState::Revoked).map(|host| &host.owner);
    let first = owners.next();
    let mut others = owners.peekable();
    others.peek().is_some() && others.all(|other| Some(other) == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(owners: &[(&str, bool)]) -> Vec<HostView> {
        let host = |(owner, revoked): &(&str, bool)| {
            let state = if *revoked { "revoked" } else { "live" };
            serde_json::from_value(serde_json::json!({
                "host": 1, "name": "a", "owner": owner, "state": state, "seen_at": null,
                "slots": 1, "devices": [], "cached": 0, "leases": [], "used": 0, "expired": 0,
                "failures": 0, "last_error": null, "train_micros": 0,
            }))
            .unwrap()
        };
        owners.iter().map(host).collect()
    }

    #[test]
    fn a_quorum_among_hosts_of_one_owner_is_told_apart() {
        assert!(!are_of_one_owner(&hosts(&[("", false)])), "one host alone has no quorum");
        assert!(are_of_one_owner(&hosts(&[("", false), ("", false)])));
        assert!(!are_of_one_owner(&hosts(&[("", false), ("lab", false)])));
        assert!(are_of_one_owner(&hosts(&[("", false), ("lab", true), ("", false)])));
    }
}
