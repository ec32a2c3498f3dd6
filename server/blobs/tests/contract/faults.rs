//! Stores that fail, refuse and throttle; URLs that are too old or for something else.

use super::{
    content,
    moto::Moto,
    named, on_stand_in,
    s3::{BUCKET, Fault, StandIn, provide_tls, settings},
};
use bytes::Bytes;
use reqwest::Client;
use sojourn_blobs::{BlobError, BlobStore, ConnectError, HashedBytes, ProbeError};
use sojourn_protocol::{digest::BlobRef, ids::LeaseId};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn throttled_and_cut_requests_are_retried() {
    let (stand_in, blobs) = on_stand_in("faults").await;
    let upload = HashedBytes::of(Bytes::from(content(4, 3000)));
    let blob = upload.blob();
    for fault in [Fault::SlowDown, Fault::Throttled, Fault::Cut] {
        stand_in.fail(&[fault, fault]);
        blobs.publish_bytes(upload.clone()).await.unwrap();
        stand_in.fail(&[fault]);
        assert_eq!(blobs.bytes(blob.sha256).await.unwrap(), upload.bytes(), "{fault:?}");
        stand_in.fail(&[fault]);
        blobs.staging().stage_bytes(LeaseId(1), upload.clone()).await.unwrap();
        stand_in.fail(&[fault]);
        assert!(blobs.staging().is_staged(LeaseId(1), blob).await.unwrap());
        stand_in.fail(&[fault]);
        blobs.delete(blob.sha256).await.unwrap();
        assert!(stand_in.script.lock().unwrap().faults.is_empty(), "all were met");
    }
}

#[tokio::test]
async fn an_unreachable_store_is_an_error_in_bounded_time() {
    let stand_in = StandIn::start().await;
    provide_tls();
    let settings = stand_in.settings().with_patience(Duration::from_millis(50));
    let blobs = BlobStore::connect(&format!("s3://{BUCKET}"), &settings).await.unwrap();
    stand_in.fail(&[Fault::SlowDown; 100]);
    let failed = blobs.stored_size(named(b"x").sha256).await.unwrap_err();
    assert!(matches!(failed, BlobError::Store(_)), "{failed:?}");
    let left = stand_in.script.lock().unwrap().faults.len();
    assert!(left > 90, "it isn't asked for ever: {left}");
}

#[tokio::test]
async fn a_store_that_cannot_be_used_is_refused_at_the_start() {
    let stand_in = StandIn::start().await;
    provide_tls();
    let connect = async |url: &str, settings| BlobStore::connect(url, &settings).await.unwrap_err();
    let url = format!("s3://{BUCKET}/x");
    let probe = |error| match error {
        ConnectError::Probe { source, .. } => source,
        other => panic!("{other:?}"),
    };
    let wrong = connect(&url, stand_in.settings().with("AWS_SECRET_ACCESS_KEY", "other")).await;
    let wrong = probe(wrong);
    assert!(matches!(wrong, ProbeError::WrongKey(_)), "{wrong:?}");
    let wrong = connect(&url, stand_in.settings().with("AWS_ACCESS_KEY_ID", "other")).await;
    let wrong = probe(wrong);
    assert!(matches!(wrong, ProbeError::WrongKey(_)), "{wrong:?}");
    let moto = Moto::start().await;
    let wrong = connect("s3://another-bucket/x", moto.settings()).await;
    assert!(matches!(probe(wrong), ProbeError::NoBucket(_)));
    // Nobody listens there.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let away = settings(&format!("http://{nobody}"))
        .with("AWS_ACCESS_KEY_ID", "a")
        .with("AWS_SECRET_ACCESS_KEY", "b")
        .with_patience(Duration::from_millis(50));
    assert!(matches!(probe(connect(&url, away).await), ProbeError::Failed("write", _)));
    for url in ["s3://", "ftp://host/x", "/folder", "s3://key:secret@bucket/x", "file://host/x"] {
        let wrong = connect(url, stand_in.settings()).await;
        assert!(matches!(wrong, ConnectError::Url(_)), "{url}: {wrong:?}");
        assert!(!wrong.to_string().contains("secret"), "{wrong}");
    }
}

