//! The document that describes the API: whole, true, and enough to live by.

use crate::{
    document::{Body, Described},
    folder,
    world::{World, blob, send, trained},
};
use serde_json::{Value, json};
use sojourn_api::{Operation, endpoints};
use sojourn_codec::{Tensor, encode};
use sojourn_protocol::{
    api, assimilation, demand, direct, error::ApiError, machines, quotas, ranges, report::Report,
    tokens, unit::Lease, view,
};
use std::collections::{BTreeMap, BTreeSet};

#[tokio::test]
async fn the_server_gives_the_document_of_the_table() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let described = Described::fetch(world.address()).await;
    let operations = described.operations();
    let documented: BTreeSet<_> = operations
        .iter()
        .map(|one| (one.path.to_owned(), one.method.to_uppercase(), one.id().to_owned()))
        .collect();
    let row = |row: &Operation| (row.pattern.to_owned(), row.method.name().to_owned(), row.id());
    assert_eq!(documented, endpoints::all().map(row).collect());
    let ids: BTreeSet<&str> = operations.iter().map(|one| one.id()).collect();
    assert_eq!(ids.len(), operations.len(), "ids are unique");
    assert_eq!(described.document, *sojourn_server::openapi().unwrap());
    world.server.stop().await;
}

/// Fails where an example isn't of its type.
fn parse(name: &str, example: Value) {
    macro_rules! types {
        ($($module:ident: $($kind:ident),+;)+) => {
            match name {
                $($(stringify!($kind) => {
                    serde_json::from_value::<$module::$kind>(example).map(|_| ())
                })+)+
                "ApiError" => serde_json::from_value::<ApiError>(example).map(|_| ()),
                "Report" => serde_json::from_value::<Report>(example).map(|_| ()),
                "ShareRequest" => {
                    serde_json::from_value::<tokens::PageLinkRequest>(example).map(|_| ())
                }
                _ => panic!("`{name}` is unknown here: add it to the list"),
            }
        };
    }
    let parsed = types! {
        api: EnrolRequest, EnrolAnswer, WorkRequest, WorkAnswer, HeartbeatRequest, HeartbeatAnswer,
            ReleaseRequest, ReleaseAnswer, ReportAnswer, UploadState, MissingRequest, MissingAnswer,
            SubmitRequest, SubmitAnswer, EvaluateRequest, PauseRequest, ExtendRequest, NoteRequest, PlacementRequest, DeleteRequest, DeletedJobs,
            RollbackOptions, RollbackRequest, RolledBack, CollectRequest, CollectAnswer, Health, SearchRequest,
            SearchAnswer, SearchView;
        assimilation: TakeRequest, TakeAnswer, RenewRequest, NewVersion, RejectRequest, LostRequest, OfferAnswer,
            AssimilationsView;
        ranges: LeadRequest, LeadAnswer, RangeResultRequest;
        direct: DirectRequest, DirectAnswer;
        quotas: TokenQuotas;
        tokens: TokenRequest, TokenView, NewToken, RevokedToken, RotatedToken;
        demand: DemandView, SpeedsView;
        machines: CostsView, MachinesRequest, MachinesAnswer, DrainRequest, LeaderRequest, LeaderAnswer;
        view: ProgramView, JobView, JobDetail, TrialView, TrialHistory, HopMatrixView, EventView, HostView, HostDetail, FailureView, EvaluationView,
            TrafficView;
    };
    parsed.unwrap_or_else(|error| panic!("the example of `{name}`: {error}"));
}

