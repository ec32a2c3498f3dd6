//! Uploads that hosts don't report, that come twice, or that come too late.

use crate::{
    folder,
    serve::AssimilatorConfig,
    world::{World, blob, report_of, send, trained},
};
use sojourn_protocol::{
    api::{BYTES_HEADER, UploadState},
    digest::BlobRef,
    error::ErrorKind,
    ids::Version,
    quantity::to_usize,
    report::ReportEnd,
    unit::Lease,
};
use sojourn_server::{MAX_CHECKPOINTS_PER_LEASE, ServeConfig, Uploaded};
use std::path::Path;

/// Nothing is assimilated: what was reported stays acknowledged.
fn without_assimilators(data: &Path) -> ServeConfig {
    let mut config = World::config(data, AssimilatorConfig::default());
    config.assimilators = None;
    config
}

/// Two hosts' worth of jobs, and a lease of each for one host.
async fn leases(world: &World, token: &str) -> [Lease; 2] {
    for priority in [1, 2] {
        let submitted = world.submit_with(&format!("order = \"hop\"\npriority = {priority}")).await;
        assert_eq!(submitted.status, 200);
    }
    let mut request = crate::ask(2);
    request.demand[0].slots = 2;
    let leases = world.work(token, &request).await.leases;
    leases.try_into().unwrap()
}

#[tokio::test]
async fn a_checkpoint_that_was_reported_is_not_replaced_and_nothing_more_is_taken_for_its_lease() {
    let data = folder();
    let world = World::with(without_assimilators(data.path())).await;
    world.submit().await;
    let host = world.enrol("one").await.token;
    let lease = world.lease(&host).await;
    let (bytes, report) = trained(&lease, 1);
    let (other, _) = trained(&lease, 2);
    // Before the report the host may think better of it.
    assert_eq!(world.upload(&host, &lease, &other).await.status, 200);
    assert_eq!(world.upload(&host, &lease, &bytes).await.status, 200);
    assert_eq!(world.report(&host, &report).await.status, 200);

    let refused = world.upload(&host, &lease, &other).await.refused(ErrorKind::Conflict);
    assert!(refused.message.contains("is reported: nothing more is taken"), "{refused}");
    world.upload(&host, &lease, &bytes).await.refused(ErrorKind::Conflict);
    let path = format!("/v1/leases/{}/checkpoint/direct", lease.id);
    let request = serde_json::json!({ "checkpoint": blob(&other) });
    world.post(&path, &host, &request).await.refused(ErrorKind::Conflict);
    let path = format!("/v1/leases/{}/checkpoint", lease.id);
    world.get(&path, &host).await.refused(ErrorKind::Conflict);
    assert_eq!(world.report(&host, &report).await.status, 200, "the same answer again");
    world.server.stop().await;

    // What was acknowledged is there, and becomes a version.
    let world = World::start(data.path()).await;
    let end = world.end(&host, lease.id).await;
    assert_eq!(end, ReportEnd::Assimilated { version: Version(1) });
    world.server.stop().await;
}

#[tokio::test]
async fn a_report_by_another_host_keeps_nobody_from_replacing_an_upload() {
    let data = folder();
    let world = World::with(without_assimilators(data.path())).await;
    world.submit().await;
    let (host, other) = (world.enrol("one").await.token, world.enrol("two").await.token);
    let lease = world.lease(&host).await;
    let ((first, report), (second, _)) = (trained(&lease, 1), trained(&lease, 2));
    assert_eq!(world.upload(&host, &lease, &first).await.status, 200);
    world.report(&other, &report).await.refused(ErrorKind::Forbidden);
    assert_eq!(world.upload(&host, &lease, &second).await.status, 200);
    assert_eq!(world.report(&host, &report_of(&lease, &second)).await.status, 200);
    world.server.stop().await;
}

#[tokio::test]
async fn a_host_over_its_limit_of_unreported_uploads_goes_on_once_it_has_reported() {
    let data = folder();
    let limited = || {
        let mut config = without_assimilators(data.path());
        config.upload_limits.host = Uploaded { uploads: 1, bytes: 1 };
        config
    };
    let world = World::with(limited()).await;
    let host = world.enrol("one").await.token;
    let [first, second] = leases(&world, &host).await;
    let ((bytes, report), (more, _)) = (trained(&first, 1), trained(&second, 2));
    assert_eq!(
        world.upload(&host, &first, &bytes).await.status,
        200,
        "the first, whatever its size is"
    );
    let refused = world.upload(&host, &second, &more).await.refused(ErrorKind::StorageFull);
    assert!(refused.message.contains("that no report has named"), "{refused}");
    world.server.stop().await;

    let world = World::with(limited()).await;
    world.upload(&host, &second, &more).await.refused(ErrorKind::StorageFull);
    assert_eq!(world.report(&host, &report).await.status, 200);
    assert_eq!(world.upload(&host, &second, &more).await.status, 200);
    assert_eq!(world.report(&host, &report_of(&second, &more)).await.status, 200);
    world.server.stop().await;
}

