//! Jobs that fix the number of replicas: shards are trained where they are kept, and find another home when
//! that is lost.

use crate::support::{Bench, HOST, JOB, OTHER, data_of_four, done, inventory, request};
use serde_json::json;
use sojourn_core::{Answer, By, Command, Effect, ReplyTo};
use sojourn_protocol::{
    api::{NewTrial, SearchRequest, WorkRequest},
    digest::Digest,
    ids::{HostId, ShardId},
    inventory::{CPU, Device, Inventory, Links},
    jobfile,
    manifest::DataManifest,
    spec::Choices,
    time::Millis,
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

/// An ask of a host whose cache holds so many shards, which are of 100 bytes each, and a checkpoint.
fn with_room(bench: &Bench, shards: u64) -> WorkRequest {
    let checkpoint = bench.core.state().jobs[&JOB].trials[0].checkpoint_bytes;
    let cache = Some(shards * 100 + checkpoint);
    WorkRequest {
        inventory: Some(Inventory { cache, ..inventory("class") }),
        ..request(1, Vec::new())
    }
}

/// Both hosts work, or this one alone, until nothing is left for them; the shards that each trained.
fn visited(bench: &mut Bench, hosts: &[HostId]) -> Vec<BTreeSet<ShardId>> {
    let mut visited = vec![BTreeSet::new(); hosts.len()];
    let mut waited = false;
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
        if idle && waited {
            return visited;
        }
        if idle {
            // A hop is left to a faster keeper of its shard for as long as it would take here.
            bench.now += 2_000;
        }
        waited = idle;
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
fn the_larger_shards_are_trained_on_the_faster_host_whoever_comes_first() {
    for hosts in [[HOST, OTHER], [OTHER, HOST]] {
        let mut bench = bench("replicas = 1");
        for host in hosts {
            let mut inventory = inventory("class");
            inventory.devices[0].flops = if host == OTHER { 3e9 } else { 1e9 };
            // With another slot, too: a speed alone moves no shards.
            let demand = vec![crate::support::demand(2, 0, 0)];
            let inventory = Some(inventory);
            bench.ask(host, WorkRequest { demand, inventory, ..request(1, Vec::new()) });
        }
        let mut trained = BTreeSet::new();
        for _ in 0..20 {
            let ask = WorkRequest { inventory: None, ..request(1, Vec::new()) };
            for lease in bench.ask(OTHER, ask).leases {
                trained.extend(shard(&lease));
                match shard(&lease) {
                    Some(_) => drop(bench.finish(OTHER, &lease)),
                    None => drop(bench.report(OTHER, done(&lease)).unwrap()),
                }
            }
        }
        assert_eq!(trained, BTreeSet::from([ShardId(0), ShardId(1)]), "20 and 12 rows of 44");
    }
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

/// An ask that is held open, of a host that has these shards.
fn waits(cached: &[usize]) -> WorkRequest {
    let mut request = request(1, Vec::new());
    let shards = data_of_four().train;
    let inventory = request.inventory.as_mut().unwrap();
    inventory.cached = cached.iter().map(|shard| shards[*shard].blob.sha256).collect();
    WorkRequest { wait: Millis(20_000), ..request }
}

/// The shards that a host that waits is told to fetch.
fn told(effects: &[Effect]) -> Vec<Digest> {
    let works = effects.iter().filter_map(|effect| match effect {
        Effect::Reply { to: ReplyTo(7), answer: Ok(answer), .. } => match answer.as_ref() {
            Answer::Work(work) => Some(work),
            _ => None,
        },
        _ => None,
    });
    works.flat_map(|work| &work.fetch).map(|blob| blob.sha256).collect()
}

/// Two hosts keep two shards each; all trials are with the first, and the other one waits.
fn busy_and_waiting() -> Bench {
    let mut bench = Bench::with_job_on(data_of_four(), 1, 2, "[placement]\nreplicas = 1\n");
    let with_shards = |shards: &[usize]| WorkRequest { wait: Millis(0), ..waits(shards) };
    bench.ask(OTHER, WorkRequest { demand: Vec::new(), ..with_shards(&[2, 3]) });
    let lease = bench.ask(HOST, with_shards(&[0, 1])).leases.remove(0);
    assert!(shard(&lease).is_some_and(|shard| shard < ShardId(2)), "{lease:?}");
    let ask = Command::Ask { to: ReplyTo(7), host: OTHER, request: waits(&[2, 3]) };
    assert_eq!(told(&bench.apply(ask)), [], "it has all that it keeps");
    bench
}

#[test]
fn whoever_waits_fetches_the_shards_of_a_host_that_leaves_at_once() {
    let shards = data_of_four().train;
    let lost: BTreeSet<Digest> = shards[..2].iter().map(|shard| shard.blob.sha256).collect();
    let gone =
        |request: WorkRequest| WorkRequest { demand: Vec::new(), wait: Millis(0), ..request };
    for way in ["it falls silent", "it is revoked", "it says that it goes"] {
        let mut bench = busy_and_waiting();
        bench.now += if way == "it falls silent" { 10_500 } else { 0 };
        let effects = bench.apply(match way {
            "it is revoked" => Command::RevokeHost { to: ReplyTo(1), host: HOST },
            "it says that it goes" => {
                Command::Ask { to: ReplyTo(1), host: HOST, request: gone(waits(&[0, 1])) }
            }
            _ => Command::Tick,
        });
        let told: BTreeSet<Digest> = told(&effects).into_iter().collect();
        assert!(!told.is_empty() && told.is_subset(&lost), "{way}: {effects:?}");
    }
}

#[test]
fn a_host_keeps_no_more_than_its_cache_holds() {
    let mut bench = bench("replicas = 1");
    let ask = with_room(&bench, 1);
    let first = bench.ask(HOST, ask.clone()).leases;
    drop(bench.finish(HOST, &first[0]));
    let others = visited(&mut bench, &[OTHER]);
    assert_eq!(others[0].len(), 3, "more than its half, as it has the room");
    let mut own = BTreeSet::from([shard(&first[0]).unwrap()]);
    // A cache's limit holds until the host reports another one.
    for _ in 0..20 {
        for lease in bench.ask(HOST, WorkRequest { inventory: None, ..ask.clone() }).leases {
            own.extend(shard(&lease));
            match shard(&lease) {
                Some(_) => drop(bench.finish(HOST, &lease)),
                None => drop(bench.report(HOST, done(&lease)).unwrap()),
            }
        }
    }
    assert_eq!(own.len(), 1, "{own:?}");
    assert!(own.is_disjoint(&others[0]));
}

#[test]
fn a_shard_without_cache_room_is_reported_until_a_cache_has_room() {
    let mut bench = bench("replicas = 1");
    let ask = with_room(&bench, 1);
    let (first, second) = (bench.ask(HOST, ask.clone()).leases, bench.ask(OTHER, ask).leases);
    drop((bench.finish(HOST, &first[0]), bench.finish(OTHER, &second[0])));
    for host in [HOST, OTHER] {
        let (count, ask) = (4, WorkRequest { inventory: None, ..request(1, Vec::new()) });
        for _ in 0..count {
            for lease in bench.ask(host, ask.clone()).leases {
                drop(bench.finish(host, &lease));
            }
        }
    }
    let waiting = bench.job().waiting.unwrap();
    assert!(waiting.starts_with("no host in contact has the room in its cache to keep shard "));
    let more = with_room(&bench, 3);
    assert_eq!(bench.ask(OTHER, more).leases.len(), 1, "it keeps more of them at once");
    assert_eq!(bench.job().waiting, None);
}

#[test]
fn a_host_that_lends_too_little_for_the_largest_shard_keeps_none_of_the_others() {
    let mut data = data_of_four();
    data.train[0].blob.bytes = 1_000;
    let mut bench = Bench::with_job_on(data, 6, 2, "[placement]\nreplicas = 1\n");
    let ask = with_room(&bench, 3);
    assert_eq!(bench.ask(HOST, ask).leases, [], "a hop takes the room of any shard");
    assert_eq!(visited(&mut bench, &[OTHER])[0].len(), 4);
    assert!(bench.core.state().jobs[&JOB].end.is_some());
}

#[test]
fn a_host_that_comes_to_lack_the_memory_leaves_its_shards_to_another() {
    let mut bench = bench("replicas = 1");
    let ask = |memory| {
        let device = Device { memory, ..Device::new(CPU, Digest::of(b"class"), 1e9) };
        let inventory = Some(Inventory { devices: vec![device], ..inventory("class") });
        WorkRequest { inventory, ..request(1, Vec::new()) }
    };
    let lease = bench.ask(HOST, ask(Some(1 << 40))).leases.remove(0);
    bench.ask(OTHER, WorkRequest { demand: Vec::new(), ..request(1, Vec::new()) });
    drop(bench.finish(HOST, &lease));
    bench.ask(OTHER, request(0, Vec::new()));
    assert_eq!(bench.ask(HOST, ask(Some(1))).leases, [], "less than the checkpoint takes");
    assert_eq!(visited(&mut bench, &[OTHER])[0].len(), 4);
    assert!(bench.core.state().jobs[&JOB].end.is_some());
}

/// Four shards of a megabyte.
fn large() -> DataManifest {
    let mut data = data_of_four();
    for shard in &mut data.train {
        shard.blob.bytes = 1_000_000;
    }
    data
}

/// A host with an idle slot that fetches a shard in 10 s, and holds some of them.
fn slow(held: &[usize]) -> WorkRequest {
    let cached = held.iter().map(|shard| large().train[*shard].blob.sha256).collect();
    let links = Links { download: Some(100_000), upload: None };
    WorkRequest {
        inventory: Some(Inventory { cached, links, ..inventory("class") }),
        ..request(1, Vec::new())
    }
}

#[test]
fn a_trial_is_left_to_the_host_that_has_its_shards_and_not_for_ever() {
    let mut bench = Bench::with_job_on(large(), 1, 1, "");
    // One that has them all and no slot free for work says so before.
    let has = WorkRequest { demand: vec![crate::support::demand(1, 0, 0)], ..slow(&[0, 1, 2, 3]) };
    assert!(bench.ask(OTHER, has).leases.is_empty());
    assert!(
        bench.ask(HOST, slow(&[])).leases.is_empty(),
        "10 s for a shard, and the other is free"
    );
    assert_eq!(bench.ask(HOST, slow(&[2])).leases.len(), 1, "it holds one itself");
}

#[test]
fn what_nobody_holds_is_fetched() {
    let mut bench = Bench::with_job_on(large(), 1, 1, "");
    bench.ask(OTHER, WorkRequest { demand: vec![crate::support::demand(1, 0, 0)], ..slow(&[]) });
    assert_eq!(bench.ask(HOST, slow(&[])).leases.len(), 1);
}

#[test]
fn who_left_a_trial_to_a_holder_takes_it_when_that_one_does_not() {
    let mut bench = Bench::with_job_on(large(), 1, 1, "");
    let has = WorkRequest { demand: vec![crate::support::demand(1, 0, 0)], ..slow(&[0, 1, 2, 3]) };
    bench.ask(OTHER, has);
    assert!(bench.ask(HOST, slow(&[])).leases.is_empty());
    bench.now += 11_000;
    assert_eq!(bench.ask(HOST, slow(&[])).leases.len(), 1);
}

#[test]
fn shards_are_kept_by_who_is_capable_of_a_trial_that_comes_later() {
    let mut bench = Bench::new();
    let text = "name = \"t\"\nseed = 7\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = { choice = [[4], [3000]] }\n[training]\nepochs = 1\nbatch_size = 8\noptimizer = { name = \"sgd\", lr = 0.1 }\n[search]\nmethod = \"ask-tell\"\ntrials = 2\n[placement]\nreplicas = 1\n";
    bench.begin_with(data_of_four(), jobfile::parse(text).unwrap());
    let add = |bench: &mut Bench, hidden: u32| {
        let values = Choices::from([("hidden".to_owned(), json!([hidden]))]);
        let add = vec![NewTrial { values, from: None }];
        let request = Box::new(SearchRequest { add, ..SearchRequest::default() });
        let (to, by) = (ReplyTo(1), By::Server);
        bench.answer(Command::ChangeSearch { to, job: JOB, request, by }).unwrap();
    };
    let ask = |memory| {
        let device = Device { memory, ..Device::new(CPU, Digest::of(b"class"), 1e9) };
        let inventory = Some(Inventory { devices: vec![device], ..inventory("class") });
        WorkRequest { inventory, ..request(1, Vec::new()) }
    };
    // All that is left is done; the shards that each has trained.
    let work = |bench: &mut Bench| {
        let mut visited = [BTreeSet::new(), BTreeSet::new()];
        loop {
            let before = bench.core.state().position;
            for (n, (host, memory)) in [(HOST, Some(1 << 15)), (OTHER, None)].iter().enumerate() {
                for lease in bench.ask(*host, ask(*memory)).leases {
                    visited[n].extend(shard(&lease));
                    bench.finish(*host, &lease);
                }
            }
            if bench.core.state().position == before {
                return visited.map(|shards| shards.len());
            }
        }
    };
    add(&mut bench, 4);
    assert_eq!(work(&mut bench), [2, 2]);
    add(&mut bench, 3000);
    assert_eq!(work(&mut bench), [0, 4]);
}