#[tokio::test]
async fn every_body_has_a_valid_example() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let described = Described::fetch(world.address()).await;
    let name = |schema: &Value| -> Option<String> {
        Some(schema.get("$ref")?.as_str()?.rsplit('/').next()?.to_owned())
    };
    for operation in described.operations() {
        let id = operation.id();
        let responses = operation.about["responses"].as_object().unwrap().values();
        let bodies = responses.chain(operation.about.get("requestBody"));
        for body in bodies.map(|body| described.resolve(body)) {
            let Some(body) = body["content"].get("application/json") else { continue };
            let schema = &body["schema"];
            if let Some(examples) = body.get("examples").and_then(Value::as_object) {
                for example in examples.values() {
                    described.check(schema, &example["value"], id);
                    parse(&name(schema).unwrap(), example["value"].clone());
                }
            } else if let Some(name) = name(schema) {
                described.check(schema, &body["example"], id);
                parse(&name, body["example"].clone());
            } else if let Some(name) = schema.get("items").and_then(name) {
                described.check(schema, &body["example"], id);
                parse(&name, body["example"][0].clone());
            } else {
                assert_eq!(id, "openapi", "a body without a type");
            }
        }
    }
    world.server.stop().await;
}

/// The checkpoint that a trainer might have made of a lease, and the report of it as the document has it.
fn work_off(lease: &Value) -> (Option<Vec<u8>>, Value) {
    let sums = |rows: &Value| json!({ "rows": rows, "loss": 5.0, "correct": 5 });
    let id = &lease["id"];
    if let Some(evaluation) = lease["unit"].get("evaluate") {
        let shards = evaluation["shards"].as_array().unwrap().iter();
        let shards: Vec<Value> = shards.map(|shard| sums(&shard["rows"])).collect();
        let evaluated =
            json!({ "version": evaluation["version"], "shards": shards, "train_micros": 1000 });
        return (None, json!({ "lease": id, "outcome": { "evaluated": evaluated } }));
    }
    let hop = &lease["unit"]["train"];
    // The bytes of a checkpoint are a trainer's affair, not the API's.
    let typed: Lease = serde_json::from_value(lease.clone()).unwrap();
    let (bytes, _) = trained(&typed, 1);
    let rows = hop["shard"]["rows"].as_u64().unwrap();
    let batch = hop["context"]["config"]["training"]["batch_size"].as_u64().unwrap();
    let mut end = hop["start"].clone();
    end["batch"] = json!(rows.div_ceil(batch));
    end["step"] = json!(end["step"].as_u64().unwrap() + rows.div_ceil(batch));
    let base = hop["base"].pointer("/checkpoint/version").cloned().unwrap_or(json!(0));
    let trained = json!({
        "base": base, "checkpoint": blob(&bytes), "end": end, "sums": sums(&json!(rows)),
        "train_micros": 1000,
    });
    (Some(bytes), json!({ "lease": id, "outcome": { "trained": trained } }))
}

/// Asks for one lease, or for the ends of reports.
pub(crate) fn ask(wanted: u32, reported: &[&Value]) -> Body<'static> {
    let inventory = json!({
        "cached": [], "client": "a stranger",
        "devices": [{ "name": "cpu", "numeric_class": blob(b"class").sha256, "flops": 1e9 }],
    });
    Body::Json(json!({
        "demand": [{ "device": "cpu", "slots": 1, "idle": wanted, "wanted": wanted }],
        "holding": [], "reported": reported,
        "wait": if wanted == 0 { 20_000 } else { 0 }, "inventory": inventory,
    }))
}

/// The shards of a small job, uploaded; training shards first.
async fn shards(described: &Described, admin: &str) -> Vec<Value> {
    let files: Vec<Vec<u8>> = (0..3u8)
        .map(|number| {
            let x = [f32::from(number); 20];
            let tensors = [Tensor::f32("x", [10u64, 2], &x), Tensor::i64("y", [10u64], &[0; 10])];
            encode(&tensors).unwrap()
        })
        .collect();
    let blobs: Vec<Value> = files.iter().map(|bytes| json!(blob(bytes))).collect();
    let question = || Body::Json(json!({ "blobs": blobs }));
    let answer = described.json("missingBlobs", admin, &[], question()).await;
    assert_eq!(answer["missing"].as_array().unwrap().len(), 3);
    for (bytes, blob) in files.iter().zip(&blobs) {
        let (digest, size) = (blob["sha256"].clone(), blob["bytes"].clone());
        let (first, second) = bytes.split_at(100);
        let mut given = vec![("sha256", digest.clone()), ("sojourn-bytes", size)];
        let state = described.json("putBlob", admin, &given, Body::Bytes(first)).await;
        assert_eq!(state, json!({ "offset": 100, "complete": false }));
        let state = described.json("uploadState", admin, &[("sha256", digest)], Body::None).await;
        given.push(("offset", state["offset"].clone()));
        let state = described.json("putBlob", admin, &given, Body::Bytes(second)).await;
        assert_eq!(state["complete"], true);
    }
    let answer = described.json("missingBlobs", admin, &[], question()).await;
    assert_eq!(answer["missing"], json!([]));
    blobs.into_iter().map(|blob| json!({ "blob": blob, "rows": 10 })).collect()
}

