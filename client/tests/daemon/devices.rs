//! Several devices, what units took there, and trainers that stand still.

use super::*;
use crate::{
    limits::{limited, said},
    server::idle,
    trainer::{PEAK, trained},
};
use sojourn_client::RunnerDevice;
use sojourn_protocol::{
    api::HeldState,
    digest::Digest,
    inventory::{Device, Workload},
    report::{Failure, FailureKind, Outcome, Sums, Trained},
    trainer::InstructionSet,
};

const GPU: &str = "NVIDIA Test";

fn on(trainer: &Trainer, slot: u32, name: &str, memory: u64) {
    let device = RunnerDevice { name: name.into(), memory: Some(memory) };
    trainer.devices.lock().unwrap().insert(slot, device);
}

fn kind_of(outcome: &Outcome) -> Option<FailureKind> {
    match outcome {
        Outcome::Failed(failure) => Some(failure.kind),
        _ => None,
    }
}

#[tokio::test]
async fn units_run_on_the_device_that_they_are_for() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    on(&trainer, 0, GPU, 300 << 20);
    on(&trainer, 1, GPU, 200 << 20);
    // Each device has a class of its own: the two first trainers that say hello.
    *trainer.classes.lock().unwrap() = ["fast", "fake", "fast"].into();
    server.change(|world| {
        let shard = queue_hops(world, 1..=2);
        world.queue.extend((3..=6).map(|lease| Lease { device: GPU.into(), ..hop(lease, shard) }));
    });
    let three = ClientConfig { slots: Some(3), ..config(&server, &dir) };
    let daemon = Daemon::start(three, &trainer);
    server.until("all reports", |world| world.reports.len() == 6).await;
    daemon.stop().await.unwrap();
    let ran = trainer.ran.lock().unwrap().clone();
    assert_eq!(ran, [(GPU.to_owned(), 4), ("cpu".to_owned(), 2)].into());
    let world = server.world();
    let first = &world.works[0];
    let slots: Vec<_> =
        first.demand.iter().map(|d| (d.device.as_str(), d.slots, d.wanted)).collect();
    assert_eq!(slots, [(GPU, 2, 4), ("cpu", 1, 2)]);
    let devices = &first.inventory.as_ref().unwrap().devices;
    assert_eq!(
        (devices[0].name.as_str(), devices[0].memory),
        (GPU, Some(200 << 20)),
        "of any slot"
    );
    assert_ne!(devices[0].numeric_class, devices[1].numeric_class);
}

