//! Assimilators that are processes of their own: what they may, what they are given, and what becomes of their offers.

use crate::{
    folder,
    world::{World, blob, send, trained},
};
use serde_json::json;
use sojourn_protocol::{
    api::MissingAnswer,
    assimilation::{
        AssimilationUnit, AssimilationsView, Fault, LostRequest, NewVersion, Offer, OfferAnswer,
        RejectRequest, RenewRequest, TakeAnswer,
    },
    digest::Digest,
    error::ErrorKind,
    ids::Version,
    ranges::{
        LeadAnswer, LeadRequest, RangeDone, RangeResult, RangeResultRequest, RangeTask,
        RemainingRange,
    },
    report::{Report, ReportEnd},
    time::Millis,
    unit::Lease,
};
use sojourn_server::ServeConfig;
use std::path::Path;

/// A server that leaves assimilation to others, their token, and a host's.
async fn start(data: &Path) -> (World, String, String) {
    let config = ServeConfig::new(data.to_owned(), "127.0.0.1:0".parse().unwrap());
    let world = World::with(config).await;
    let (token, host) = (world.assimilator_token(data), world.enrol("one").await.token);
    (world, token, host)
}

impl World {
    async fn take(&self, token: &str, wait: u64) -> Option<AssimilationUnit> {
        let request = json!({ "name": "rack", "wait": wait, "losses": false });
        self.post("/v1/assimilations", token, &request).await.json::<TakeAnswer>().unit
    }

    async fn offer(
        &self,
        token: &str,
        unit: &AssimilationUnit,
        what: &str,
        body: &impl serde::Serialize,
    ) -> Offer {
        let path = format!("/v1/assimilations/{}/{what}", unit.lease);
        self.post(&path, token, body).await.json::<OfferAnswer>().offer
    }

    /// A result of a job's first hop, uploaded and reported.
    async fn result(&self, host: &str) -> (Lease, Vec<u8>, Report) {
        let lease = self.lease(host).await;
        let (bytes, report) = trained(&lease, 1);
        assert_eq!(self.upload(host, &lease, &bytes).await.status, 200);
        assert_eq!(self.report(host, &report).await.status, 200);
        (lease, bytes, report)
    }
}

#[tokio::test]
async fn a_unit_is_claimed_renewed_and_accepted_once_its_blob_is_stored() {
    let folder = folder();
    let (world, token, host) = start(folder.path()).await;
    assert_eq!(world.take(&token, 0).await, None);
    world.submit().await;
    // Asked for before there is one.
    let waiting = world.take(&token, 20_000);
    let (unit, (lease, bytes, _)) = tokio::join!(waiting, world.result(&host));
    let unit = unit.unwrap();
    assert_eq!((unit.lease, unit.version), (lease.id, Version(1)));
    assert_eq!(world.take(&token, 0).await, None);
    let view: AssimilationsView = world.get("/v1/assimilations", &world.admin).await.json();
    assert_eq!((view.waiting, view.taken, view.threads, view.blobs), (0, 1, 0, None));
    let rack = &view.assimilators[0];
    assert_eq!((view.assimilators.len(), rack.name.as_str(), rack.taken), (1, "rack", 1));

    let renew = RenewRequest { claim: unit.claim };
    assert_eq!(world.offer(&token, &unit, "renew", &renew).await, Offer::Taken);
    let made = NewVersion { version: unit.version, checkpoint: blob(&bytes), merged: None };
    assert_eq!(world.offer(&token, &unit, "assimilated", &made).await, Offer::Unpublished);
    world.publish(&bytes).await;
    assert_eq!(world.offer(&token, &unit, "assimilated", &made).await, Offer::Taken);
    assert_eq!(world.offer(&token, &unit, "assimilated", &made).await, Offer::Stale);
    assert_eq!(world.offer(&token, &unit, "renew", &renew).await, Offer::Stale);
    let end = world.end(&host, lease.id).await;
    assert_eq!(end, ReportEnd::Assimilated { version: Version(1) });
    let view: AssimilationsView = world.get("/v1/assimilations", &token).await.json();
    assert_eq!((view.waiting, view.taken, view.ended), (0, 0, 1));
    world.server.stop().await;
}

#[tokio::test]
async fn an_upload_is_refused_and_a_lost_blob_is_looked_for() {
    let folder = folder();
    let (world, token, host) = start(folder.path()).await;
    world.submit().await;
    let (lease, ..) = world.result(&host).await;
    let unit = world.take(&token, 0).await.unwrap();
    let shard = unit.hop.shard.blob;
    let lost = LostRequest { blob: shard.sha256 };
    assert_eq!(world.offer(&token, &unit, "lost", &lost).await, Offer::Stale, "it is there");
    let name = shard.sha256.to_string();
    world.write_out();
    std::fs::remove_file(folder.path().join("blobs/sha256").join(&name[..2]).join(&name)).unwrap();
    assert_eq!(world.offer(&token, &unit, "lost", &lost).await, Offer::Taken);
    let missing = json!({ "blobs": [shard] });
    let missing: MissingAnswer =
        world.post("/v1/blobs/missing", &world.admin, &missing).await.json();
    assert_eq!(missing.missing, [shard.sha256]);

    let refusal = RejectRequest { fault: Fault::Host, reason: "it is wrong".to_owned() };
    assert_eq!(world.offer(&token, &unit, "rejected", &refusal).await, Offer::Taken);
    assert_eq!(world.offer(&token, &unit, "rejected", &refusal).await, Offer::Stale);
    let end = world.end(&host, lease.id).await;
    assert_eq!(end, ReportEnd::Rejected { reason: "it is wrong".to_owned() });
    world.server.stop().await;
}

