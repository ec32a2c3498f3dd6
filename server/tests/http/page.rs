//! The web page: who sees it, what its buttons do, and what it is told when something changes.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use crate::{
    folder,
    serve::AssimilatorConfig,
    world::{Answer, World, send, trained},
};
use serde_json::json;
use sojourn_protocol::{
    api::{SearchRequest, Space, SubmitAnswer, SubmitRequest},
    error::ErrorKind,
    spec::{Dimension, SearchMethod},
    tokens::NewToken,
    view::{JobDetail, JobState, JobView, TrafficView, TrialState, TrialView},
};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// So long that a test that waits for it has failed.
const LONG: Duration = Duration::from_secs(60);
/// The header by which a browser says that a page of the server sends the request.
const OWN: (&str, &str) = ("sec-fetch-site", "same-origin");

fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

/// Sends a form, and gives the answer.
async fn post(world: &World, path: &str, headers: &[(&str, &str)], form: &str) -> Answer {
    let form_type = ("content-type", "application/x-www-form-urlencoded");
    let headers: Vec<(&str, &str)> = headers.iter().copied().chain([form_type]).collect();
    send(world.address(), "POST", path, "", &headers, form.as_bytes()).await
}

async fn get(world: &World, path: &str, headers: &[(&str, &str)]) -> Answer {
    send(world.address(), "GET", path, "", headers, b"").await
}

/// Signs in with a token: the cookie.
async fn sign_in(world: &World, token: &str) -> String {
    let answer = post(world, "/sign-in", &[OWN], &format!("token={token}&to=/hosts")).await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/hosts".into())));
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

async fn new_token(world: &World, rights: &str) -> NewToken {
    let request = json!({ "label": rights, "grant": { "access": { "rights": rights } } });
    world.post("/v1/tokens", &world.admin, &request).await.json()
}

#[tokio::test]
async fn who_has_not_signed_in_is_led_to_the_page_for_it() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let answer = get(&world, "/jobs/1?sort=lr", &[]).await;
    assert_eq!(answer.status, 303);
    assert_eq!(answer.header("location").unwrap(), "/sign-in?to=%2Fjobs%2F1%3Fsort%3Dlr");
    let page = get(&world, "/sign-in?to=%2Fjobs%2F1", &[]).await;
    assert!(text(&page).contains("value=\"/jobs/1\""), "{}", text(&page));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    // A link on another site: the browser has sent no cookie, and does so when this page asks again.
    let again = get(&world, "/jobs/1", &[("sec-fetch-site", "cross-site")]).await;
    assert_eq!(again.status, 200);
    assert!(text(&again).contains("0; url=/jobs/1"), "{}", text(&again));
    // Who tries tokens is counted, whatever the address.
    let before: TrafficView = world.get("/v1/traffic", &world.admin).await.json();
    world.get("/", "a guess").await.refused(ErrorKind::Unauthorized);
    let after: TrafficView = world.get("/v1/traffic", &world.admin).await.json();
    assert_eq!(after.failed_authentications, before.failed_authentications + 1);
    // Programs hear what they heard before.
    world.get("/v1/jobs", "").await.refused(ErrorKind::Unauthorized);
    world.server.stop().await;
}