#[tokio::test]
async fn a_lease_for_a_device_that_is_not_there_is_given_back() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| {
        queue_hops(world, 1..=1);
        // As a server does that still counts on what the machine had.
        let lease = world.queue.pop_front().unwrap();
        world.held.insert(lease.id, Lease { device: GPU.into(), ..lease });
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("a release", |world| world.released.len() == 1).await;
    assert!(server.world().released[0].1.contains("no device `NVIDIA Test`"));
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn measurements_are_reported_also_after_a_restart() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    on(&trainer, 0, "cpu", 1000 << 20);
    let shard = server.world().put(b"the rows of one shard");
    let workload = Workload::of(hop(1, shard).unit.context());
    server.change(|world| {
        world.end_at_once = true;
        queue_hops(world, 1..=1);
    });
    let told = move |world: &World| {
        let inventory = world.works.last().and_then(|ask| ask.inventory.as_ref());
        let measured = inventory.map(|inventory| inventory.devices[0].measured.clone());
        let measured = measured.unwrap_or_default();
        measured.first().map(|of| (of.workload.clone(), of.peak_memory, of.out_of_memory))
    };
    let went_well = (workload.clone(), Some(PEAK), false);
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("what it took", |world| told(world) == Some(went_well.clone())).await;
    daemon.stop().await.unwrap();

    *trainer.instead.lock().unwrap() = Some(Box::new(|_| {
        let kind = FailureKind::OutOfMemory;
        Ok(Outcome::Failed(Failure { kind, message: "out of memory".into() }))
    }));
    server.change(|world| {
        world.works.clear();
        queue_hops(world, 2..=2);
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    let ran_out = (workload, Some(PEAK), true);
    server.until("that it ran out", |world| told(world) == Some(ran_out.clone())).await;
    daemon.stop().await.unwrap();
    let world = server.world();
    assert_eq!(kind_of(&world.reports[&LeaseId(2)].outcome), Some(FailureKind::OutOfMemory));
    // The first request after the restart said what was measured before.
    assert!(
        world.works[0].inventory.as_ref().unwrap().devices[0].measured[0].peak_memory == Some(PEAK)
    );
}

#[tokio::test]
async fn a_trainer_that_stands_still_is_ended_and_after_three_units_its_slot_taken_out() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| {
        world.end_at_once = true;
        // One of the two gets three of them.
        queue_hops(world, 1..=5);
    });
    let mut two = ClientConfig { slots: Some(2), ..config(&server, &dir) };
    two.timing.wait = Duration::from_millis(50);
    two.timing.standstill = Duration::from_millis(1);
    let daemon = Daemon::start(two, &trainer);
    server
        .until("an ask for one slot", |world| {
            world.works.last().is_some_and(|ask| ask.demand[0].slots == 1)
        })
        .await;
    server.until("three reports", |world| world.reports.len() >= 3).await;
    let reports = server.world().reports.clone();
    for report in reports.values() {
        assert_eq!(kind_of(&report.outcome), Some(FailureKind::Stalled), "{report:?}");
    }
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_unit_whose_trainer_stands_still_goes_on_from_the_part_that_was_kept() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    trainer.keeps.store(true, std::sync::atomic::Ordering::SeqCst);
    server.change(|world| queue_hops(world, 1..=1));
    let mut quick = config(&server, &dir);
    quick.timing.standstill = Duration::from_millis(1);
    let daemon = Daemon::start(quick, &trainer);
    server.until("a report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    let Outcome::Trained(part) = server.world().reports[&LeaseId(1)].outcome.clone() else {
        panic!("no part");
    };
    assert_eq!(part.end.batch, 1);
}