/// A job of one trial, one epoch and two shards.
async fn submit(described: &Described, admin: &str) -> Value {
    submit_with_seed(described, admin, json!(7)).await
}

/// The same with this seed.
pub(crate) async fn submit_with_seed(described: &Described, admin: &str, seed: Value) -> Value {
    let mut train = shards(described, admin).await;
    let valid = train.split_off(2);
    let fixed = |value: Value| json!({ "fixed": value });
    let optimizer = json!({
        "name": fixed(json!("sgd")), "lr": fixed(json!(0.1)), "momentum": fixed(json!(0.0)),
        "beta1": fixed(json!(0.9)), "beta2": fixed(json!(0.999)), "eps": fixed(json!(1e-8)),
        "weight_decay": fixed(json!(0.0)),
    });
    let schedule = json!({
        "name": "constant", "warmup": fixed(json!(0)), "every": fixed(json!(1000)),
        "gamma": fixed(json!(0.1)), "floor": fixed(json!(0.0)),
    });
    let spec = json!({
        "name": "small", "seed": seed,
        "data": { "train": "x.csv", "label": "y", "scale": "none", "valid": { "share": 0.5 }, "shards": 2 },
        "models": [{ "arch": "mlp", "hidden": fixed(json!([3])) }],
        "training": {
            "epochs": 1, "batch_size": fixed(json!(4)), "loss": "cross-entropy",
            "optimizer": optimizer, "schedule": schedule, "clip_norm": fixed(json!(0.0)),
        },
        "search": { "method": "grid", "metric": "valid/accuracy", "goal": "max" },
        "placement": { "order": "hop", "reproducible": true, "threads": 1 },
    });
    let data = json!({
        "shape": [2], "features": ["a", "b"], "labels": { "classes": ["no", "yes"] },
        "scaling": "none", "train": train, "valid": valid,
    });
    let body = json!({ "spec": spec, "data": data, "again": false });
    let answer = described.json("submitJob", admin, &[], Body::Json(body)).await;
    assert_eq!((&answer["submitted"], &answer["trials"]), (&json!("new"), &json!(1)));
    answer["job"].clone()
}

