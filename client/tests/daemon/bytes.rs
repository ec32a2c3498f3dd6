//! Blobs over a bad line and onto a bad disk: whatever happens to their bytes on the way, what a trainer and
//! the server get is right.

use super::*;
use crate::{
    http::Answer,
    limits::{limited, said},
    server::{Fault, Server, World},
};
use sojourn_protocol::{api::HeldState, error::ErrorKind};
use std::{env, fs, process::Command};

/// Numbers that follow from a seed (Numerical Recipes' generator).
struct Chance(u32);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        usize::try_from((u64::from(self.0) * bound as u64) >> 32).unwrap()
    }
}

/// Something that passes, and harms a body of so many bytes.
fn harm(chance: &mut Chance, bytes: usize) -> Fault {
    let busy = Answer { status: 429, retry_after: Some(0), ..Answer::default() };
    match chance.below(6) {
        0..3 => Fault::Cut(chance.below(bytes)),
        3 => Fault::Answer(busy),
        4 => Fault::refusal(ErrorKind::Internal),
        _ => Fault::Lost,
    }
}

#[tokio::test]
async fn connections_that_are_cut_anywhere_lose_and_alter_nothing() {
    for seed in 0..16 {
        let mut chance = Chance(seed);
        let (dir, server) = (TempDir::new().unwrap(), Server::start().await);
        let trainer = Trainer::free();
        let [shard, base, made] = [(); 3].map(|()| 1 + chance.below(700_000));
        server.change(|world| {
            let blob = |bytes| trainer::checkpoint(u64::from(seed), bytes as u64);
            let (shard_blob, base_blob) = (world.put(&blob(shard)), world.put(&blob(base + 1)));
            let base_blob = Base::Checkpoint { version: Version(1), blob: base_blob };
            // What breaks off packed goes on as it is.
            world.packs = chance.below(2) == 0;
            let made = u32::try_from(made).unwrap();
            world.queue.push_back(hop_of(1, base_blob, shard_blob, made));
            for _ in 0..chance.below(8) {
                world.fail("GET /v1/blobs", harm(&mut chance, shard.max(base)));
            }
            // Twice for each blob would be the way's fault, and three times.
            for _ in 0..chance.below(3) {
                world.fail("GET /v1/blobs", Fault::Alter);
            }
            for _ in 0..chance.below(8) {
                world.fail("PUT /v1/leases", harm(&mut chance, made as usize));
            }
            if chance.below(2) == 0 {
                world.fail("GET /v1/leases", harm(&mut chance, 30));
            }
        });
        let daemon = Daemon::start(config(&server, &dir), &trainer);
        server.until(&format!("the report of seed {seed}"), |w| w.reports.len() == 1).await;
        daemon.stop().await.unwrap();
        // The trainer has compared what it was given with its digests.
        let made = trainer::checkpoint(1, made as u64);
        assert!(server.world().uploads[&LeaseId(1)] == made, "seed {seed}");
        assert_eq!(files(&dir, "cache/parts"), [""; 0], "seed {seed}");
    }
}

#[tokio::test]
async fn a_server_that_is_busy_is_asked_again_when_it_says() {
    let calls = ["POST /v1/work", "GET /v1/blobs", "PUT /v1/leases", "POST /v1/results"];
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| {
        queue_hops(world, 1..=1);
        for call in calls {
            let busy = Answer { status: 429, retry_after: Some(1), ..Answer::default() };
            world.fail(call, Fault::Answer(busy));
        }
    });
    let begun = std::time::Instant::now();
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("a report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    assert_eq!(server.world().faults_left(), 0);
    assert!(begun.elapsed() >= Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!(*trainer.started.borrow(), 1);
}

/// A hop over a long shard, and what the server is told to do about it.
fn long_hop(world: &mut World) {
    let shard = world.put(&trainer::checkpoint(99, 600_000));
    world.queue.push_back(Lease { heartbeat_every: Millis(10), ..hop(1, shard) });
}

#[tokio::test]
async fn a_cache_that_is_deleted_in_mid_download_costs_one_attempt() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| {
        world.again = true;
        long_hop(world);
        world.fail("GET /v1/blobs", Fault::Stall(100_000));
    });
    let timing = Timing {
        answer: Duration::from_secs(1),
        rest: Duration::from_millis(10),
        ..config(&server, &dir).timing
    };
    let daemon = Daemon::start(ClientConfig { timing, ..config(&server, &dir) }, &trainer);
    let told = |world: &World| {
        let mut held = world.heartbeats.iter().flat_map(|beat| &beat.holding);
        held.any(|held| held.state == HeldState::Fetching { fetched: 100_000 })
    };
    server.until("a heartbeat that tells of the fetch", told).await;
    fs::remove_dir_all(dir.path().join("client/cache")).unwrap();
    server.until("a report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    assert_eq!(*trainer.started.borrow(), 1);
    assert!(server.world().released.len() <= 1);
}

