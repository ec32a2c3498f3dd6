//! Uploads in pieces.

use crate::server::{Answer, client, serve};
use sojourn_http::{CallError, TransferError};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    error::ErrorKind,
};
use std::{fs, path::Path};

fn state(offset: u64, complete: bool) -> Answer {
    Answer::new(200, format!("{{\"offset\":{offset},\"complete\":{complete}}}"))
}

fn blob(folder: &Path) -> (std::path::PathBuf, BlobRef) {
    let (path, bytes) = (folder.join("blob"), b"0123456789");
    fs::write(&path, bytes).unwrap();
    (path, BlobRef { sha256: Digest::of(bytes), bytes: 10 })
}

/// Hours of reading data may be behind it.
#[tokio::test]
async fn an_upload_goes_on_after_connections_that_were_cut() {
    let folder = tempfile::tempdir().unwrap();
    let (path, blob) = blob(folder.path());
    let cut = Answer::cut;
    let answers = vec![cut(), state(4, false), cut(), state(4, false), state(10, true)];
    let (address, requests) = serve(answers);
    client(&[&address]).upload(blob, &path, &mut |_| {}).await.unwrap();
    assert_eq!(requests.try_iter().count(), 5);
}

#[tokio::test]
async fn an_upload_resumes_where_the_servers_part_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (path, blob) = blob(folder.path());
    let wrong = Answer::refusal(ErrorKind::WrongOffset);
    let (address, requests) = serve(vec![state(4, false), wrong, state(7, false), state(10, true)]);
    let mut told = Vec::new();
    client(&[&address]).upload(blob, &path, &mut |sent| told.push(sent)).await.unwrap();
    assert_eq!(told, [7, 10]);
    let requests: Vec<_> = requests.try_iter().collect();
    let lines: Vec<_> = requests.iter().map(|request| request.line.as_str()).collect();
    let name = blob.sha256;
    assert_eq!(
        lines,
        [
            format!("GET /v1/uploads/{name} HTTP/1.1"),
            format!("PUT /v1/blobs/{name}?offset=4 HTTP/1.1"),
            format!("GET /v1/uploads/{name} HTTP/1.1"),
            format!("PUT /v1/blobs/{name}?offset=7 HTTP/1.1"),
        ]
    );
    assert_eq!(
        (requests[1].body.as_slice(), requests[3].body.as_slice()),
        (&b"456789"[..], &b"789"[..])
    );
}

/// Two people submit jobs over the same data.
#[tokio::test]
async fn an_upload_goes_on_where_another_of_the_same_blob_has_got_to() {
    let folder = tempfile::tempdir().unwrap();
    let (path, blob) = blob(folder.path());
    let taken = || Answer::refusal(ErrorKind::Conflict);
    let answers =
        vec![state(0, false), taken(), state(4, false), taken(), state(10, true), state(10, true)];
    let (address, requests) = serve(answers);
    client(&[&address]).upload(blob, &path, &mut |_| {}).await.unwrap();
    assert_eq!(requests.try_iter().count(), 6);
}

#[tokio::test]
async fn a_digest_mismatch_is_forgiven_once() {
    let folder = tempfile::tempdir().unwrap();
    let (path, blob) = blob(folder.path());
    let mismatch = || Answer::refusal(ErrorKind::DigestMismatch);
    let none = || Answer::refusal(ErrorKind::NotFound);
    let (address, requests) = serve(vec![none(), mismatch(), none(), mismatch()]);
    let error = client(&[&address]).upload(blob, &path, &mut |_| {}).await.unwrap_err();
    assert_eq!(error.call().and_then(CallError::kind), Some(ErrorKind::DigestMismatch));
    assert_eq!(requests.try_iter().count(), 4);
}

#[tokio::test]
async fn a_file_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (_, blob) = blob(folder.path());
    let missing = folder.path().join("missing");
    let error = client(&["http://127.0.0.1:9"]).upload(blob, &missing, &mut |_| {}).await;
    assert!(matches!(error, Err(TransferError::File { path, .. }) if path == missing));
}
