//! The three verdicts of a replay, on a job that was really trained. What a server says of the history
//! is altered on its way, as a server that lies or a disk that rots would.

use crate::{
    site::Site,
    support::{Answer, FakeServer, Request},
};
use serde_json::Value;
use std::{
    io::{Read, Write},
    net::TcpStream,
};

#[test]
fn a_replay_says_identical_different_or_not_judgeable() {
    let site = Site::start();
    let client = site.client("client-1");
    let job = site.submit(11, 2);
    site.wait(&job, |view| view["state"] == "finished");
    drop(client);

    let (code, honest) = replay(&site, &job, |_| {});
    assert_eq!((code, &honest["verdict"]), (Some(0), &"identical".into()), "{honest}");

    let (code, altered) = replay(&site, &job, |history| {
        let last = history["hops"][3].clone();
        history["hops"][4]["checkpoint"]["sha256"] = last["checkpoint"]["sha256"].clone();
    });
    assert_eq!((code, &altered["verdict"]), (Some(1), &"different".into()), "{altered}");
    assert_eq!(altered["first_difference"]["version"], 5, "{altered}");

    let (code, swapped) = replay(&site, &job, |history| {
        history["job_seed"] = 12.into();
    });
    assert_eq!((code, &swapped["verdict"]), (Some(1), &"different".into()), "{swapped}");
    assert_eq!(swapped["first_difference"]["version"], 1, "another seed, other weights");

    let (code, foreign) = replay(&site, &job, |history| {
        history["numeric_class"] = "0".repeat(64).into();
    });
    assert_eq!((code, &foreign["verdict"]), (Some(1), &"not-judgeable".into()), "{foreign}");
    assert!(foreign["reason"].as_str().unwrap().contains("numeric class"), "{foreign}");
}

/// A history of single hops, told as one of several in a row, must replay to the same bytes: what a machine
/// trains under one lease is what it would have trained under several.
#[test]
fn several_hops_at_once_are_the_same_hops_one_by_one() {
    let site = Site::start();
    let client = site.client("client-1");
    let job = site.submit(12, 2);
    site.wait(&job, |view| view["state"] == "finished");
    drop(client);
    let (code, one_by_one) = replay(&site, &job, |_| {});
    assert_eq!((code, &one_by_one["versions"]), (Some(0), &6.into()), "{one_by_one}");
    for at_once in [3, 2] {
        let (code, several) = replay(&site, &job, move |history| {
            let hops = history["hops"].as_array().unwrap().clone();
            let epochs = hops.chunks(3).flat_map(|epoch| epoch.chunks(at_once));
            history["hops"] = epochs.zip(1..).map(together).collect();
        });
        assert_eq!((code, &several["verdict"]), (Some(0), &"identical".into()), "{several}");
        let versions = if at_once == 3 { 2 } else { 4 };
        assert_eq!(several["versions"], versions);
        assert_eq!(several["sha256"], one_by_one["sha256"]);
    }
}

/// Hops in a row as one record, of this version.
fn together((hops, version): (&[Value], u32)) -> Value {
    let last = hops.last().unwrap();
    let mut record = hops[0].clone();
    record["version"] = version.into();
    record["end"] = last["end"].clone();
    record["checkpoint"] = last["checkpoint"].clone();
    record["then"] = hops[1..].iter().map(|hop| hop["start"]["shard"].clone()).collect();
    record
}

/// Replays trial 1 through a server that alters its history; the exit code and the answer.
fn replay(
    site: &Site,
    job: &str,
    alter: impl Fn(&mut Value) + Send + Sync + 'static,
) -> (Option<i32>, Value) {
    let (address, token) = (site.url.trim_start_matches("http://").to_owned(), site.token.clone());
    let liar = FakeServer::start(move |request| {
        let mut answer = forward(&address, &token, request);
        if request.line.ends_with("/history") {
            let mut history: Value = serde_json::from_slice(&answer.body).unwrap();
            alter(&mut history);
            answer.body = history.to_string().into_bytes();
        }
        answer
    });
    let args = ["replay", job, "--trial", "1", "--json", "--server", &liar.url];
    let output = site.run(&args);
    let said = serde_json::from_slice(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said.unwrap_or_else(|_| panic!("no answer but: {error}")))
}

/// Asks the real server the same.
fn forward(address: &str, token: &str, request: &Request) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    let line = &request.line;
    write!(
        stream,
        "{line} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    assert!(head.starts_with("HTTP/1.1 200"), "{line}: {head}");
    assert!(!head.to_lowercase().contains("transfer-encoding"), "a body of known length: {head}");
    Answer { body: answer[end + 4..].to_vec(), ..Answer::json(200, "") }
}
