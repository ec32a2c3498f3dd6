//! Links to a job's page: what they show, what they don't, and how they end.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::{
    folder,
    world::{Answer, World, connect_from, send, send_on},
};
use serde_json::{Value, json};
use sojourn_protocol::{
    api::{SearchView, SubmitAnswer},
    error::ErrorKind,
    tokens::{NewToken, TokenState, TokenView},
    view::TrafficView,
};

/// The header by which a browser says that a page of the server sends the request.
const OWN: (&str, &str) = ("sec-fetch-site", "same-origin");
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

async fn page_link(world: &World, job: impl std::fmt::Display, token: &str) -> NewToken {
    let request = json!({ "label": "for the review", "lifetime": 3_600_000 });
    world.post(&format!("/v1/jobs/{job}/shares"), token, &request).await.json()
}

async fn user(world: &World, rights: &str) -> String {
    let request = json!({ "label": rights, "grant": { "access": { "rights": rights } } });
    world.post("/v1/tokens", &world.admin, &request).await.json::<NewToken>().secret
}

/// Opens a link as its page does.
async fn open(world: &World, secret: &str) -> Answer {
    let form = format!("secret={secret}");
    send(world.address(), "POST", "/share", "", &[OWN, FORM], form.as_bytes()).await
}

async fn get(world: &World, path: &str, cookie: &str) -> Answer {
    send(world.address(), "GET", path, "", &[("cookie", cookie), OWN], b"").await
}

/// The cookie of an answer.
fn cookie(answer: &Answer) -> String {
    answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_link_shows_its_job_and_nothing_else() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let job = world.submit().await.job;
    let other = world.post("/v1/jobs/1/note", &world.admin, &json!({ "note": "n" })).await;
    assert_eq!(other.status, 200);
    let host = world.enrol("a-host-with-a-name").await;
    let lease = world.lease(&host.token).await;
    let link = page_link(&world, job, &world.admin).await;

    // The page at the address of the link has nothing of it: browsers keep to themselves what is behind the `#`.
    let page = send(world.address(), "GET", "/share", "", &[], b"").await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("referrer-policy").as_deref(), Some("no-referrer"));
    assert!(text(&page).contains("/assets/share.js"));
    let opened = open(&world, &link.secret).await;
    assert_eq!((opened.status, opened.header("location")), (303, Some(format!("/share/{job}"))));
    let set = opened.header("set-cookie").unwrap();
    for word in ["HttpOnly", "SameSite=Strict", &format!("Path=/share/{job}")] {
        assert!(set.contains(word), "{word}: {set}");
    }

    let cookie = cookie(&opened);
    let page = get(&world, &format!("/share/{job}"), &cookie).await;
    assert_eq!(page.status, 200);
    let html = text(&page);
    for shown in ["small", "Trials", "Learning curves", &format!("/share/{job}/changes")] {
        assert!(html.contains(shown), "{shown}: {html}");
    }
    for hidden in
        ["a-host-with-a-name", "name=\"action\"", "/v1/", "Sign out", "x.csv", &link.secret]
    {
        assert!(!html.contains(hidden), "{hidden}: {html}");
    }
    assert!(html.contains(&format!("lease-{}", lease.id)), "its leases are shown: {html}");
    for part in ["head", "figures", "matrix", "gantt", "board&sort=trial"] {
        let answer = get(&world, &format!("/share/{job}?part={part}"), &cookie).await;
        assert_eq!(answer.status, 200, "{part}");
        assert!(!text(&answer).contains("a-host-with-a-name"), "{part}");
    }
    let search: SearchView = get(&world, &format!("/share/{job}/search"), &cookie).await.json();
    assert_eq!((search.job, search.trials.len()), (job, 1));
    let changes = get(&world, &format!("/share/{job}/changes"), &cookie).await;
    assert_eq!(
        (changes.status, changes.header("content-type")),
        (200, Some("text/event-stream".into()))
    );
    for part in ["events", "shares", "x"] {
        let refused = get(&world, &format!("/share/{job}?part={part}"), &cookie).await;
        assert_eq!(refused.status, 404, "{part}");
    }
    assert_eq!(get(&world, "/share/77", &cookie).await.status, 404, "another job");

    // As a token it opens these addresses alone.
    for (method, path, status) in [
        ("GET", "/", 401),
        ("GET", "/jobs/1", 401),
        ("GET", "/jobs/1/trials", 401),
        ("GET", "/jobs/1/events", 401),
        ("GET", "/jobs/1/file", 401),
        ("GET", "/jobs/1/trials/0", 401),
        ("GET", "/hosts", 401),
        ("POST", "/jobs/1", 401),
        ("GET", "/v1/jobs", 401),
        ("GET", "/v1/jobs/1", 401),
        ("GET", "/v1/hosts", 401),
        ("GET", "/v1/tokens", 401),
        ("GET", "/v1/changes", 401),
        ("GET", "/metrics", 401),
        ("POST", "/v1/jobs/1/cancel", 401),
        ("POST", "/v1/jobs/1/shares", 401),
        ("POST", "/v1/enrol", 401),
        ("POST", "/share/1", 405),
        ("GET", "/share/1", 200),
    ] {
        let stream = connect_from([127, 1, 2, 3], world.address()).await;
        let answer = send_on(stream, method, path, &link.secret, &[], b"").await;
        assert_eq!(answer.status, status, "{method} {path}");
        // Nor is the cookie, put under the name of a session, one of a user.
        if status == 401 && method == "GET" {
            let as_user = cookie.replace("sojourn-share", "sojourn-session");
            let answer = get(&world, path, &as_user).await;
            assert!([303, 401].contains(&answer.status), "{path}: {}", answer.status);
        }
    }
    let signed_in = send(
        world.address(),
        "POST",
        "/sign-in",
        "",
        &[OWN, FORM],
        format!("token={}", link.secret).as_bytes(),
    )
    .await;
    assert_eq!((signed_in.status, signed_in.header("set-cookie")), (401, None));
    world.server.stop().await;
}