#[tokio::test]
async fn a_hop_ends_early_when_the_server_asks() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| {
        let shard = queue_hops(world, 1..=1);
        let lease = Lease { heartbeat_every: Millis(10), ..hop(1, shard) };
        world.queue = [lease].into();
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    trainer.until_started(1).await;
    server.change(|world| world.stop = vec![LeaseId(1)]);
    server.until("a report", |world| world.reports.len() == 1).await;
    let Outcome::Trained(part) = server.world().reports[&LeaseId(1)].outcome.clone() else {
        panic!("no part");
    };
    assert_eq!(part.end.batch, 1);
    let ran =
        |world: &World| world.heartbeats.iter().flat_map(|beat| beat.holding.clone()).collect();
    let states: Vec<sojourn_protocol::api::Held> = ran(&server.world());
    assert!(states.iter().any(|held| matches!(held.state, HeldState::Running { .. })));
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn shards_are_fetched_ahead_and_dropped_as_the_server_says_but_not_against_the_limit() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    let (small, large) = server.change(|world| {
        let (small, large) = (world.put(&[1; 100]), world.put(&[2; 2000]));
        world.fetch = vec![large, small];
        (small, large)
    });
    let tight = ClientConfig { cache_bytes: 1000, ..config(&server, &dir) };
    let daemon = Daemon::start(tight, &trainer);
    let cached = |world: &World, blob: BlobRef| {
        let mut told = world.works.iter().rev().filter_map(|ask| ask.inventory.as_ref());
        told.next().is_some_and(|inventory| inventory.cached.contains(&blob.sha256))
    };
    // What is cached is told with the next request, and each unit makes one.
    for lease in 1.. {
        server.change(|world| queue_hops(world, lease..=lease));
        let reports = |world: &World| world.reports.contains_key(&LeaseId(lease));
        server.until("a report", reports).await;
        if cached(&server.world(), small) {
            break;
        }
    }
    assert!(!cached(&server.world(), large), "there is no room for it");
    assert_eq!(server.world().count(&format!("GET /v1/blobs/{}", large.sha256)), 0);
    server.change(|world| world.evict = vec![small.sha256, large.sha256]);
    server.until("that it is gone", |world| !cached(world, small)).await;
    assert!(server.world().works.iter().any(|ask| idle(ask) == 1));
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn memory_that_the_owner_lends_is_told_as_it_changes() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    on(&trainer, 0, "cpu", 1 << 33);
    let owned = limited(&server, &dir, "[limits]\nmemory = '4GiB'\n");
    let socket = owned.data.join("control.sock");
    let daemon = Daemon::start(owned, &trainer);
    let told = |world: &World| {
        let mut told = world.works.iter().rev().filter_map(|ask| ask.inventory.as_ref());
        told.next().and_then(|inventory| inventory.devices[0].memory)
    };
    server.until("what is lent", |world| told(world) == Some(1 << 32)).await;
    for (said_so, memory) in [("memory=1GiB", 1 << 30), ("memory=", 1 << 33)] {
        said(&socket, &format!(r#"{{"set_limits":["{said_so}"]}}"#)).await;
        server.until("what is lent now", |world| told(world) == Some(memory)).await;
    }
    daemon.stop().await.unwrap();
}

/// A trainer that can be pinned to two instruction sets, and a server that understands such machines.
async fn of_two_classes(features: &'static str) -> (TempDir, Arc<Server>, Arc<Trainer>) {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    *trainer.instructions.lock().unwrap() = InstructionSet::ALL.to_vec();
    server.change(|world| world.features = features);
    (dir, server, trainer)
}

#[tokio::test]
async fn a_unit_is_run_in_the_instruction_set_that_its_lease_names() {
    let (dir, server, trainer) = of_two_classes("several-classes").await;
    server.change(|world| {
        let shard = queue_hops(world, 1..=1);
        let named = |lease: u64, set: InstructionSet| Lease {
            instructions: Some(set.name().to_owned()),
            ..hop(lease, shard)
        };
        world.queue.push_back(named(2, InstructionSet::Avx512));
        world.queue.push_back(named(3, InstructionSet::Avx2));
        world.queue.push_back(Lease { instructions: Some("amx".into()), ..hop(4, shard) });
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("three reports", |world| world.reports.len() == 3).await;
    server.until("a release", |world| !world.released.is_empty()).await;
    daemon.stop().await.unwrap();
    let ran_in = trainer.ran_in.lock().unwrap().clone();
    let (avx2, avx512) = (InstructionSet::Avx2, InstructionSet::Avx512);
    assert_eq!(ran_in, [avx2, avx512, avx2], "a lease without a word of it means the common one");
    let released = server.world().released[0].clone();
    assert_eq!(released.0, LeaseId(4));
    assert!(released.1.contains("doesn't compute in `amx`"), "{released:?}");
    let inventory = server.world().works[0].inventory.clone().unwrap();
    let device = &inventory.devices[0];
    let offered: Vec<(&str, f64)> =
        device.classes.iter().map(|of| (of.instructions.as_str(), of.flops)).collect();
    assert_eq!(offered, [("avx512", 1.25e9), ("avx2", 1e9)], "the fastest first");
    assert_eq!((device.numeric_class, device.flops), (Digest::of(b"fake"), 1e9));
    assert_eq!(device.classes[1].numeric_class, device.numeric_class);
    assert_ne!(device.classes[0].numeric_class, device.numeric_class);
}

#[tokio::test]
async fn a_server_that_knows_of_one_class_is_told_the_common_one() {
    let (dir, server, trainer) = of_two_classes("").await;
    server.change(|world| queue_hops(world, 1..=1));
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("a report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    let inventory = server.world().works[0].inventory.clone().unwrap();
    assert_eq!(inventory.devices[0].classes, []);
    assert_eq!(inventory.devices[0].numeric_class, Digest::of(b"fake"));
    assert_eq!(*trainer.ran_in.lock().unwrap(), [InstructionSet::COMMON]);
}

#[tokio::test]
async fn a_client_that_starts_again_offers_its_classes_with_its_first_request() {
    let (dir, server, trainer) = of_two_classes("several-classes").await;
    for _ in 0..2 {
        server.change(|world| world.works.clear());
        let daemon = Daemon::start(config(&server, &dir), &trainer);
        server.until("an ask", |world| !world.works.is_empty()).await;
        daemon.stop().await.unwrap();
        let inventory = server.world().works[0].inventory.clone().unwrap();
        assert_eq!(inventory.devices[0].classes.len(), 2);
    }
    assert_eq!(server.world().enrolled, 1, "it is known from the first time");
}

#[tokio::test]
async fn a_time_is_told_as_it_would_have_been_in_the_common_class() {
    let (dir, server, trainer) = of_two_classes("several-classes").await;
    *trainer.instead.lock().unwrap() = Some(Box::new(|run| {
        let Outcome::Trained(done) = trained(run) else { panic!("no hop") };
        let sums = Sums { rows: 10, ..Sums::default() };
        Ok(Outcome::Trained(Trained { sums, train_micros: 1000, ..done }))
    }));
    server.change(|world| {
        queue_hops(world, 1..=1);
        let lease = world.queue.pop_front().unwrap();
        world.queue.push_back(Lease { instructions: Some("avx512".into()), ..lease });
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    let told = |world: &World| {
        let mut told = world.works.iter().rev().filter_map(|ask| ask.inventory.as_ref());
        told.next().and_then(|inventory| inventory.devices[0].measured.first().cloned())
    };
    server.until("what it took", |world| told(world).is_some()).await;
    daemon.stop().await.unwrap();
    // 100 microseconds a row, where it computes 1.25 times as fast as in the common class.
    assert_eq!(told(&server.world()).unwrap().nanos_per_row, Some(125_000));
}

/// A server with these features, and a trainer that supports no unit.
async fn unsupporting(features: &'static str) -> (TempDir, Arc<Server>, Arc<Trainer>) {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| {
        world.features = features;
        world.end_at_once = true;
        queue_hops(world, 1..=1);
    });
    *trainer.instead.lock().unwrap() = Some(Box::new(|_| {
        let kind = FailureKind::Unsupported;
        Ok(Outcome::Failed(Failure { kind, message: "no `mlp` here".into() }))
    }));
    (dir, server, trainer)
}

/// The first device of the last inventory.
fn last_device(world: &World) -> Option<Device> {
    let mut told = world.works.iter().rev().filter_map(|ask| ask.inventory.as_ref());
    told.next().map(|inventory| inventory.devices[0].clone())
}

#[tokio::test]
async fn a_unit_that_the_trainer_refuses_is_reported_so_and_named_until_the_client_starts_again() {
    let (dir, server, trainer) = unsupporting("engines, unsupported-units").await;
    let refused = |world: &World| last_device(world).map_or(0, |device| device.unsupported.len());
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("the refused workload", |world| refused(world) == 1).await;
    daemon.stop().await.unwrap();
    {
        let world = server.world();
        let report = &world.reports[&LeaseId(1)];
        assert_eq!(kind_of(&report.outcome), Some(FailureKind::Unsupported));
        let first = &world.works[0].inventory.as_ref().unwrap().devices[0];
        assert_eq!(first.engines.len(), 1);
        assert!(first.trains("mlp") && !first.trains("cnn"), "{first:?}");
        let work = world.requests.iter().find(|request| request.path == "/v1/work").unwrap();
        assert_eq!(work.headers["sojourn-features"], "engines, host-shares");
    }
    server.change(|world| world.works.clear());
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("an ask", |world| !world.works.is_empty()).await;
    daemon.stop().await.unwrap();
    assert_eq!(refused(&server.world()), 0, "it may have been updated");
    assert_eq!(last_device(&server.world()).unwrap().engines.len(), 1, "with its first request");
}

#[tokio::test]
async fn a_server_of_before_hears_of_a_trainer_that_failed_and_of_no_engine() {
    let (dir, server, trainer) = unsupporting("several-classes").await;
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("a report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    let world = server.world();
    let report = &world.reports[&LeaseId(1)];
    assert_eq!(kind_of(&report.outcome), Some(FailureKind::Trainer));
    let device = last_device(&world).unwrap();
    assert!(device.engines.is_empty() && device.unsupported.is_empty(), "{device:?}");
}