#[tokio::test]
async fn a_session_is_a_users_until_it_signs_out_or_its_token_is_revoked() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let host = world.enrol("one").await;
    for wrong in ["nobody's", &host.token, &world.enrol_token(), ""] {
        let answer = post(&world, "/sign-in", &[OWN], &format!("token={wrong}")).await;
        assert_eq!((answer.status, answer.header("set-cookie")), (401, None), "{wrong}");
        assert!(text(&answer).contains("role=\"alert\""));
    }
    // Another site would have its own token used here.
    let form = format!("token={}", world.admin);
    let foreign = post(&world, "/sign-in", &[("origin", "http://evil")], &form).await;
    assert_eq!((foreign.status, foreign.header("set-cookie")), (403, None));

    let cookie = sign_in(&world, &world.admin).await;
    let with = [("cookie", cookie.as_str())];
    for path in ["/", "/hosts", "/v1/jobs", "/?part=jobs"] {
        assert_eq!(get(&world, path, &with).await.status, 200, "{path}");
    }
    let missing = get(&world, "/jobs/7", &with).await;
    assert_eq!(missing.status, 404);
    assert!(text(&missing).contains("no job 7"), "{}", text(&missing));
    // A page of another site can't end it.
    for foreign in [("origin", "http://evil"), ("sec-fetch-site", "same-site")] {
        let refused = post(&world, "/sign-out", &[with[0], foreign], "").await;
        assert_eq!((refused.status, refused.header("set-cookie")), (403, None), "{foreign:?}");
        assert_eq!(get(&world, "/", &with).await.status, 200);
    }
    let out = post(&world, "/sign-out", &[with[0], OWN], "").await;
    assert_eq!((out.status, out.header("location")), (303, Some("/sign-in".into())));
    assert_eq!(get(&world, "/", &with).await.status, 303);
    get(&world, "/v1/jobs", &with).await.refused(ErrorKind::Unauthorized);

    let token = new_token(&world, "read").await;
    let cookie = sign_in(&world, &token.secret).await;
    let with = [("cookie", cookie.as_str())];
    assert_eq!(get(&world, "/", &with).await.status, 200);
    let revoke = format!("/v1/tokens/{}/revoke", token.token.token);
    assert_eq!(world.post(&revoke, &world.admin, &()).await.status, 200);
    assert_eq!(get(&world, "/", &with).await.status, 303);
    world.server.stop().await;
}

#[tokio::test]
async fn with_a_session_only_pages_of_the_server_change_anything() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let job = world.submit().await.job;
    let cookie = sign_in(&world, &world.admin).await;
    let pause = format!("/v1/jobs/{job}/pause");
    for foreign in [vec![], vec![("origin", "http://evil")], vec![("sec-fetch-site", "same-site")]]
    {
        let mut headers = vec![("cookie", cookie.as_str())];
        headers.extend(foreign);
        send(world.address(), "POST", &pause, "", &headers, b"{}")
            .await
            .refused(ErrorKind::Forbidden);
        let button = post(&world, &format!("/jobs/{job}"), &headers, "action=cancel").await;
        assert_eq!(button.status, 403);
    }
    let headers = [("cookie", cookie.as_str()), ("origin", "http://x")];
    let view: JobView = send(world.address(), "POST", &pause, "", &headers, b"{}").await.json();
    assert_eq!(view.state, JobState::Paused);
    world.server.stop().await;
}

#[tokio::test]
async fn a_cancelled_job_goes_on_by_a_button() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let job = world.submit().await.job;
    let cookie = sign_in(&world, &world.admin).await;
    let with = [("cookie", cookie.as_str()), OWN];
    let page = format!("/jobs/{job}");
    let hidden = r#"name="reopen" value="true""#;
    assert!(!text(&get(&world, &page, &with).await).contains(hidden));
    assert_eq!(post(&world, &page, &with, "action=cancel").await.status, 303);
    assert!(text(&get(&world, &page, &with).await).contains(hidden));
    let state = async || {
        let detail: JobDetail = world.get(&format!("/v1/jobs/{job}"), &world.admin).await.json();
        detail.summary.state
    };
    let refused = post(&world, &page, &with, "action=extend&epochs=3").await;
    assert_eq!((refused.status, state().await), (409, JobState::Cancelled));
    let reopened = post(&world, &page, &with, "action=extend&epochs=3&reopen=true").await;
    assert_eq!((reopened.status, state().await), (303, JobState::Running));
    world.server.stop().await;
}

