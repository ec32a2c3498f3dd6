//! Jobs that fix the number of replicas: shards are trained where they are kept, and find another home when
//! that is lost.

use crate::support::{Bench, HOST, JOB, OTHER, data_of_four, done, request};
use sojourn_core::{Command, ReplyTo};
use sojourn_protocol::{
    ids::{HostId, ShardId},
    unit::{Lease, Unit},
};
use std::collections::BTreeSet;

fn bench(placement: &str) -> Bench {
    Bench::with_job_on(data_of_four(), 6, 2, &format!("[placement]\n{placement}\n"))
}

fn shard(lease: &Lease) -> Option<ShardId> {
    match &lease.unit {
        Unit::Train(hop) => Some(hop.start.shard),
        Unit::Evaluate(_) => None,
    }
}

/// Both hosts work, or this one alone, until nothing is left for them; the shards that each trained.
fn visited(bench: &mut Bench, hosts: &[HostId]) -> Vec<BTreeSet<ShardId>> {
    let mut visited = vec![BTreeSet::new(); hosts.len()];
    loop {
        let mut idle = true;
        for (host, visited) in hosts.iter().zip(&mut visited) {
            for lease in bench.ask(*host, request(1, Vec::new())).leases {
                idle = false;
                visited.extend(shard(&lease));
                match shard(&lease) {
                    Some(_) => drop(bench.finish(*host, &lease)),
                    None => drop(bench.report(*host, done(&lease)).unwrap()),
                }
            }
        }
        if idle {
            return visited;
        }
    }
}

#[test]
fn one_replica_is_trained_on_one_host() {
    let mut bench = bench("replicas = 1");
    let visited = visited(&mut bench, &[HOST, OTHER]);
    assert_eq!((visited[0].len(), visited[1].len()), (2, 2), "{visited:?}");
    assert!(visited[0].is_disjoint(&visited[1]), "{visited:?}");
    let jobs = &bench.core.state().jobs;
    assert!(jobs[&JOB].end.is_some(), "all of it is done");
}

#[test]
fn a_host_that_falls_silent_loses_its_shards_to_another() {
    let mut bench = bench("replicas = 1");
    let only = visited(&mut bench, &[HOST]);
    assert_eq!(only[0].len(), 2, "the others wait for the other host");
    bench.now += 11_000;
    bench.apply(Command::Tick);
    let rest = visited(&mut bench, &[HOST]);
    assert_eq!(rest[0].len(), 4, "{rest:?}");
    assert!(bench.core.state().jobs[&JOB].end.is_some());
}

#[test]
fn a_host_that_is_revoked_loses_its_shards_at_once() {
    let mut bench = bench("replicas = 1");
    visited(&mut bench, &[HOST]);
    bench.apply(Command::RevokeHost { to: ReplyTo(1), host: OTHER });
    assert_eq!(visited(&mut bench, &[HOST])[0].len(), 4);
}

#[test]
fn two_replicas_of_two_hosts_are_all_of_them() {
    let mut bench = bench("replicas = 2");
    assert_eq!(visited(&mut bench, &[OTHER])[0].len(), 4);
    assert!(bench.core.state().jobs[&JOB].end.is_some());
}
