//! Shards that travel packed, and that the cache keeps packed.

use super::*;
use crate::{
    http::Answer,
    server::{Fault, Server, World},
};
use sojourn_codec::packed::pack;
use std::fs;

/// A hop over a shard of so many bytes, from a checkpoint that could be packed as well.
fn queue(world: &mut World, lease: u64, bytes: u64) -> BlobRef {
    let shard = world.put(&trainer::checkpoint(77, bytes));
    let base = world.put(&trainer::checkpoint(78, 50_000));
    let base = Base::Checkpoint { version: Version(1), blob: base };
    world.queue.push_back(hop_of(lease, base, shard, 10));
    shard
}

fn volume(dir: &TempDir) -> String {
    fs::read_to_string(dir.path().join("client/volume.json")).unwrap()
}

#[tokio::test]
async fn shards_come_packed_and_the_months_bytes_are_those_that_travelled() {
    for packs in [true, false] {
        let (dir, server, trainer) =
            (TempDir::new().unwrap(), Server::start().await, Trainer::free());
        let mut shard = None;
        server.change(|world| {
            world.packs = packs;
            shard = Some(queue(world, 1, 300_000));
        });
        let daemon = Daemon::start(config(&server, &dir), &trainer);
        server.until("the report", |w| w.reports.len() == 1).await;
        daemon.stop().await.unwrap();
        let travelled =
            if packs { pack(&trainer::checkpoint(77, 300_000)).unwrap().len() } else { 300_000 };
        let wanted = if packs { vec![shard.unwrap().sha256] } else { vec![] };
        assert_eq!(server.world().packed, wanted, "the checkpoint comes as it is");
        // The checkpoint and the result come on top.
        let all = travelled + 50_000 + 10;
        assert!(volume(&dir).contains(&all.to_string()), "{} {all}", volume(&dir));
        assert_eq!(files(&dir, "cache/parts"), [""; 0]);
    }
}

#[tokio::test]
async fn a_packed_answer_that_is_no_shard_is_asked_for_as_it_is() {
    let bomb = pack(&vec![0; 50_000_000]).unwrap();
    let other = pack(&trainer::checkpoint(79, 300_000)).unwrap();
    for body in [bomb, other, b"no frame at all".to_vec()] {
        let (dir, server, trainer) =
            (TempDir::new().unwrap(), Server::start().await, Trainer::free());
        server.change(|world| {
            world.packs = true;
            // The base is fetched first or second: it is given altered too, and fetched again.
            let answer = Answer { status: 200, body, encoding: Some("zstd"), ..Answer::default() };
            world.fail("GET /v1/blobs", Fault::Answer(answer));
            queue(world, 1, 300_000);
        });
        let daemon = Daemon::start(config(&server, &dir), &trainer);
        server.until("the report", |w| w.reports.len() == 1).await;
        daemon.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_cache_that_is_for_room_keeps_shards_packed_and_trains_on_them_again_after_a_restart() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    let mut shard = None;
    server.change(|world| shard = Some(queue(world, 1, 300_000)));
    let room = || ClientConfig { cache_for: CacheFor::Room, ..config(&server, &dir) };
    let daemon = Daemon::start(room(), &trainer);
    server.until("the report", |w| w.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    let name = format!("{}.zst", shard.unwrap().sha256);
    assert_eq!(files(&dir, "cache/data"), std::slice::from_ref(&name));
    let kept = fs::metadata(dir.path().join("client/cache/data").join(&name)).unwrap().len();
    assert!(kept < 30_000, "{kept}");
    let before = server.world().count("GET /v1/blobs");
    server.change(|world| queue(world, 2, 300_000));
    // Whatever the cache is for now.
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("another report", |w| w.reports.len() == 2).await;
    daemon.stop().await.unwrap();
    assert_eq!(server.world().count("GET /v1/blobs"), before, "both blobs are there");
    assert_eq!(files(&dir, "cache/unpacked"), [""; 0]);
}