#[tokio::test]
async fn a_cookie_that_another_program_of_the_host_has_seen_changes_nothing() {
    let folder = folder();
    let mut config = World::config(folder.path(), AssimilatorConfig::default());
    config.network.behind_proxy = true;
    let world = World::with(config).await;
    let job = world.submit().await.job;
    let browser = ("x-forwarded-for", "192.0.2.7");
    let signed_in =
        post(&world, "/sign-in", &[OWN, browser], &format!("token={}", world.admin)).await;
    let cookie = signed_in.header("set-cookie").unwrap();
    let with = ("cookie", cookie.split(';').next().unwrap());
    let pause = format!("/v1/jobs/{job}/pause");
    let elsewhere = ("x-forwarded-for", "127.0.0.1");
    send(world.address(), "POST", &pause, "", &[with, OWN, elsewhere], b"{}")
        .await
        .refused(ErrorKind::Forbidden);
    let page = format!("/jobs/{job}");
    let button = post(&world, &page, &[with, OWN, elsewhere], "action=cancel").await;
    assert_eq!(button.status, 403);
    let view: JobView =
        send(world.address(), "POST", &pause, "", &[with, OWN, browser], b"{}").await.json();
    assert_eq!(view.state, JobState::Paused);
    world.server.stop().await;
}

#[tokio::test]
async fn behind_a_proxy_all_links_of_pages_stay_below_its_path() {
    let folder = folder();
    let mut config = World::config(folder.path(), AssimilatorConfig::default());
    config.network.behind_proxy = true;
    let world = World::with(config).await;
    let job = world.submit().await.job;
    let html = ("accept", "text/html,application/xhtml+xml");
    let browser = [("x-forwarded-for", "192.0.2.7"), ("accept-encoding", "gzip"), html, OWN];
    let led = get(&world, &format!("/jobs/{job}?sort=lr"), &browser).await;
    let to = format!("../sign-in?to=%2Fjobs%2F{job}%3Fsort%3Dlr");
    assert_eq!((led.status, led.header("location")), (303, Some(to)));
    let form = format!("token={}&to=/jobs/{job}", world.admin);
    let signed_in = post(&world, "/sign-in", &browser, &form).await;
    assert_eq!(signed_in.header("location"), Some(format!("./jobs/{job}")));

    let cookie = signed_in.header("set-cookie").unwrap();
    let with: Vec<_> =
        browser.into_iter().chain([("cookie", cookie.split(';').next().unwrap())]).collect();
    let job_page = format!("/jobs/{job}");
    let of_job = ["trials", "charts", "machines", "events", "file", "trials/0"];
    let of_job = of_job.map(|tab| format!("{job_page}/{tab}"));
    let pages = ["/", "/sign-in", "/hosts", "/failures", "/jobs/new", &job_page, "/v1/docs"];
    for path in pages.into_iter().chain(of_job.iter().map(String::as_str)) {
        let answer = get(&world, path, &with).await;
        assert_eq!((answer.status, answer.header("content-encoding")), (200, None), "{path}");
        let page = text(&answer);
        for attribute in ["href", "src", "action", "data-live", "data-root", "data-from"] {
            let absolute = format!(" {attribute}=\"/");
            assert!(!page.contains(&absolute), "{path} has {absolute} in\n{page}");
        }
    }
    let page = text(&get(&world, &job_page, &with).await);
    for part in ["href=\"../hosts\"", "data-root=\"../\"", "src=\"../assets/live.js?"] {
        assert!(page.contains(part), "no {part} in\n{page}");
    }
    // Scripts and programs get packed answers as before.
    let asset = get(&world, "/assets/live.js", &browser).await;
    assert_eq!(asset.header("content-encoding").as_deref(), Some("gzip"));
    world.server.stop().await;
}

async fn state(world: &World) -> JobState {
    let jobs: Vec<JobView> = world.get("/v1/jobs", &world.admin).await.json();
    jobs[0].state
}

