//! Blobs that are sent packed to whoever takes that.

use crate::{
    folder,
    s3::{BUCKET, StandIn},
    serve::AssimilatorConfig,
    world::{Answer, World, blob, send},
};
use sojourn_protocol::{
    api::{CollectAnswer, CollectRequest},
    digest::BlobRef,
    direct::{DIRECT_HEADER, ENCODING_HEADER},
    time::Millis,
};
use sojourn_server::ServeConfig;

async fn get(world: &World, blob: BlobRef, headers: &[(&str, &str)]) -> Answer {
    let path = format!("/v1/blobs/{}", blob.sha256);
    send(world.address(), "GET", &path, &world.admin, headers, b"").await
}

fn text(bytes: usize) -> Vec<u8> {
    b"one row and another one; ".iter().copied().cycle().take(bytes).collect()
}

/// Bytes of which nothing can be saved.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    };
    (0..bytes).map(|_| next()).collect()
}

#[tokio::test]
async fn a_blob_comes_packed_to_who_takes_that_and_else_as_it_is() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let raw = text(100_000);
    let shard = world.publish(&raw).await;
    let takes = ("accept-encoding", "zstd");
    let mut before = None;
    for _ in 0..2 {
        let packed = get(&world, shard, &[takes]).await;
        assert_eq!(packed.status, 200);
        assert_eq!(packed.header("content-encoding").as_deref(), Some("zstd"));
        assert_eq!(packed.header("vary").as_deref(), Some("accept-encoding"));
        assert!(packed.body.len() < 1000, "{}", packed.body.len());
        assert_eq!(zstd::decode_all(&packed.body[..]).unwrap(), raw);
        let same = before.replace(packed.body.clone());
        assert!(same.is_none_or(|same| same == packed.body));
    }
    // As older clients ask, and what takes a part.
    let plain = get(&world, shard, &[]).await;
    assert_eq!((plain.header("content-encoding"), &plain.body), (None, &raw));
    let part = get(&world, shard, &[takes, ("range", "bytes=99990-")]).await;
    assert_eq!((part.status, part.header("content-encoding")), (206, None));
    assert_eq!(part.body, raw[99_990..]);
    // Nothing is saved of these, or little.
    for raw in [noise(100_000), text(1000)] {
        let other = world.publish(&raw).await;
        let plain = get(&world, other, &[takes]).await;
        assert_eq!((plain.status, plain.header("content-encoding")), (200, None));
        assert_eq!(blob(&plain.body), other);
    }
    let search = CollectRequest { dry_run: true, grace: Millis(0) };
    let found: CollectAnswer = world.post("/v1/blobs/collect", &world.admin, &search).await.json();
    let packed = before.unwrap().len() as u64;
    // Three blobs, the packed one, and the empty one that says that one isn't worth it.
    let all = found.kept.bytes + found.unknown.bytes;
    assert_eq!(found.kept.objects + found.unknown.objects, 5, "{found:?}");
    assert_eq!(all, 100_000 + 100_000 + 1000 + packed, "{found:?}");
    world.server.stop().await;
}

#[tokio::test]
async fn a_redirect_to_the_store_leads_to_the_packed_bytes_and_says_so() {
    let (folder, store) = (folder(), StandIn::start().await);
    let world = World::with(ServeConfig {
        blobs: Some(format!("s3://{BUCKET}/blobs")),
        store: store.settings(),
        ..World::config(folder.path(), AssimilatorConfig::default())
    })
    .await;
    let raw = text(100_000);
    let shard = world.publish(&raw).await;
    let follows = (DIRECT_HEADER, "follow");
    for (headers, wanted) in
        [(vec![follows, ("accept-encoding", "zstd")], Some("zstd")), (vec![follows], None)]
    {
        let answer = get(&world, shard, &headers).await;
        assert_eq!((answer.status, answer.header(ENCODING_HEADER).as_deref()), (307, wanted));
        let url = answer.header("location").unwrap();
        let got = reqwest::Client::new().get(&url).send().await.unwrap().bytes().await.unwrap();
        let unpacked = wanted.map(|_| zstd::decode_all(&got[..]).unwrap());
        assert_eq!(unpacked.unwrap_or_else(|| got.to_vec()), raw);
    }
    world.server.stop().await;
}