#[tokio::test]
async fn a_url_gives_one_blob_and_its_ranges_until_it_expires() {
    let (_stand_in, blobs) = on_stand_in("urls").await;
    let upload = HashedBytes::of(Bytes::from(content(5, 3000)));
    let blob = upload.blob();
    blobs.publish_bytes(upload.clone()).await.unwrap();
    let url = blobs.read_url(blob.sha256, MINUTE).await.unwrap().unwrap();
    let http = Client::new();
    let whole = http.get(url.clone()).send().await.unwrap();
    assert_eq!(whole.bytes().await.unwrap(), upload.bytes());
    let range = http.get(url.clone()).header("range", "bytes=1000-").send().await.unwrap();
    assert_eq!(range.status(), 206);
    assert_eq!(range.bytes().await.unwrap(), upload.bytes()[1000..]);
    // For nothing else, and for no longer.
    let put = http.put(url.clone()).body("other").send().await.unwrap();
    assert_eq!(put.status(), 403);
    let mut other = url.clone();
    other.set_path(&url.path().replace(&blob.sha256.to_string(), "other"));
    assert_eq!(http.get(other).send().await.unwrap().status(), 403);
    let ended = blobs.read_url(blob.sha256, Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(http.get(ended).send().await.unwrap().status(), 403);
    assert_eq!(BlobStore::in_memory().read_url(blob.sha256, MINUTE).await.unwrap(), None);
}

#[tokio::test]
async fn an_upload_url_accepts_only_the_signed_bytes() {
    let (stand_in, blobs) = on_stand_in("urls").await;
    let staging = blobs.staging();
    let upload = HashedBytes::of(Bytes::from(content(6, 3000)));
    let blob = upload.blob();
    let put = staging.upload_url(LeaseId(3), blob, MINUTE).await.unwrap().unwrap();
    assert!(!format!("{put:?}").contains("Signature"), "a URL is a secret");
    let http = Client::new();
    let send = async |bytes: Bytes, headers: &[(String, String)]| {
        let request = http.put(put.url.clone()).body(bytes);
        let headers = headers.iter();
        let request = headers.fold(request, |request, (name, value)| request.header(name, value));
        request.send().await.unwrap().status()
    };
    let wrong = Bytes::from(content(7, 3000));
    assert!(send(wrong.clone(), &put.headers).await.is_client_error());
    assert!(send(wrong, &[]).await.is_client_error(), "the header is signed too");
    assert!(!staging.is_staged(LeaseId(3), blob).await.unwrap(), "nothing of it is to be seen");
    stand_in.seen();
    assert!(send(upload.bytes().clone(), &put.headers).await.is_success());
    assert!(staging.is_staged(LeaseId(3), blob).await.unwrap());
    assert_eq!(staging.staged(LeaseId(3), blob).await.unwrap(), upload);

    // A copy within the store: nothing is sent again.
    stand_in.seen();
    staging.publish(LeaseId(3), &upload).await.unwrap();
    let seen = stand_in.seen();
    assert_eq!(seen.len(), 2, "a copy and a look at it: {seen:?}");
    assert_eq!(blobs.bytes(blob.sha256).await.unwrap(), upload.bytes());

    let large = BlobRef { bytes: 6 << 30, ..blob };
    assert_eq!(staging.upload_url(LeaseId(3), large, MINUTE).await.unwrap(), None);
}

#[tokio::test]
async fn a_store_that_accepts_any_bytes_gets_no_direct_uploads() {
    provide_tls();
    let moto = Moto::start().await;
    let url = format!("s3://{BUCKET}/x");
    let blobs = BlobStore::connect(&url, &moto.settings()).await.unwrap();
    let blob = named(&content(6, 3000));
    assert_eq!(blobs.staging().upload_url(LeaseId(3), blob, MINUTE).await.unwrap(), None);
    assert!(blobs.read_url(blob.sha256, MINUTE).await.unwrap().is_some());
    assert_eq!(blobs.list().await.unwrap(), []);
}

#[tokio::test]
async fn altered_uploads_are_not_read() {
    let (stand_in, blobs) = on_stand_in("altered").await;
    let upload = HashedBytes::of(Bytes::from(content(6, 3000)));
    let blob = upload.blob().sha256;
    blobs.publish_bytes(upload.clone()).await.unwrap();
    let name = blob.to_string();
    let path = format!("altered/sha256/{}/{name}", &name[..2]);
    std::fs::write(stand_in.bucket().join(path), content(8, 3000)).unwrap();
    let altered = blobs.bytes(blob).await.unwrap_err();
    assert!(matches!(altered, BlobError::Altered { .. }), "{altered:?}");
}