#[tokio::test]
async fn each_button_of_a_job_does_what_it_says() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let job = world.submit().await.job;
    let host = world.enrol("one").await;
    let page = format!("/jobs/{job}");
    let cookie = sign_in(&world, &world.admin).await;
    let with = [("cookie", cookie.as_str()), OWN];
    let press = async |form: &str| {
        let answer = post(&world, &page, &with, form).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some(page.clone())), "{form}");
    };
    let shown = async || text(&get(&world, &page, &with).await);
    assert!(shown().await.contains(">Pause</button>"));
    press("action=pause").await;
    assert_eq!(state(&world).await, JobState::Paused);
    assert!(shown().await.contains(">Resume</button>"));
    let events = async || text(&get(&world, &format!("{page}?part=events"), &with).await);
    assert!(events().await.contains("job-paused") && !events().await.contains("job-resumed"));
    press("action=resume").await;
    assert!(events().await.contains("job-paused") && events().await.contains("job-resumed"));
    press("action=extend&epochs=3").await;
    let jobs: Vec<JobView> = world.get("/v1/jobs", &world.admin).await.json();
    assert_eq!((jobs[0].state, jobs[0].hops_expected), (JobState::Running, 6));

    // A hop of the trial, so that it has a checkpoint to go on from.
    let lease = world.lease(&host.token).await;
    let (bytes, report) = trained(&lease, 1);
    assert_eq!(world.upload(&host.token, &lease, &bytes).await.status, 200);
    assert_eq!(world.report(&host.token, &report).await.status, 200);
    world.end(&host.token, lease.id).await;
    let board = text(&get(&world, &format!("{page}/trials"), &with).await);
    assert!(board.contains("Stop trial 0"), "{board}");
    assert!(!board.contains("Clone"), "no epoch has ended: a clone would be refused: {board}");
    // A button of the board or of a trial's page leads back there.
    for (epochs, back, to) in
        [(4, "trials", "/trials"), (5, "trial", "/trials/0"), (6, "overview", "")]
    {
        let form = format!("action=extend&epochs={epochs}&trial=0&back={back}");
        let answer = post(&world, &page, &with, &form).await;
        assert_eq!(answer.header("location"), Some(format!("{page}{to}")), "{back}");
    }
    press("action=stop&trial=0").await;
    let trials: Vec<TrialView> =
        world.get(&format!("/v1/jobs/{job}/trials"), &world.admin).await.json();
    assert_eq!(trials[0].state, TrialState::Finished);
    press("action=revive&trial=0").await;
    let trials: Vec<TrialView> =
        world.get(&format!("/v1/jobs/{job}/trials"), &world.admin).await.json();
    assert_eq!(trials[0].state, TrialState::Running);

    // What can't be done is said on a page.
    for wrong in [
        "action=extend",
        "action=stop&trial=9",
        "action=clone&trial=0&set=lr",
        "action=extend&epochs=0",
    ] {
        let answer = post(&world, &page, &with, wrong).await;
        assert!((400..500).contains(&answer.status), "{wrong}: {}", answer.status);
        assert!(text(&answer).contains("role=\"alert\""), "{wrong}: {}", text(&answer));
    }
    let reader = new_token(&world, "read").await;
    let reader = sign_in(&world, &reader.secret).await;
    let as_reader = [("cookie", reader.as_str()), OWN];
    let refused = post(&world, &page, &as_reader, "action=cancel").await;
    assert_eq!(refused.status, 403);
    for address in ["", "/trials", "/trials/0"] {
        let seen = text(&get(&world, &format!("{page}{address}"), &as_reader).await);
        assert!(!seen.contains("name=\"action\""), "buttons for who may only read: {address}");
    }

    press("action=cancel").await;
    assert_eq!(state(&world).await, JobState::Cancelled);
    world.server.stop().await;
}

