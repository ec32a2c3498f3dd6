//! What a quorum guards against, by whose the hosts are.

use sojourn_protocol::{
    spec::{PlacementSpec, VerifyChoice},
    view::{HostState, HostView},
};

/// Said of a job with the default of `verify`.
const OF_STRANGERS: &str = "strangers' results are done again by another party: all at first, 1 in 20 once trusted, and each evaluation; your own \
    machines are believed";
/// Said of a job whose results can't be verified.
const NOT_REPRODUCIBLE: &str =
    "nothing: without `reproducible` results can't be verified, and strangers' hosts are believed";
/// Said of a job that believes everybody.
const NOTHING: &str = "nothing: strangers' hosts are believed too";

/// Whose results of a job are verified, and what that takes.
pub(crate) fn verified(placement: &PlacementSpec) -> &'static str {
    match placement.verify {
        Some(VerifyChoice::All(_)) => QUORUM_COUNTS,
        Some(VerifyChoice::NONE) => NOTHING,
        _ if !placement.reproducible => NOT_REPRODUCIBLE,
        Some(VerifyChoice::Named(_)) | None => OF_STRANGERS,
    }
}

/// Is a host of a stranger's among these?
pub(crate) fn has_strangers(hosts: &[HostView]) -> bool {
    hosts.iter().any(|host| host.stranger && host.state != HostState::Revoked)
}

/// Said where results are verified, or may be, and all hosts are of one owner.
pub(crate) const ONE_OWNER: &str = "all hosts are of one owner: a quorum of `verify` guards against \
    broken machines, not against that owner";

/// Said of a job whose results are verified, where no server is known.
const QUORUM_COUNTS: &str = "by a quorum of owners, where each machine of the operator \
    counts; of hosts, where all are of one owner: then it guards against broken machines, not against \
    that owner";

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
