//! Owners of jobs over HTTP: each address that changes a job, lists by owner, quotas, and the buttons of the pages.

use crate::{
    folder,
    world::{Answer, World, send},
};
use serde_json::{Value, json};
use sojourn_protocol::{
    api::SubmitAnswer,
    error::ErrorKind,
    tokens::{NewToken, RevokedToken, TokenView},
    view::JobView,
};

const OWN: (&str, &str) = ("sec-fetch-site", "same-origin");
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

async fn user(world: &World, name: &str, rights: &str, quotas: Value) -> NewToken {
    let grant = json!({ "access": { "rights": rights } });
    let request = json!({ "label": name, "grant": grant, "quotas": quotas });
    world.post("/v1/tokens", &world.admin, &request).await.json()
}

fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

/// Every address of the document that changes something of one job: its method and its path, of this job.
async fn changes(world: &World, job: &str) -> Vec<(String, String)> {
    let document: Value = world.get("/v1/openapi.json", "").await.json();
    let mut changes = Vec::new();
    for (pattern, methods) in document["paths"].as_object().unwrap() {
        let path = pattern.replace("{job}", job).replace("{trial}", "0").replace("{token}", "77");
        for method in methods.as_object().unwrap().keys().filter(|method| *method != "get") {
            if pattern.contains("{job}") {
                changes.push((method.to_uppercase(), path.clone()));
            }
        }
    }
    changes
}

/// A body that the address understands.
fn body(path: &str) -> Value {
    match path.rsplit('/').next().unwrap() {
        "evaluate" => json!({ "split": "valid" }),
        "extend" => json!({ "epochs": 2 }),
        "note" => json!({ "note": "n" }),
        "pause" => json!({ "now": false }),
        "rollback" => json!({ "trial": { "trial": 0, "epochs": 0 } }),
        _ => json!({}),
    }
}

#[tokio::test]
async fn every_address_that_changes_a_job_refuses_the_tokens_of_others() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let alice = user(&world, "alice", "submit", json!({})).await.secret;
    let bob = user(&world, "bob", "submit", json!({})).await.secret;
    let chief = user(&world, "chief", "administer", json!({})).await.secret;
    let job = world.submit_as(&alice).await.json::<SubmitAnswer>().job.to_string();
    let changes = changes(&world, &job).await;
    assert!(changes.len() >= 11, "{changes:?}");
    for (method, path) in &changes {
        let body = serde_json::to_vec(&body(path)).unwrap();
        let call = async |token: &str| send(world.address(), method, path, token, &[], &body).await;
        let refused = call(&bob).await.refused(ErrorKind::Forbidden);
        assert_eq!(refused.message, "job 1 belongs to `alice`; this token is `bob`", "{path}");
        for token in [&alice, &chief, &world.admin] {
            let answer = call(token).await;
            assert_ne!(answer.status, 403, "{method} {path}: {}", text(&answer));
        }
    }
    // So do the address whose body names jobs, and the list of links; but everybody may look.
    let delete = json!({ "jobs": [1], "preview": true });
    world.post("/v1/jobs/delete", &bob, &delete).await.refused(ErrorKind::Forbidden);
    world.get("/v1/jobs/1/shares", &bob).await.refused(ErrorKind::Forbidden);
    assert_eq!(world.get("/v1/jobs/1/shares", &alice).await.status, 200);
    for path in ["/v1/jobs/1", "/v1/jobs/1/trials", "/v1/jobs/1/events", "/v1/jobs/1/search"] {
        assert_eq!(world.get(path, &bob).await.status, 200, "{path}");
    }
    world.server.stop().await;
}

#[tokio::test]
async fn jobs_are_listed_by_owner() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let alice = user(&world, "alice", "submit", json!({})).await.secret;
    let bob = user(&world, "bob", "submit", json!({})).await.secret;
    for token in [&alice, &bob, &world.admin] {
        assert_eq!(world.submit_as(token).await.status, 200);
    }
    let listed = async |query: &str, token: &str| -> Vec<u64> {
        let path = format!("/v1/jobs{query}");
        let jobs: Vec<JobView> = world.get(&path, token).await.json();
        jobs.iter().map(|job| job.job.0).collect()
    };
    assert_eq!(listed("", &bob).await, [1, 2, 3]);
    assert_eq!(listed("?mine=true", &bob).await, [2]);
    assert_eq!(listed("?mine=true", &world.admin).await, [3]);
    for (owner, jobs) in
        [("alice", vec![1]), ("1", vec![1]), ("bob", vec![2]), ("admin", vec![3]), ("eve", vec![])]
    {
        assert_eq!(listed(&format!("?owner={owner}"), &bob).await, jobs, "{owner}");
    }
    world.get("/v1/jobs?owners=bob", &bob).await.refused(ErrorKind::Invalid);
    world.server.stop().await;
}