#[tokio::test]
async fn a_space_that_was_changed_is_on_the_page_of_its_job() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let first = world.submit().await.job;
    let detail: JobDetail = world.get(&format!("/v1/jobs/{first}"), &world.admin).await.json();
    let JobDetail { mut spec, data, .. } = detail;
    spec.search.method = SearchMethod::Random { trials: 2 };
    spec.training.optimizer.lr = Dimension::Choice(vec![0.1, 0.2]);
    let (models, mut training) = (spec.models.clone(), spec.training.clone());
    let request = SubmitRequest { spec, data, again: false, nonce: None };
    let job = world.post("/v1/jobs", &world.admin, &request).await.json::<SubmitAnswer>().job;
    let cookie = sign_in(&world, &world.admin).await;
    let with = [("cookie", cookie.as_str())];
    let shown = async |path: &str| text(&get(&world, &format!("/jobs/{job}{path}"), &with).await);
    assert_eq!(shown("?part=space").await, "");
    training.optimizer.lr = Dimension::Choice(vec![0.123, 0.7]);
    let space = Some(Box::new(Space { models, training }));
    let request = SearchRequest { space, ..SearchRequest::default() };
    let changed = world.post(&format!("/v1/jobs/{job}/search"), &world.admin, &request).await;
    assert_eq!(changed.status, 200, "{}", text(&changed));
    for path in ["?part=space", "/file"] {
        let shown = shown(path).await;
        assert!(shown.contains("Space as changed since") && shown.contains("0.123"), "{shown}");
    }
    world.server.stop().await;
}

#[tokio::test]
async fn a_part_that_has_not_changed_is_not_sent_again() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let job = world.submit().await.job;
    let cookie = sign_in(&world, &world.admin).await;
    let board = "board&sort=epoch&down=true&filter=mlp&from=0";
    let parts = ["head", "best", "pace", "next", "figures", "matrix", board, "events&kind=people"];
    let parts = parts.map(|part| format!("/jobs/{job}?part={part}"));
    let of_trial = ["head", "lineage", "hops", "failures"];
    let of_trial = of_trial.map(|part| format!("/jobs/{job}/trials/0?part={part}"));
    for part in parts.into_iter().chain(of_trial) {
        let path = part.clone();
        let first = get(&world, &path, &[("cookie", &cookie)]).await;
        assert_eq!(first.status, 200, "{part}");
        assert!(!text(&first).contains("<html"), "{part}");
        let tag = first.header("etag").unwrap();
        let again = get(&world, &path, &[("cookie", &cookie), ("if-none-match", &tag)]).await;
        assert_eq!((again.status, again.body.len()), (304, 0), "{part}");
    }
    for unknown in ["?part=x", "/trials/0?part=x", "/x", "/overview", "/trials/77"] {
        let path = format!("/jobs/{job}{unknown}");
        assert_eq!(get(&world, &path, &[("cookie", &cookie)]).await.status, 404, "{unknown}");
    }
    world.server.stop().await;
}

#[tokio::test]
async fn each_page_of_a_job_and_of_a_trial_is_for_users() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let job = world.submit().await.job;
    let host = world.enrol("one").await;
    let token = new_token(&world, "read").await;
    let cookie = sign_in(&world, &token.secret).await;
    let pages = [
        ("", "Best trials"),
        ("/trials", "1 of 1 trials"),
        ("/charts", "id=\"settings\""),
        ("/machines", "Leases"),
        ("/events", "was submitted"),
        ("/file", "Job as submitted"),
        ("/trials/0", "Trial 0"),
        ("/trials/0?part=curves", "\"epochs\":[]"),
    ];
    for (path, shows) in pages {
        let path = format!("/jobs/{job}{path}");
        let led = get(&world, &path, &[]).await;
        assert_eq!(led.status, 303, "{path} without a session");
        assert!(led.header("location").unwrap().starts_with("/sign-in?to="), "{path}");
        assert_eq!(world.get(&path, &host.token).await.status, 401, "{path} for a host");
        let page = get(&world, &path, &[("cookie", &cookie)]).await;
        assert_eq!(page.status, 200, "{path}");
        assert!(text(&page).contains(shows), "{path}: {}", text(&page));
    }
    let overview = text(&get(&world, &format!("/jobs/{job}"), &[("cookie", &cookie)]).await);
    assert!(!overview.contains("was submitted"), "the overview has no events: {overview}");
    let of_other = format!("/jobs/{job}/events?trial=5");
    let filtered = text(&get(&world, &of_other, &[("cookie", &cookie)]).await);
    assert!(filtered.contains("No such event"), "{filtered}");
    world.server.stop().await;
}

