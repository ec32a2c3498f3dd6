//! The memory that the bodies of requests take, of all senders together.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::{
    folder,
    network::{retry_after, traffic},
    world::{World, send},
};
use sojourn_protocol::error::ErrorKind;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

/// A body that was begun and isn't ended.
async fn unended(world: &World, path: &str, token: &str, size: usize) -> TcpStream {
    let mut stream = TcpStream::connect(world.address()).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-length: {size}\r\n\r\n",
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // A server that has no room for it ends the connection.
    let _ = stream.write_all(&vec![b' '; size - 1]).await;
    stream
}

/// Four hosts hold as many bytes of bodies as hosts may. Small bodies of others and large ones of users are taken all the same.
#[tokio::test]
async fn hosts_that_hold_the_memory_for_bodies_keep_nobody_from_small_ones() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let size = 16 << 20;
    let mut open = Vec::new();
    for name in ["one", "two", "three", "four"] {
        let host = world.enrol(name).await;
        for _ in 0..4 {
            open.push(unended(&world, "/v1/work", &host.token, size).await);
        }
    }
    while traffic(&world).await.body_bytes < 12 * (size as u64 - 1) {
        tokio::task::yield_now().await;
    }
    let other = world.enrol("five").await;
    world.work(&other.token, &crate::ask(0)).await;
    let body = vec![b' '; 1 << 20];
    let work = send(world.address(), "POST", "/v1/work", &other.token, &[], &body).await;
    work.refused(ErrorKind::TooManyRequests);
    let jobs = send(world.address(), "POST", "/v1/jobs", &world.admin, &[], &body).await;
    jobs.refused(ErrorKind::Invalid);
    world.server.stop().await;
}

/// The memory for bodies of one token is in use. So its next body is refused, and those of others aren't.
#[tokio::test]
async fn bodies_take_no_more_memory_than_their_token_may() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let host = world.enrol("one").await;
    let mut open = Vec::new();
    let size = 16 << 20;
    for _ in 0..4 {
        open.push(unended(&world, "/v1/jobs", &world.admin, size).await);
    }
    // What was sent may still be on its way.
    while traffic(&world).await.body_bytes < 4 * (size as u64 - 1) {
        tokio::task::yield_now().await;
    }
    let body = vec![b' '; 1 << 20];
    let answer = send(world.address(), "POST", "/v1/jobs", &world.admin, &[], &body).await;
    answer.refused(ErrorKind::TooManyRequests);
    assert!(retry_after(&answer) > 0);
    let other = send(world.address(), "POST", "/v1/work", &host.token, &[], &body).await;
    other.refused(ErrorKind::Invalid);
    assert!(traffic(&world).await.refused.bodies > 0);
    // With the bodies their memory is free again.
    drop(open);
    while traffic(&world).await.body_bytes > 0 {
        tokio::task::yield_now().await;
    }
    let answer = send(world.address(), "POST", "/v1/jobs", &world.admin, &[], &body).await;
    answer.refused(ErrorKind::Invalid);
    world.server.stop().await;
}