#[tokio::test]
async fn quotas_are_set_shown_and_kept_to() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let alice = user(&world, "alice", "submit", json!({ "jobs": 1, "links": 1 })).await;
    assert_eq!(alice.token.quotas.unwrap().limits.jobs, 1);
    let token = alice.secret;
    assert_eq!(world.submit_as(&token).await.status, 200);
    let refused = world.submit_as(&token).await.refused(ErrorKind::Conflict);
    assert!(refused.message.contains("its quota `jobs` is 1"), "{refused}");
    assert!(refused.message.contains("`sojourn token set 1 --jobs N`"), "{refused}");
    let set = json!({ "jobs": 2 });
    world.post("/v1/tokens/1/quotas", &token, &set).await.refused(ErrorKind::Forbidden);
    let raised: TokenView = world.post("/v1/tokens/1/quotas", &world.admin, &set).await.json();
    let limits = raised.quotas.unwrap().limits;
    assert_eq!((limits.jobs, limits.links), (2, 1));
    assert_eq!(world.submit_as(&token).await.status, 200);
    let link = world.post("/v1/jobs/1/shares", &token, &json!({})).await.json::<NewToken>();
    world.post("/v1/jobs/1/shares", &token, &json!({})).await.refused(ErrorKind::Conflict);
    let tokens: Vec<TokenView> = world.get("/v1/tokens", &world.admin).await.json();
    let used = tokens[0].quotas.unwrap().used;
    assert_eq!((used.jobs, used.trials, used.links, used.failures), (2, 2, 1, 3));
    assert!(tokens[1].quotas.is_none());
    for wrong in [json!({ "job": 3 }), json!({ "share": 0 })] {
        world.post("/v1/tokens/1/quotas", &world.admin, &wrong).await.refused(ErrorKind::Invalid);
    }
    // A link ends with the token that made it.
    let open = async || {
        let form = format!("secret={}", link.secret);
        send(world.address(), "POST", "/share", "", &[OWN, FORM], form.as_bytes()).await.status
    };
    assert_eq!(open().await, 303);
    let revoked: RevokedToken = world.post("/v1/tokens/1/revoke", &world.admin, &()).await.json();
    assert_eq!(revoked.token.token.0, 1);
    assert_eq!(open().await, 401);
    world.server.stop().await;
}

#[tokio::test]
async fn a_token_whose_requests_fail_too_often_waits_and_others_go_on() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let alice = user(&world, "alice", "submit", json!({ "failures": 3 })).await.secret;
    let bob = user(&world, "bob", "read", json!({})).await.secret;
    for _ in 0..3 {
        assert_eq!(world.get("/v1/jobs", &alice).await.status, 200);
        world.get("/v1/jobs/9", &alice).await.refused(ErrorKind::NotFound);
    }
    let answer = world.get("/v1/jobs", &alice).await;
    let refused = answer.refused(ErrorKind::TooManyRequests);
    assert!(refused.message.contains("its quota `failures` is 3"), "{refused}");
    assert!(answer.header("retry-after").is_some());
    assert_eq!(world.get("/", &alice).await.status, 429, "so do the pages");
    for token in [&bob, &world.admin] {
        assert_eq!(world.get("/v1/jobs", token).await.status, 200);
    }
    for _ in 0..200 {
        world.get("/v1/jobs/9", &world.admin).await.refused(ErrorKind::NotFound);
    }
    let tokens: Vec<TokenView> = world.get("/v1/tokens", &world.admin).await.json();
    assert_eq!(tokens[0].quotas.unwrap().used.failures, 3);
    world.server.stop().await;
}

#[tokio::test]
async fn the_page_has_buttons_for_those_alone_who_may_press_them() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let alice = user(&world, "alice", "submit", json!({})).await.secret;
    let bob = user(&world, "bob", "submit", json!({})).await.secret;
    assert_eq!(world.submit_as(&alice).await.status, 200);
    assert_eq!(world.submit_as(&bob).await.status, 200);
    let page = async |path: &str, token: &str| text(&world.get(path, token).await);
    let button = "value=\"cancel\"";
    for (token, has_buttons) in [(&alice, true), (&bob, false), (&world.admin, true)] {
        let html = page("/jobs/1", token).await;
        assert_eq!(html.contains(button), has_buttons, "{html}");
        assert_eq!(html.contains("value=\"share\""), has_buttons);
        let board = page("/jobs/1/trials", token).await;
        assert_eq!(board.contains("value=\"stop\""), has_buttons, "{board}");
        assert!(html.contains("/jobs/new?over=1") && html.contains("<dd>alice</dd>"), "{html}");
    }
    // A button that isn't there is refused where it is pressed all the same.
    let pressed = |action: &str| format!("action={action}&trial=0&epochs=2&token=3&days=1");
    for action in [
        "pause", "resume", "cancel", "extend", "stop", "revive", "retry", "clone", "share",
        "unshare",
    ] {
        let headers = [OWN, FORM];
        let form = pressed(action);
        let answer =
            send(world.address(), "POST", "/jobs/1", &bob, &headers, form.as_bytes()).await;
        assert_eq!(answer.status, 403, "{action}: {}", text(&answer));
        assert!(text(&answer).contains("job 1 belongs to `alice`"), "{}", text(&answer));
    }
    // The list has owners where there are several, and a filter.
    let all = page("/", &bob).await;
    assert!(
        all.contains("<th scope=\"col\">Owner</th>") && all.contains("<option value=\"alice\">")
    );
    let of_alice = page("/?owner=alice", &bob).await;
    assert!(of_alice.contains("job-1") && !of_alice.contains("job-2"), "{of_alice}");
    assert!(of_alice.contains("/?part=jobs&amp;owner=alice"), "{of_alice}");
    assert!(page("/?owner=eve", &bob).await.contains("No jobs of eve."));
    // Whoever has a link doesn't see whose the job is.
    let link = world.post("/v1/jobs/1/shares", &alice, &json!({})).await.json::<NewToken>();
    let shared = page("/share/1", &link.secret).await;
    assert!(shared.contains("Trials") && !shared.contains("alice"), "{shared}");
    world.server.stop().await;
}
