//! A whole job whose blobs lie in an object store that checks signatures: its bytes pass the server by, and it
//! comes out as its replay does.

use crate::{
    s3::{BUCKET, StandIn},
    site::Site,
};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Bytes that came to the server and went out of it.
fn through(site: &Site) -> (u64, u64) {
    let runtime = Runtime::new().unwrap();
    let health: serde_json::Value = runtime.block_on(async {
        let http = reqwest::Client::builder().timeout(Duration::from_secs(60)).build().unwrap();
        let answer = http.get(format!("{}/v1/health", site.url)).send().await.unwrap();
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
    });
    let bytes = |name: &str| health[name].as_u64().unwrap();
    (bytes("received_bytes"), bytes("sent_bytes"))
}

#[test]
fn blobs_in_s3_bypass_the_server_and_trials_equal_their_replays() {
    let runtime = Runtime::new().unwrap();
    let store = runtime.block_on(StandIn::start());
    let mut site = Site::start_with_store(&format!("s3://{BUCKET}/job"), store.environment());
    let job = site.submit(21, 3);
    let before = through(&site);
    store.seen();
    let clients = [0, 1].map(|n| site.client(&format!("client-{n}")));
    site.wait(&job, |view| view["hops"].as_u64().unwrap() > 3);
    assert_eq!(before, through(&site), "not a byte of data went through the server");
    site.restart();
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!(view["state"], "finished", "{view}");
    assert_eq!(through(&site), (0, 0), "since it was started again");
    drop(clients);
    let seen = store.seen();
    let count = |start: &str| seen.iter().filter(|line| line.starts_with(start)).count();
    let hops = view["hops"].as_u64().unwrap();
    let uploads = count(&format!("PUT /{BUCKET}/job/uploads/"));
    assert!(uploads as u64 >= hops, "{uploads} uploads of {hops} hops");
    for trial in site.json(&["trials", &job]).as_array().unwrap() {
        let number = trial["trial"].to_string();
        let replay = site.json(&["replay", &job, "--trial", &number]);
        assert_eq!(replay["verdict"], "identical", "trial {number}: {replay}");
        assert_eq!(replay["sha256"], trial["checkpoint"]["sha256"]);
    }
    let collected = site.json(&["gc", "--grace", "0"]);
    assert_eq!(collected["unknown"]["objects"], 0, "the job's own are all known: {collected}");
    assert!(collected["kept"]["objects"].as_u64().unwrap() > 4, "{collected}");
}