/// A page's first load, with all that it loads.
#[tokio::test]
async fn a_page_and_its_files_weigh_less_than_300_kb() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let job = world.submit().await.job;
    let cookie = sign_in(&world, &world.admin).await;
    let page = get(&world, &format!("/jobs/{job}"), &[("cookie", &cookie)]).await;
    let html = text(&page);
    let mut bytes = page.body.len();
    let files = html.split('"').filter(|part| part.starts_with("/assets/"));
    let mut count = 0;
    for file in files {
        let answer = get(&world, file, &[]).await;
        assert_eq!(answer.status, 200, "{file}");
        assert!(answer.header("cache-control").unwrap().contains("immutable"), "{file}");
        (bytes, count) = (bytes + answer.body.len(), count + 1);
    }
    assert!(count >= 5, "{html}");
    assert!(bytes < 300_000, "{bytes} bytes");
    // With many trials a page is longer, and so is what its charts are drawn from: both go packed to browsers.
    for packing in ["gzip", "zstd"] {
        let headers = [("cookie", cookie.as_str()), ("accept-encoding", packing)];
        for path in [format!("/jobs/{job}"), format!("/v1/jobs/{job}/search")] {
            let packed = get(&world, &path, &headers).await;
            assert_eq!(packed.header("content-encoding").as_deref(), Some(packing), "{path}");
        }
    }
    world.server.stop().await;
}

/// The next event's data on a stream of events.
async fn next_event(stream: &mut TcpStream) -> u64 {
    let mut seen = Vec::new();
    loop {
        seen.push(timeout(LONG, stream.read_u8()).await.unwrap().unwrap());
        let text = String::from_utf8_lossy(&seen);
        if let Some((_, data)) = text.rsplit_once("data: ")
            && let Some((number, _)) = data.split_once("\n\n")
        {
            return number.parse().unwrap();
        }
    }
}

async fn listen(world: &World, token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(world.address()).await.unwrap();
    let head =
        format!("GET /v1/changes HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn listeners_hear_of_changes() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    world.submit().await;
    let mut stream = listen(&world, &world.admin).await;
    let first = next_event(&mut stream).await;
    assert!(first > 0);
    world.enrol("one").await;
    assert!(next_event(&mut stream).await > first);
    // Who comes later hears the latest at once.
    let mut later = listen(&world, &world.admin).await;
    assert!(next_event(&mut later).await > first);
    world.get("/v1/changes", "").await.refused(ErrorKind::Unauthorized);
    world.server.stop().await;
}

/// The listeners read nothing of what comes, while others work; and some listeners are gone.
#[tokio::test]
async fn hundreds_of_listeners_that_do_not_read_hold_up_nobody() {
    let folder = folder();
    let mut config = World::config(folder.path(), AssimilatorConfig::default());
    // As with a usual hard limit. The test has the other ends of the connections in the same process.
    config.network.descriptors = Some(4_096);
    config.network.max_connections_per_address = sojourn_server::PerAddress::Most(1_000);
    let world = World::with(config).await;
    world.submit().await;
    let mut listeners = Vec::new();
    for _ in 0..500 {
        listeners.push(listen(&world, &world.admin).await);
    }
    let mut reader = listen(&world, &world.admin).await;
    let mut heard = next_event(&mut reader).await;
    for name in 0..3 {
        world.enrol(&format!("host {name}")).await;
        let now = next_event(&mut reader).await;
        assert!(now > heard);
        heard = now;
    }
    let open = async || {
        world.get("/v1/traffic", &world.admin).await.json::<TrafficView>().open_connections
    };
    assert!(open().await > 500);
    drop(listeners);
    // The server notices when it writes to them, or at once.
    timeout(LONG, async {
        while open().await > 10 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    world.server.stop().await;
}