#[tokio::test]
async fn a_link_ends_when_it_is_revoked_and_the_journal_has_by_whom() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let submitter = user(&world, "submit").await;
    let job = world.submit_as(&submitter).await.json::<SubmitAnswer>().job;
    let reader = user(&world, "read").await;
    let page_links = format!("/v1/jobs/{job}/shares");
    world.post(&page_links, &reader, &json!({})).await.refused(ErrorKind::Forbidden);
    world.get(&page_links, &reader).await.refused(ErrorKind::Forbidden);
    world.post("/v1/jobs/9/shares", &submitter, &json!({})).await.refused(ErrorKind::NotFound);
    let year = json!({ "lifetime": 400_u64 * 24 * 3_600_000 });
    world.post(&page_links, &submitter, &year).await.refused(ErrorKind::Invalid);
    let link = page_link(&world, job, &submitter).await;
    let listed: Vec<TokenView> = world.get(&page_links, &submitter).await.json();
    assert_eq!((listed.len(), listed[0].label.as_str()), (1, "for the review"));
    let all = text(&world.get("/v1/tokens", &world.admin).await);
    assert!(all.contains("\"share\":{\"job\":1}") && !all.contains(&link.secret), "{all}");

    let cookie = cookie(&open(&world, &link.secret).await);
    let page = format!("/share/{job}");
    assert_eq!(get(&world, &page, &cookie).await.status, 200);
    // Whoever may submit revokes links of jobs, and no other token.
    let revoke = |token: u32| format!("{page_links}/{token}/revoke");
    world.post(&revoke(1), &submitter, &()).await.refused(ErrorKind::NotFound);
    let number = link.token.token;
    let revoked = world.post(&format!("{page_links}/{number}/revoke"), &submitter, &()).await;
    assert_eq!(revoked.json::<Value>()["token"]["state"], json!(TokenState::Revoked));
    let ended = get(&world, &page, &cookie).await;
    assert_eq!(ended.status, 401);
    assert!(text(&ended).contains("open the link again"), "{}", text(&ended));
    let events = text(&world.get(&format!("/v1/jobs/{job}/events"), &world.admin).await);
    for event in ["\"token-created\"", "\"token-revoked\""] {
        assert!(events.contains(event), "{event}: {events}");
    }
    // The token has submitted the job as well.
    assert_eq!(events.matches("\"by\":{\"token\":1}").count(), 3, "{events}");
    world.server.stop().await;
}

#[tokio::test]
async fn guessed_links_are_counted_and_refused_as_guessed_tokens_are() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    world.submit().await;
    let failed = async || {
        world.get("/v1/traffic", &world.admin).await.json::<TrafficView>().failed_authentications
    };
    let before = failed().await;
    let guess = open(&world, "a-guess").await;
    assert_eq!((guess.status, guess.header("set-cookie")), (401, None));
    assert!(text(&guess).contains("role=\"alert\""));
    assert_eq!(failed().await, before + 1);
    // A user's token is no link, and another site opens none.
    assert_eq!(open(&world, &world.admin).await.status, 401);
    let foreign = [("origin", "http://evil"), FORM];
    let answer = send(world.address(), "POST", "/share", "", &foreign, b"secret=x").await;
    assert_eq!(answer.status, 403);
    let mut statuses = Vec::new();
    for _ in 0..200 {
        let stream = connect_from([127, 9, 9, 9], world.address()).await;
        let answer = send_on(stream, "POST", "/share", "", &[OWN, FORM], b"secret=guess").await;
        statuses.push(answer.status);
    }
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
    world.server.stop().await;
}

#[tokio::test]
async fn the_button_of_a_job_makes_a_link_and_another_one_revokes_it() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let token = user(&world, "submit").await;
    let job = world.submit_as(&token).await.json::<SubmitAnswer>().job;
    let sign_in = format!("token={token}");
    let signed_in =
        send(world.address(), "POST", "/sign-in", "", &[OWN, FORM], sign_in.as_bytes()).await;
    let session = cookie(&signed_in);
    let page = format!("/jobs/{job}");
    let press = async |form: &str| {
        let headers = [("cookie", session.as_str()), OWN, FORM];
        send(world.address(), "POST", &page, "", &headers, form.as_bytes()).await
    };
    let made = press("action=share&label=reviewers&days=7").await;
    assert_eq!(made.status, 200, "{}", text(&made));
    assert_eq!(made.header("cache-control").as_deref(), Some("no-store"));
    let html = text(&made);
    let (_, secret) = html.split_once("http://x/share#").unwrap();
    let secret = secret.split('"').next().unwrap();
    assert_eq!(open(&world, secret).await.status, 303);
    let links = text(&get(&world, &format!("{page}?part=shares"), &session).await);
    assert!(links.contains("reviewers") && links.contains("name=\"token\" value=\"2\""), "{links}");
    assert_eq!(press("action=unshare&token=2").await.status, 303);
    let links = text(&get(&world, &format!("{page}?part=shares"), &session).await);
    assert!(!links.contains("reviewers"), "{links}");
    assert_eq!(open(&world, secret).await.status, 401);
    assert_eq!(press("action=share&days=1000").await.status, 400);
    world.server.stop().await;
}