#[tokio::test]
async fn a_host_names_few_checkpoints_for_one_lease() {
    let data = folder();
    let world = World::with(without_assimilators(data.path())).await;
    world.submit().await;
    let host = world.enrol("one").await.token;
    let lease = world.lease(&host).await;
    for seed in 0..u64::from(MAX_CHECKPOINTS_PER_LEASE) {
        let (bytes, _) = trained(&lease, seed);
        assert_eq!(world.upload(&host, &lease, &bytes).await.status, 200);
    }
    let (bytes, _) = trained(&lease, 99);
    let refused = world.upload(&host, &lease, &bytes).await.refused(ErrorKind::Conflict);
    assert!(refused.message.contains("4 checkpoints were named"), "{refused}");
    world.server.stop().await;
}

/// Sends a blob as `submit` does, and goes on where the server says that it has bytes of it.
async fn put(world: &World, whole: BlobRef, bytes: &[u8]) -> u16 {
    let path = format!("/v1/blobs/{}", whole.sha256);
    let mut offset = 0;
    loop {
        let path = format!("{path}?offset={offset}");
        let rest = bytes.get(offset..).unwrap_or_default();
        let answer = world.put(&path, &world.admin, whole, &[], rest).await;
        if answer.status != ErrorKind::WrongOffset.status() {
            return answer.status;
        }
        let error =
            serde_json::from_slice::<sojourn_protocol::error::ApiError>(&answer.body).unwrap();
        match error.offset {
            Some(held) if to_usize(held) != offset => offset = to_usize(held),
            // Another request goes on with it.
            _ => return answer.status,
        }
    }
}

#[tokio::test]
async fn a_blob_that_comes_eight_times_at_once_is_stored_and_no_request_fails() {
    let data = folder();
    let world = World::start(data.path()).await;
    for round in 0..12_u8 {
        // Small ones go through the log, large ones are files.
        let bytes = vec![round; if round % 2 == 0 { 5_000 } else { 300_000 }];
        let whole = blob(&bytes);
        let ended = futures::future::join_all((0..8).map(|_| put(&world, whole, &bytes))).await;
        assert!(ended.iter().all(|status| [200, 409].contains(status)), "{ended:?}");
        let path = format!("/v1/blobs/{}", whole.sha256);
        // Whoever asks again gets it done, also where each of them lost its bytes to another.
        assert_eq!(put(&world, whole, &bytes).await, 200);
        assert_eq!(world.get(&path, &world.admin).await.body, bytes);
    }
    world.server.stop().await;
}

#[tokio::test]
async fn a_blob_whose_connection_was_cut_when_all_had_come_is_stored_by_whoever_asks_again() {
    let data = folder();
    let world = World::start(data.path()).await;
    let bytes = vec![7; 5_000];
    let whole = blob(&bytes);
    let (path, half) = (format!("/v1/blobs/{}", whole.sha256), 2_000);
    let first = world.put(&path, &world.admin, whole, &[], &bytes[..half]).await;
    assert_eq!(first.json::<UploadState>(), UploadState { offset: 2_000, complete: false });
    let rest = format!("{path}?offset={half}");
    // All eight complete the same upload, or find it complete.
    let again = (0..8).map(|_| world.put(&rest, &world.admin, whole, &[], &bytes[half..]));
    for answer in futures::future::join_all(again).await {
        assert!([200, 409].contains(&answer.status), "{}", answer.status);
    }
    let (end, size) = (format!("{path}?offset={}", bytes.len()), bytes.len().to_string());
    let headers = [(BYTES_HEADER, size.as_str())];
    let ended = (0..8).map(|_| send(world.address(), "PUT", &end, &world.admin, &headers, b""));
    for answer in futures::future::join_all(ended).await {
        assert!([200, 409].contains(&answer.status), "{}", answer.status);
    }
    assert_eq!(world.get(&path, &world.admin).await.body, bytes);
    world.server.stop().await;
}
