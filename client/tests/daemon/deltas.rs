//! Checkpoints that go to the server as deltas: where that pays, and whole where anything stands against it.

use crate::{
    Daemon, config, hop_of,
    server::{Fault, Server, World},
    trainer::{Trainer, trained},
};
use sojourn_client::{ClientConfig, Rates};
use sojourn_codec::{Tensor, encode};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    error::ErrorKind,
    ids::{LeaseId, Version},
    report::Outcome,
    unit::Base,
};
use std::{fs, num::NonZeroU64, sync::Arc};
use tempfile::TempDir;

const LEASE: LeaseId = LeaseId(1);
const DELTA: &str = "PUT /v1/leases/1/checkpoint/delta";
const WHOLE: &str = "PUT /v1/leases/1/checkpoint";

/// A checkpoint after so many small steps.
fn checkpoint(steps: f32) -> Vec<u8> {
    let mut state = 1u32;
    let values: Vec<f32> = (0..50_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = f32::from(u16::try_from(state >> 16).unwrap()) / 65_536.0 - 0.5;
            noise + steps * 1e-4 * noise * noise
        })
        .collect();
    encode(&[Tensor::f32("weight", [50_000u64], &values)]).unwrap()
}

/// Has a daemon train one hop from a base, on a slow line where `slow`, and gives the world after it.
async fn after_a_hop(slow: bool, prepare: impl FnOnce(&mut World)) -> Arc<Server> {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    let bytes = checkpoint(1.0);
    let length = u32::try_from(bytes.len()).unwrap();
    server.change(|world| {
        world.features = "delta-uploads, upload-progress";
        let shard = world.put(b"the rows of one shard");
        let base = world.put(&checkpoint(0.0));
        let base = Base::Checkpoint { version: Version(1), blob: base };
        world.queue.push_back(hop_of(LEASE.0, base, shard, length));
        prepare(world);
    });
    let made = bytes.clone();
    *trainer.instead.lock().unwrap() = Some(Box::new(move |run| {
        let Outcome::Trained(mut told) = trained(run) else { panic!("no hop") };
        told.checkpoint = BlobRef { sha256: Digest::of(&made), bytes: made.len() as u64 };
        fs::write(&run.output, &made).unwrap();
        Ok(Outcome::Trained(told))
    }));
    let upload = NonZeroU64::new(1_000_000).filter(|_| slow);
    let config = ClientConfig { rates: Rates { download: None, upload }, ..config(&server, &dir) };
    let daemon = Daemon::start(config, &trainer);
    server.until("a report", |world| world.reports.contains_key(&LEASE)).await;
    daemon.stop().await.unwrap();
    assert_eq!(server.world().uploads[&LEASE], bytes);
    let left = crate::files(&dir, "outbox");
    assert!(left.iter().all(|file| !file.ends_with(".delta")), "{left:?}");
    server
}

/// Requests that sent a delta, and that sent the whole.
fn counts(server: &Server) -> [usize; 2] {
    let world = server.world();
    let deltas = world.count(DELTA);
    [deltas, world.count(WHOLE) - deltas]
}

#[tokio::test]
async fn a_slow_line_gets_a_delta_and_a_fast_one_the_whole() {
    let server = after_a_hop(true, |_| {}).await;
    assert_eq!(counts(&server), [1, 0]);
    {
        let world = server.world();
        let sent = world.requests.iter().find(|request| request.path.ends_with("/delta")).unwrap();
        assert!(sent.body.len() * 100 < world.uploads[&LEASE].len() * 95, "{}", sent.body.len());
    }
    assert_eq!(counts(&*after_a_hop(false, |_| {}).await), [0, 1]);
}

#[tokio::test]
async fn a_server_that_knows_no_deltas_gets_none() {
    let server = after_a_hop(true, |world| world.features = "upload-progress").await;
    assert_eq!(counts(&server), [0, 1]);
}

#[tokio::test]
async fn a_delta_goes_on_where_it_was_cut() {
    let server = after_a_hop(true, |world| {
        world.fail(DELTA, Fault::Cut(30_000));
        world.fail(DELTA, Fault::refusal(ErrorKind::Unavailable));
        world.fail(DELTA, Fault::Lost);
    })
    .await;
    let world = server.world();
    let puts = world.requests.iter().filter(|request| request.path.ends_with("/delta"));
    let offsets: Vec<&str> =
        puts.filter(|put| put.method == "PUT").map(|put| put.query.as_str()).collect();
    // The last had all; only its answer was lost.
    assert_eq!(offsets, ["offset=0", "offset=30000", "offset=30000"]);
    assert_eq!(world.count(WHOLE), 3, "nothing was sent whole");
}

#[tokio::test]
async fn a_refused_delta_is_sent_as_a_whole_checkpoint() {
    for kind in [
        ErrorKind::Conflict,
        ErrorKind::Forbidden,
        ErrorKind::NotFound,
        ErrorKind::Invalid,
        ErrorKind::TooLarge,
        ErrorKind::DigestMismatch,
    ] {
        let server = after_a_hop(true, |world| world.fail(DELTA, Fault::refusal(kind))).await;
        assert_eq!(counts(&server), [1, 1], "{kind:?}");
    }
}