#[tokio::test]
async fn a_client_made_from_the_document_alone_completes_a_unit() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let described = Described::fetch(world.address()).await;
    let (admin, enrolment) = (world.admin.as_str(), &*world.enrol_token());
    let job = submit(&described, admin).await;
    let enrolled =
        described.json("enrol", enrolment, &[], Body::Json(json!({ "name": "one" }))).await;
    let host = enrolled["token"].as_str().unwrap();
    let of_job = [("job", job.clone())];

    // Nothing of a paused job is handed out.
    let pause = Body::Json(json!({ "now": false }));
    assert_eq!(described.json("pauseJob", admin, &of_job, pause).await["state"], "paused");
    assert_eq!(described.json("work", host, &[], ask(1, &[])).await["leases"], json!([]));
    let resumed = described.json("resumeJob", admin, &of_job, Body::None).await;
    assert_eq!(resumed["state"], "running");

    // Taken, said to run, and given back.
    let answer = described.json("work", host, &[], ask(1, &[])).await;
    let lease = answer["leases"][0]["id"].clone();
    let usage =
        json!({ "cores": 0.5, "memory": 1000, "read_per_second": 0.0, "written_per_second": 10.5 });
    let held =
        json!([{ "lease": lease, "state": { "running": { "done": 0, "of": 3 } }, "usage": usage }]);
    let beat = Body::Json(json!({ "holding": held, "reported": [] }));
    assert_eq!(described.json("heartbeat", host, &[], beat).await["drop"], json!([]));
    let hosts = described.json("hosts", admin, &[], Body::None).await;
    assert_eq!(hosts[0]["leases"][0]["usage"], usage);
    let hops = described.json("hops", admin, &of_job, Body::None).await;
    let mut cells = hops["trials"][0]["cells"].as_array().unwrap().iter();
    assert!(
        cells.any(|cell| *cell == json!({ "running": { "hosts": [enrolled["host"]] } })),
        "{hops}"
    );
    let back = Body::Json(json!({ "leases": [lease], "reason": "a test" }));
    assert_eq!(described.json("release", host, &[], back).await["released"], json!([lease]));

    let mut kinds = Vec::new();
    for _ in 0..3 {
        let lease = described.json("work", host, &[], ask(1, &[])).await["leases"][0].clone();
        let (unit, id) = (&lease["unit"], ("lease", lease["id"].clone()));
        kinds.push(unit.as_object().unwrap().keys().next().unwrap().clone());
        let named = unit.pointer("/train/shard/blob").or(unit.pointer("/evaluate/checkpoint"));
        let named = named.unwrap();
        let digest = ("sha256", named["sha256"].clone());
        let whole = described.call("blob", host, std::slice::from_ref(&digest), Body::None).await;
        assert_eq!((whole.status, &json!(blob(&whole.body))), (200, named));
        let range = ("range", json!("bytes=8-15"));
        let part = described.call("blob", host, &[digest, range], Body::None).await;
        assert_eq!((part.status, &part.body[..]), (206, &whole.body[8..16]));

        let (bytes, report) = work_off(&lease);
        if let Some(bytes) = bytes {
            assert_eq!(lease["upload_bytes"], bytes.len());
            let (first, second) = bytes.split_at(bytes.len() / 2);
            let made = blob(&bytes);
            let (sha256, size) =
                (("sojourn-sha256", json!(made.sha256)), ("sojourn-bytes", json!(made.bytes)));
            let mut given = vec![id.clone(), sha256, size];
            described.json("putCheckpoint", host, &given, Body::Bytes(first)).await;
            let state = described.json("checkpointState", host, &[id], Body::None).await;
            assert_eq!(state, json!({ "offset": first.len(), "complete": false }));
            given.push(("offset", state["offset"].clone()));
            let state = described.json("putCheckpoint", host, &given, Body::Bytes(second)).await;
            assert_eq!(state["complete"], true);
        }
        let mut state =
            described.json("report", host, &[], Body::Json(report)).await["state"].clone();
        while state == "acknowledged" {
            let answer = described.json("work", host, &[], ask(0, &[&lease["id"]])).await;
            if let Some(report) = answer["reports"].as_array().unwrap().first() {
                state = report["state"].clone();
            }
        }
        assert!(state["ended"]["assimilated"]["version"].is_u64(), "{state}");
    }
    assert_eq!(kinds, ["train", "train", "evaluate"]);

    let detail = described.json("job", admin, &of_job, Body::None).await;
    assert_eq!(detail["summary"]["state"], "finished");
    assert_eq!(described.json("jobs", admin, &[], Body::None).await, json!([detail["summary"]]));
    let trials = described.json("trials", admin, &of_job, Body::None).await;
    assert_eq!((&trials[0]["state"], &trials[0]["version"]), (&json!("finished"), &json!(2)));
    let leading = [("job", job.clone()), ("leading", json!(1))];
    let leading = described.json("trials", admin, &leading, Body::None).await;
    assert_eq!(leading, json!([trials[0]]));
    let of_trial = [("job", job.clone()), ("trial", trials[0]["trial"].clone())];
    let hops = described.json("hops", admin, &of_job, Body::None).await;
    assert_eq!(hops, json!({ "job": job, "shards": 2, "running": 0, "trials": [] }));
    let history = described.json("history", admin, &of_trial, Body::None).await;
    assert_eq!(history["hops"].as_array().unwrap().len(), 2);
    let page = [("job", job.clone()), ("after", json!(0)), ("limit", json!(1))];
    let events = described.json("events", admin, &page, Body::None).await;
    assert_eq!(
        (events.as_array().unwrap().len(), &events[0]["kind"]),
        (1, &json!("job-submitted"))
    );
    let hosts = described.json("hosts", admin, &[], Body::None).await;
    assert_eq!(hosts[0]["used"], 3);
    let of_host = [("host", hosts[0]["host"].clone())];
    let detail = described.json("host", admin, &of_host, Body::None).await;
    assert_eq!((&detail["host"], detail["cache"].is_array()), (&hosts[0], true));
    let failures = described.json("failures", admin, &[], Body::None).await;
    assert_eq!(failures, json!([]));
    let blocked = described.json("blockHost", admin, &of_host, Body::None).await;
    assert_eq!(blocked["blocked"], true);
    let unblocked = described.json("unblockHost", admin, &of_host, Body::None).await;
    assert_eq!(unblocked["blocked"], Value::Null);
    let revoked = described.json("revokeHost", admin, &of_host, Body::None).await;
    assert_eq!(revoked["state"], "revoked");
    let name = Body::Json(json!({ "name": "two" }));
    let gone = described.json("enrol", enrolment, &[], name).await;
    let of_gone = [("host", gone["host"].clone())];
    let forgotten = described.json("forgetHost", admin, &of_gone, Body::None).await;
    assert_eq!(forgotten["name"], "two");
    let page_link = Body::Json(json!({ "label": "for the review", "lifetime": 60_000 }));
    let shared = described.json("shareJob", admin, &of_job, page_link).await;
    let links = described.json("shares", admin, &of_job, Body::None).await;
    assert_eq!(links, json!([shared["token"]]));
    let of_link = [("job", job.clone()), ("token", shared["token"]["token"].clone())];
    let revoked = described.json("revokeShare", admin, &of_link, Body::None).await;
    assert_eq!(revoked["token"]["state"], "revoked");
    let evaluate = Body::Json(json!({ "split": "valid" }));
    let asked = described.json("evaluate", admin, &of_trial, evaluate).await;
    let evaluations = described.json("evaluations", admin, &of_trial, Body::None).await;
    assert_eq!(evaluations, json!([asked]));
    let extend = Body::Json(json!({ "epochs": 2 }));
    let extended = described.json("extendJob", admin, &of_job, extend).await;
    let clone =
        json!({ "add": [{ "from": 0, "values": { "lr": 0.05 } }], "nonce": "n", "why": "by hand" });
    for _ in 0..2 {
        let added = described.json("changeSearch", admin, &of_job, Body::Json(clone.clone())).await;
        assert_eq!(added, json!({ "job": job, "added": [1] }), "a repeated call adds nothing");
    }
    let search = described.json("search", admin, &of_job, Body::None).await;
    let trials: Vec<_> = search["trials"].as_array().unwrap().iter().collect();
    assert_eq!((trials.len(), &trials[1]["state"]), (2, &json!("running")), "{search}");
    assert_eq!((&search["open"], &trials[0]["epochs"]), (&json!(false), &json!(1)), "{search}");
    let place = Body::Json(json!({ "priority": 3 }));
    described.json("placeJob", admin, &of_job, place).await;
    let back = Body::Json(json!({ "trial": { "trial": 0, "epochs": 0 } }));
    let back = described.json("rollbackJob", admin, &of_job, back).await;
    assert_eq!(back, json!([{ "trial": 0, "epochs": 0, "version": 0, "epochs_lost": 1 }]));
    assert_eq!((&extended["state"], &extended["hops_expected"]), (&json!("running"), &json!(4)));
    let ended = described.json("cancelJob", admin, &of_job, Body::None).await;
    assert_eq!(ended["state"], "cancelled");
    let delete = Body::Json(json!({ "jobs": [job] }));
    let deleted = described.json("deleteJobs", admin, &[], delete).await;
    assert_eq!(deleted["jobs"][0]["disk_bytes"], deleted["bytes_freed"]);
    assert_eq!(described.json("jobs", admin, &[], Body::None).await, json!([]));
    let health = described.json("health", "", &[], Body::None).await;
    assert_eq!(health["status"], "ready");
    world.server.stop().await;
}