#[tokio::test]
async fn a_cache_that_is_deleted_in_mid_training_is_filled_again() {
    let (dir, server) = (TempDir::new().unwrap(), Server::start().await);
    let trainer = Trainer::gated(0);
    server.change(|world| {
        world.most = Some(1);
        queue_hops(world, 1..=1);
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    trainer.until_started(1).await;
    fs::remove_dir_all(dir.path().join("client/cache")).unwrap();
    server.change(|world| queue_hops(world, 2..=2));
    server.until("a second fetch", |world| world.count("GET /v1/blobs") == 2).await;
    trainer.gate.add_permits(2);
    server.until("two reports", |world| world.reports.len() == 2).await;
    daemon.stop().await.unwrap();
    assert!(server.world().released.is_empty());
}

#[tokio::test]
async fn a_cache_that_is_deleted_while_the_disk_is_low_does_not_keep_it_low() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| queue_hops(world, 1..=1));
    let config = limited(&server, &dir, "[limits]\ndisk_reserve = '1000TB'\n");
    let socket = config.data.join("control.sock");
    let daemon = Daemon::start(config, &trainer);
    let is_low = |world: &World| world.works.iter().any(|work| work.demand[0].slots == 0);
    server.until("word that the disk is low", is_low).await;
    fs::remove_dir_all(dir.path().join("client/cache")).unwrap();
    said(&socket, r#"{"set_limits":["disk_reserve=0B"]}"#).await;
    server.until("a report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
}

/// Names the data folder to the process in which files can't grow.
const FULL: &str = "SOJOURN_TEST_FULL_DISK";

/// A limit on the size of files stands for a full disk: a write in the middle of one fails. Runs one test again,
/// in a process that has the limit, with its data in this folder.
fn where_files_stay_small(test: &str, dir: &TempDir) {
    // Files of 200 blocks at most, whether a block has 512 bytes or 1024.
    let script = "ulimit -S -f 200; exec \"$0\" \"$@\"";
    let mut full = Command::new("sh");
    full.args(["-c", script]).arg(env::current_exe().unwrap()).args(["--exact", test]);
    let full = full.env(FULL, dir.path().join("client")).output().unwrap();
    let said = String::from_utf8_lossy(&full.stdout);
    assert!(full.status.success() && said.contains("1 passed"), "{}: {said}", full.status);
}

/// Where that process is this one: what it gives its unit back for.
async fn given_back_where_files_stay_small(server: &Arc<Server>) -> Option<String> {
    let data = env::var_os(FULL)?;
    let dir = TempDir::new().unwrap();
    let config = ClientConfig { data: data.into(), ..config(server, &dir) };
    let daemon = Daemon::start(config, &Trainer::free());
    server.until("a release", |world| !world.released.is_empty()).await;
    daemon.stop().await.unwrap();
    let world = server.world();
    assert!(world.reports.is_empty());
    Some(world.released[0].1.clone())
}

#[tokio::test]
async fn a_disk_that_fills_up_in_mid_download_keeps_what_has_come() {
    let server = Server::start().await;
    server.change(long_hop);
    if let Some(reason) = given_back_where_files_stay_small(&server).await {
        assert!(reason.contains("can't be written: File too large"), "{reason}");
        return;
    }
    let dir = TempDir::new().unwrap();
    let test = "bytes::a_disk_that_fills_up_in_mid_download_keeps_what_has_come";
    where_files_stay_small(test, &dir);
    let kept = fs::metadata(dir.path().join("client/cache/parts").join(&files(&dir, "cache")[0]));
    let kept = kept.unwrap().len();
    assert!((100_000..300_000).contains(&kept), "{kept}");

    // There is room again.
    let daemon = Daemon::start(config(&server, &dir), &Trainer::free());
    server.until("a report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    let world = server.world();
    let mut fetches = world.requests.iter().filter(|request| request.path.starts_with("/v1/blobs"));
    assert_eq!(fetches.next().unwrap().range, Some(kept));
}

#[tokio::test]
async fn a_disk_that_fills_up_in_mid_checkpoint_is_not_the_units_fault() {
    let server = Server::start().await;
    server.change(|world| {
        let shard = world.put(b"rows");
        world.queue.push_back(hop_of(1, Base::Initial { seed: 1 }, shard, 600_000));
    });
    if let Some(reason) = given_back_where_files_stay_small(&server).await {
        assert_eq!(reason.matches("File too large").count(), 1, "{reason}");
        return;
    }
    let dir = TempDir::new().unwrap();
    let test = "bytes::a_disk_that_fills_up_in_mid_checkpoint_is_not_the_units_fault";
    where_files_stay_small(test, &dir);
    assert_eq!(files(&dir, "outbox"), [""; 0]);
    assert_eq!(files(&dir, "scratch"), [""; 0]);
}
