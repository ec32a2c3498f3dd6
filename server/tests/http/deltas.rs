//! Checkpoints that come as deltas: as good as whole ones, and refused where they can't be used.

use crate::{
    folder,
    world::{Answer, World, blob, hop, trained},
};
use sojourn_codec::delta::{self, Named};
use sojourn_protocol::{
    api::{BASE_HEADER, RESULT_BYTES_HEADER, RESULT_SHA256_HEADER, UploadState},
    digest::{BlobRef, Digest},
    error::ErrorKind,
    ids::Version,
    report::{Report, ReportEnd},
    unit::Lease,
};
use std::path::Path;

/// A world whose one host has made version 1 of the trial and holds the lease of the hop after it.
struct Second {
    world: World,
    token: String,
    lease: Lease,
    base: Vec<u8>,
    result: Vec<u8>,
    report: Report,
}

impl Second {
    async fn start(folder: &Path) -> Self {
        let world = World::start(folder).await;
        let token = world.enrol("one").await.token;
        world.submit().await;
        let first = world.lease(&token).await;
        let (base, report) = trained(&first, 1);
        assert_eq!(world.upload(&token, &first, &base).await.status, 200);
        assert_eq!(world.report(&token, &report).await.status, 200);
        world.end(&token, first.id).await;
        let lease = world.lease(&token).await;
        assert_eq!(hop(&lease).base.blob(), Some(blob(&base)));
        let (result, report) = trained(&lease, 1);
        Self { world, token, lease, base, result, report }
    }

    fn delta(&self) -> Vec<u8> {
        let named = |bytes| Named { digest: blob(bytes).sha256.0, bytes };
        let delta = delta::encode(named(&self.base), named(&self.result)).unwrap();
        assert!(delta.len() < self.result.len());
        delta
    }

    fn path(&self) -> String {
        format!("/v1/leases/{}/checkpoint/delta", self.lease.id)
    }

    /// Sends a part of what is declared as `whole`.
    async fn send(&self, whole: BlobRef, offset: usize, part: &[u8]) -> Answer {
        self.send_for(whole, blob(&self.base).sha256, blob(&self.result), offset, part).await
    }

    async fn send_for(
        &self,
        whole: BlobRef,
        base: Digest,
        result: BlobRef,
        offset: usize,
        part: &[u8],
    ) -> Answer {
        let (base, sha256) = (base.to_string(), result.sha256.to_string());
        let bytes = result.bytes.to_string();
        let headers = [
            (BASE_HEADER, &*base),
            (RESULT_SHA256_HEADER, &*sha256),
            (RESULT_BYTES_HEADER, &*bytes),
        ];
        let path = format!("{}?offset={offset}", self.path());
        self.world.put(&path, &self.token, whole, &headers, part).await
    }

    async fn state(&self) -> UploadState {
        self.world.get(&self.path(), &self.token).await.json()
    }

    /// The checkpoint is there and ends up as the trial's next version.
    async fn end(self) {
        let whole = format!("/v1/leases/{}/checkpoint", self.lease.id);
        let state: UploadState = self.world.get(&whole, &self.token).await.json();
        assert_eq!(state, UploadState { offset: self.result.len() as u64, complete: true });
        assert!(self.state().await.complete);
        assert_eq!(self.world.report(&self.token, &self.report).await.status, 200);
        let end = self.world.end(&self.token, self.lease.id).await;
        assert_eq!(end, ReportEnd::Assimilated { version: Version(2) });
        let path = format!("/v1/blobs/{}", blob(&self.result).sha256);
        assert_eq!(self.world.get(&path, &self.world.admin).await.body, self.result);
        self.world.server.stop().await;
    }
}