#[tokio::test]
async fn repeated_posts_are_idempotent_but_for_the_documented_exceptions() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let described = Described::fetch(world.address()).await;
    let about = described.document["info"]["description"].as_str().unwrap();
    assert!(
        ["`enrol`", "`work`", "`takeAssimilation`", "`submitJob`"]
            .iter()
            .all(|id| about.contains(id)),
        "{about}"
    );
    submit(&described, &world.admin).await;
    let enrolment = world.enrol_token();
    let enrol = || Body::Json(json!({ "name": "one" }));
    let first = described.json("enrol", &enrolment, &[], enrol()).await;
    let second = described.json("enrol", &enrolment, &[], enrol()).await;
    assert_ne!(first["host"], second["host"]);
    let host = first["token"].as_str().unwrap();
    let granted = described.json("work", host, &[], ask(1, &[])).await;
    let lost = described.json("work", host, &[], ask(1, &[])).await;
    assert_eq!(lost["leases"][0]["id"], granted["leases"][0]["id"], "it was never held");
    world.server.stop().await;
}

#[tokio::test]
async fn bad_input_gets_an_error_that_the_document_has() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let described = Described::fetch(world.address()).await;
    let host = world.enrol("one").await.token;
    let tokens = BTreeMap::from([
        ("enrolment", world.enrol_token()),
        ("host", host),
        ("admin", world.admin.clone()),
        ("assimilator", world.assimilator_token(folder.path())),
    ]);
    let mut sent = 0;
    for operation in described.operations() {
        let token = operation.schemes().first().map_or("", |scheme| tokens[scheme].as_str());
        let method = operation.method.to_uppercase();
        let parameters = described.parameters(&operation);
        let example =
            |parameter: &Value| match described.resolve(&parameter["schema"])["type"].as_str() {
                Some("integer") => "1".to_owned(),
                _ => blob(b"x").sha256.to_string(),
            };
        // What is right but for the parameter of this name.
        let request = |wrong: &str| {
            let mut path = operation.path.to_owned();
            let mut headers = Vec::new();
            for parameter in &parameters {
                let name = parameter["name"].as_str().unwrap();
                let value = if name == wrong { "-".to_owned() } else { example(parameter) };
                match parameter["in"].as_str().unwrap() {
                    "path" => path = path.replace(&format!("{{{name}}}"), &value),
                    "query" if name == wrong => path = format!("{path}?{name}={value}"),
                    "header" if parameter["required"] == true || name == wrong => {
                        headers.push((name.to_owned(), value));
                    }
                    _ => {}
                }
            }
            (path, headers)
        };
        let mut calls = Vec::new();
        if !token.is_empty() {
            let (path, headers) = request("");
            calls.push((path, headers, "", 401));
        }
        for parameter in &parameters {
            let name = parameter["name"].as_str().unwrap();
            // A range that can't be understood is none (RFC 9110), nor is a word for a redirect, nor an encoding that isn't known; that
            // of a body is looked at after the lease. Any text may be the name of an owner.
            let has_no_wrong =
                ["range", "sojourn-direct", "accept-encoding", "content-encoding", "owner"];
            if !has_no_wrong.contains(&name) {
                let (path, headers) = request(name);
                calls.push((path, headers, token, 400));
            }
        }
        if operation.about["requestBody"]["content"].get("application/json").is_some() {
            let (path, headers) = request("");
            calls.push((path, headers, token, 400));
        }
        for (path, headers, token, status) in calls {
            let headers: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let answer = send(world.address(), &method, &path, token, &headers, b"7").await;
            let text = String::from_utf8_lossy(&answer.body);
            assert_eq!(answer.status, status, "{method} {path} {headers:?}: {text}");
            described.check_answer(&operation, &answer);
            let error: ApiError = serde_json::from_slice(&answer.body).unwrap();
            assert!(!error.message.is_empty());
            sent += 1;
        }
    }
    assert!(sent > 60, "{sent}");
    world.server.stop().await;
}
