//! Seeds of 64 bits: as text for users and for those who say that they read it, as numbers for older hosts.

use crate::{
    described::{ask, submit_with_seed},
    document::{Body, Described},
    folder,
    world::World,
};
use serde_json::json;
use sojourn_protocol::{
    api::{DECIMAL_SEEDS, FEATURES_HEADER},
    ids::{Epoch, ShardId, TrialId},
    seeds,
};

#[tokio::test]
async fn a_user_gets_a_seed_as_text_and_a_host_as_it_asks() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let described = Described::fetch(world.address()).await;
    let text = u64::MAX.to_string();
    let job = submit_with_seed(&described, &world.admin, json!(text)).await;
    let of_job = [("job", job.clone())];
    let detail = described.json("job", &world.admin, &of_job, Body::None).await;
    assert_eq!(detail["spec"]["seed"], text);
    let events = described.json("events", &world.admin, &of_job, Body::None).await;
    assert_eq!(events[0]["event"]["spec"]["seed"], text);
    let of_trial = [("job", job), ("trial", json!(0))];
    let history = described.json("history", &world.admin, &of_trial, Body::None).await;
    assert_eq!(history["job_seed"], text);

    let host = world.enrol("one").await.token;
    let older = described.json("work", &host, &[], ask(1, &[])).await;
    let hop = &older["leases"][0]["unit"]["train"];
    let shard = ShardId(u32::try_from(hop["start"]["shard"].as_u64().unwrap()).unwrap());
    let seed = seeds::hop(u64::MAX, TrialId(0), Epoch(0), shard);
    assert_eq!(hop["seed"], seed, "an older host reads numbers");
    let features = [(FEATURES_HEADER, json!(format!("engines, {DECIMAL_SEEDS}")))];
    let newer = described.json("work", &host, &features, ask(1, &[])).await;
    assert_eq!(newer["leases"][0]["unit"]["train"]["seed"], seed.to_string());
    assert_eq!(newer["leases"][0]["id"], older["leases"][0]["id"], "the same lease again");
    world.server.stop().await;
}

/// The digest of a job follows from its seed, however that was sent.
#[tokio::test]
async fn a_seed_as_a_number_and_as_text_is_the_same_seed() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let described = Described::fetch(world.address()).await;
    let seed = u64::MAX - 1;
    submit_with_seed(&described, &world.admin, json!(seed)).await;
    let jobs = described.json("jobs", &world.admin, &[], Body::None).await;
    let of_job = [("job", jobs[0]["job"].clone())];
    let detail = described.json("job", &world.admin, &of_job, Body::None).await;
    let again = json!({ "spec": detail["spec"], "data": detail["data"], "again": false });
    let answer = described.json("submitJob", &world.admin, &[], Body::Json(again)).await;
    assert_eq!((&answer["submitted"], &answer["job"]), (&json!("existing"), &jobs[0]["job"]));
    world.server.stop().await;
}