#[tokio::test]
async fn a_delta_in_several_requests_becomes_the_checkpoint() {
    let folder = folder();
    let mut second = Second::start(folder.path()).await;
    let delta = second.delta();
    let (some, rest) = delta.split_at(delta.len() / 2);
    assert_eq!(second.state().await, UploadState { offset: 0, complete: false });
    let held = UploadState { offset: some.len() as u64, complete: false };
    assert_eq!(second.send(blob(&delta), 0, some).await.json::<UploadState>(), held);
    second.world.server.stop().await;
    second.world = World::start(folder.path()).await;
    assert_eq!(second.state().await, held);
    second.send(blob(&delta), 0, &delta).await.refused(ErrorKind::WrongOffset);
    let state: UploadState = second.send(blob(&delta), some.len(), rest).await.json();
    assert_eq!(state, UploadState { offset: delta.len() as u64, complete: true });
    second.world.write_out();
    let spooled = std::fs::read_dir(folder.path().join("uploads")).unwrap();
    assert_eq!(spooled.count(), 1, "nothing is left of the delta");
    second.end().await;
}

#[tokio::test]
async fn unusable_deltas_are_refused_and_the_whole_checkpoint_is_accepted() {
    let folder = folder();
    let second = Second::start(folder.path()).await;
    let good = second.delta();
    let mut bad: Vec<Vec<u8>> = vec![b"SJDELTA".to_vec(), vec![7; 100], good[..80].to_vec()];
    bad.extend((0..good.len()).step_by(7).map(|at| {
        let mut delta = good.clone();
        delta[at] ^= 1 << (at % 8);
        delta
    }));
    // Sizes that are none, at the end and in the head.
    for at in (good.len() - 32..good.len()).chain(72..80) {
        let mut delta = good.clone();
        delta[at] = 0xff;
        bad.push(delta);
    }
    // Bits that pad the last word mean nothing.
    let named = Named { digest: blob(&second.base).sha256.0, bytes: &second.base };
    let all = bad.len();
    bad.retain(|delta| delta::decode(named, delta, second.result.len() as u64).is_err());
    assert!(bad.len() * 10 > all * 9, "{} of {all}", bad.len());
    for delta in bad {
        let error = second.send(blob(&delta), 0, &delta).await.refused(ErrorKind::DigestMismatch);
        assert!(error.message.contains("send the checkpoint whole"), "{error}");
        assert_eq!(second.state().await, UploadState { offset: 0, complete: false });
    }
    let (base, result) = (blob(&second.base).sha256, blob(&second.result));
    let larger = BlobRef { bytes: result.bytes, ..blob(&good) };
    second.send(larger, 0, &good).await.refused(ErrorKind::TooLarge);
    let other = BlobRef { bytes: result.bytes + 1, ..result };
    second.send_for(blob(&good), base, other, 0, &good).await.refused(ErrorKind::TooLarge);
    let another = BlobRef { sha256: base, ..result };
    let answer = second.send_for(blob(&good), base, another, 0, &good).await;
    answer.refused(ErrorKind::DigestMismatch);
    let unnamed = Digest::of(b"nothing that a lease names");
    let answer = second.send_for(blob(&good), unnamed, result, 0, &good).await;
    answer.refused(ErrorKind::Forbidden);
    let path = format!("{}?offset=0", second.path());
    second
        .world
        .put(&path, &second.token, blob(&good), &[], &good)
        .await
        .refused(ErrorKind::Invalid);
    let answer = second.world.upload(&second.token, &second.lease, &second.result).await;
    assert_eq!(answer.status, 200);
    second.end().await;
}

#[tokio::test]
async fn a_missing_base_is_refused_before_the_delta_is_received() {
    let folder = folder();
    let second = Second::start(folder.path()).await;
    let delta = second.delta();
    let name = blob(&second.base).sha256.to_string();
    second.world.write_out();
    std::fs::remove_file(folder.path().join("blobs/sha256").join(&name[..2]).join(&name)).unwrap();
    let error = second.send(blob(&delta), 0, &delta).await.refused(ErrorKind::Conflict);
    assert!(error.message.contains("is gone"), "{error}");
    second.world.server.stop().await;
}
