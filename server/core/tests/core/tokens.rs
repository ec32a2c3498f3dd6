//! Owners of hosts, and tokens that the server has issued.

use crate::support::{Bench, HOST};
use sojourn_core::{Core, CoreConfig, Event, JournalPosition, Record};
use sojourn_protocol::{digest::Digest, ids::HostId, names::OwnerName, time::UnixMillis};

/// A core with one host of this owner, as its journal says.
fn with_host_of(owner: OwnerName) -> Core {
    let mut core = Core::new(CoreConfig::default());
    let (name, token_sha256) = ("gpu-1".to_owned(), Digest::of(b"token"));
    let event = Event::HostEnrolled { host: HostId(1), name, token_sha256, owner };
    core.fold(&Record { position: JournalPosition(1), at: UnixMillis(5), event }).unwrap();
    core
}

#[test]
fn every_host_has_an_owner_also_after_a_snapshot() {
    let owner: OwnerName = "lab-3".parse().unwrap();
    let core = with_host_of(owner.clone());
    assert_eq!(core.state().owner_of(HostId(1)), Some(&owner));
    assert_eq!(core.state().owner_of(HostId(2)), None);
    let restored = Core::from_snapshot(&core.snapshot().unwrap(), *core.config()).unwrap();
    assert_eq!(restored.state(), core.state());
}

#[test]
fn hosts_of_the_servers_own_token_belong_to_the_deployment() {
    let bench = Bench::new();
    assert_eq!(bench.core.state().owner_of(HOST), Some(&OwnerName::default()));
    // Neither journal nor snapshot say so, as before there were owners.
    let snapshot = String::from_utf8(bench.core.snapshot().unwrap()).unwrap();
    assert!(!snapshot.contains("owner"), "{snapshot}");
}