#[tokio::test]
async fn a_merge_is_shared_by_ranges_with_other_assimilators() {
    let folder = folder();
    let (world, token, host) = start(folder.path()).await;
    world.submit().await;
    world.result(&host).await;
    let unit = world.take(&token, 0).await.unwrap();
    let left = |range| RemainingRange { range, upload: Digest::of(b"its bytes") };
    let lead = |left: Vec<RemainingRange>| LeadRequest {
        unit: unit.clone(),
        least: 100,
        task: RangeTask::Squares,
        left,
        wait: Millis(20_000),
    };
    let path = format!("/v1/assimilations/{}", unit.lease);
    let ask = async |left| {
        let answer = world.post(&format!("{path}/lead"), &token, &lead(left)).await;
        answer.json::<LeadAnswer>()
    };
    // Somebody waits for work, and gets a range as soon as there is one.
    let request = json!({ "name": "other", "wait": 20_000, "losses": false });
    let waiting = world.post("/v1/assimilations", &token, &request);
    let (answer, waiting) = tokio::join!(ask(vec![left(0), left(1)]), waiting);
    assert_eq!((answer.own, answer.done), (Some(0), vec![]));
    let TakeAnswer { unit: none, range, .. } = waiting.json();
    let range = range.unwrap();
    assert_eq!((none, &range.unit, range.least), (None, &unit, 100));
    assert_eq!((range.left, range.task), (left(1), RangeTask::Squares));

    // The leader waits for it.
    let done = RangeDone { range: 1, result: RangeResult::Squares(vec![1, 2]) };
    let made = RangeResultRequest { claim: unit.claim, done: done.clone() };
    let (answer, offer) =
        tokio::join!(ask(vec![left(1)]), world.offer(&token, &unit, "range", &made));
    assert_eq!((answer.own, answer.done, offer), (None, vec![done], Offer::Taken));
    assert_eq!(world.offer(&token, &unit, "range", &made).await, Offer::Stale);

    let other = format!("/v1/assimilations/{}/lead", unit.lease.0 + 1);
    world.post(&other, &token, &lead(vec![])).await.refused(ErrorKind::Invalid);
    for other in [&world.admin, &host] {
        let refused = world.post(&format!("{path}/lead"), other, &lead(vec![])).await;
        refused.refused(ErrorKind::Unauthorized);
        let refused = world.post(&format!("{path}/range"), other, &made).await;
        refused.refused(ErrorKind::Unauthorized);
    }
    world.server.stop().await;
}

#[tokio::test]
async fn the_assimilator_token_allows_only_assimilation() {
    let folder = folder();
    let (world, token, host) = start(folder.path()).await;
    let enrol = world.enrol_token();
    let take = json!({ "name": "rack", "wait": 0, "losses": false });
    for other in [&world.admin, &host, &enrol] {
        world.post("/v1/assimilations", other, &take).await.refused(ErrorKind::Unauthorized);
    }
    world.get("/v1/assimilations", &host).await.refused(ErrorKind::Unauthorized);
    for path in ["/v1/jobs", "/v1/hosts"] {
        world.get(path, &token).await.refused(ErrorKind::Unauthorized);
    }
    let name = json!({ "name": "two" });
    world.post("/v1/enrol", &token, &name).await.refused(ErrorKind::Unauthorized);
    let at = format!("/v1/blobs/{}", blob(b"x").sha256);
    world.get(&at, &token).await.refused(ErrorKind::Unauthorized);
    world.server.stop().await;
}

#[tokio::test]
async fn waiting_assimilators_are_answered_when_the_server_stops() {
    let folder = folder();
    let (world, token, _) = start(folder.path()).await;
    let (address, asked) = (world.address(), token.clone());
    let waiting = tokio::spawn(async move {
        let body = json!({ "name": "rack", "wait": 20_000, "losses": false }).to_string();
        send(address, "POST", "/v1/assimilations", &asked, &[], body.as_bytes()).await
    });
    loop {
        let view: AssimilationsView = world.get("/v1/assimilations", &token).await.json();
        if !view.assimilators.is_empty() {
            break;
        }
    }
    world.server.stop().await;
    waiting.await.unwrap().refused(ErrorKind::Unavailable);
}
