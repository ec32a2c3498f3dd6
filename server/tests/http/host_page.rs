//! The page of a host with its buttons, what went wrong on hosts, and a new job from the page.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::{
    folder,
    world::{Answer, World, ask, send},
};
use serde_json::{Value, json};
use sojourn_protocol::{
    report::{Failure, FailureKind, Outcome, Report},
    tokens::NewToken,
    view::{FailureView, HostDetail, HostView, JobDetail, JobView},
};

const OWN: (&str, &str) = ("sec-fetch-site", "same-origin");
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

pub(crate) fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

/// A browser of a user with these rights.
pub(crate) struct Browser<'a> {
    world: &'a World,
    cookie: String,
}

impl<'a> Browser<'a> {
    pub(crate) async fn sign_in(world: &'a World, rights: &str) -> Self {
        let request = json!({ "label": rights, "grant": { "access": { "rights": rights } } });
        let token: NewToken = world.post("/v1/tokens", &world.admin, &request).await.json();
        let form = format!("token={}", token.secret);
        let answer =
            send(world.address(), "POST", "/sign-in", "", &[OWN, FORM], form.as_bytes()).await;
        let cookie = answer.header("set-cookie").unwrap();
        Self { world, cookie: cookie.split(';').next().unwrap().to_owned() }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        let headers = [("cookie", self.cookie.as_str()), OWN];
        send(self.world.address(), "GET", path, "", &headers, b"").await
    }

    pub(crate) async fn post(&self, path: &str, form: &str) -> Answer {
        let headers = [("cookie", self.cookie.as_str()), OWN, FORM];
        send(self.world.address(), "POST", path, "", &headers, form.as_bytes()).await
    }

    /// A request with another method, which a page of `site` sends.
    pub(crate) async fn send(&self, method: &str, path: &str, site: &str, body: &[u8]) -> Answer {
        let headers = [("cookie", self.cookie.as_str()), ("sec-fetch-site", site)];
        send(self.world.address(), method, path, "", &headers, body).await
    }
}

async fn hosts(world: &World) -> Vec<HostView> {
    world.get("/v1/hosts", &world.admin).await.json()
}

#[tokio::test]
async fn a_hosts_page_shows_what_it_has_and_its_buttons_block_it() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let job = world.submit().await.job;
    let host = world.enrol("lab-7").await;
    let lease = world.lease(&host.token).await;
    let page = format!("/hosts/{}", host.host);
    let admin = Browser::sign_in(&world, "administer").await;
    let html = text(&admin.get(&page).await);
    for shown in
        ["lab-7", "Slots now", &format!("lease-{}", lease.id), "Gflop/s", "Block this host"]
    {
        assert!(html.contains(shown), "{shown}: {html}");
    }
    for part in ["head", "leases", "devices", "cache", "errors"] {
        let answer = admin.get(&format!("{page}?part={part}")).await;
        assert_eq!(answer.status, 200, "{part}");
        assert!(!text(&answer).contains("<html"), "{part}");
    }
    assert_eq!(admin.get(&format!("{page}?part=x")).await.status, 404);
    assert_eq!(admin.get("/hosts/99").await.status, 404);
    assert!(text(&admin.get("/hosts").await).contains(&format!("href=\"{page}\"")));

    assert_eq!(admin.post(&page, "action=block").await.status, 303);
    assert!(hosts(&world).await[0].blocked);
    let html = text(&admin.get(&page).await);
    assert!(html.contains(">blocked<") && html.contains(">Unblock</button>"), "{html}");
    assert!(world.work(&host.token, &ask(1)).await.leases.iter().all(|one| one.id == lease.id));
    assert_eq!(admin.post(&page, "action=unblock").await.status, 303);
    assert!(!hosts(&world).await[0].blocked);

    let submitter = Browser::sign_in(&world, "submit").await;
    assert!(!text(&submitter.get(&page).await).contains("name=\"action\""));
    assert_eq!(submitter.post(&page, "action=block").await.status, 403);
    assert_eq!(admin.post(&page, "action=revoke").await.status, 303);
    assert_eq!(admin.post(&page, "action=block").await.status, 409);
    let detail: HostDetail =
        world.get(&format!("/v1/hosts/{}", host.host), &world.admin).await.json();
    assert_eq!((detail.host.host, detail.other_blobs), (host.host, 0));
    assert!(world.get(&format!("/v1/jobs/{job}"), &world.admin).await.status == 200);
    world.server.stop().await;
}

#[tokio::test]
async fn what_a_unit_takes_is_said_by_its_host_and_shown() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    world.submit().await;
    let host = world.enrol("lab-7").await;
    let lease = world.lease(&host.token).await;
    let usage = |cores: f64| json!({ "cores": cores, "memory": 312_000_000, "read_per_second": 1.2e6, "written_per_second": 0.0, "loss": 0.5 });
    let beat = |usage: &Value| {
        let state = json!({ "running": { "done": 1, "of": 3 } });
        json!({ "holding": [{ "lease": lease.id, "state": state, "usage": usage }], "reported": [] })
    };
    let features = world.get("/v1/health", "").await.header("sojourn-features").unwrap();
    assert!(features.contains("unit-usage"), "{features}");
    let refused = world.post("/v1/heartbeat", &host.token, &beat(&usage(-1.0))).await;
    assert_eq!(refused.status, 400, "no unit takes less than nothing");
    assert_eq!(world.post("/v1/heartbeat", &host.token, &beat(&usage(1.9))).await.status, 200);
    let path = format!("/v1/hosts/{}", host.host);
    let detail: Value = world.get(&path, &world.admin).await.json();
    assert_eq!(detail["host"]["leases"][0]["usage"], usage(1.9));
    assert_eq!(detail["host"]["leases"][0]["running"], true);
    let page = format!("/hosts/{}", host.host);
    let reader = Browser::sign_in(&world, "read").await;
    let words = "1.9 cores, 312 MB of memory, reads 1.2 MB/s, loss 0.5000";
    for address in [page.clone(), format!("{page}?part=leases")] {
        let html = text(&reader.get(&address).await);
        assert!(html.contains(words), "{html}");
    }
    assert!(text(&reader.get(&page).await).contains("data-every=\"10\""));
    world.server.stop().await;
}

#[tokio::test]
async fn the_hosts_of_a_job_are_those_that_have_leases_of_it() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let job = world.submit().await.job;
    let (works, idle) = (world.enrol("lab-7").await, world.enrol("lab-8").await);
    let of_job = format!("/v1/hosts?job={job}");
    let names = async |path: &str| -> Vec<u64> {
        let hosts: Vec<HostView> = world.get(path, &world.admin).await.json();
        hosts.iter().map(|host| host.host.0).collect()
    };
    assert_eq!(names(&of_job).await, Vec::<u64>::new());
    world.lease(&works.token).await;
    assert_eq!(names(&of_job).await, [works.host.0]);
    assert_eq!(names("/v1/hosts").await, [works.host.0, idle.host.0]);
    for (wrong, status) in [("job=99", 404), ("job=x", 400), ("of=1", 400)] {
        let answer = world.get(&format!("/v1/hosts?{wrong}"), &world.admin).await;
        assert_eq!(answer.status, status, "{wrong}");
    }
    world.server.stop().await;
}

#[tokio::test]
async fn what_a_host_has_in_its_cache_is_said_by_jobs() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let job = world.submit().await.job;
    let detail: JobDetail = world.get(&format!("/v1/jobs/{job}"), &world.admin).await.json();
    let host = world.enrol("lab-7").await;
    let mut request = serde_json::to_value(ask(1)).unwrap();
    let cached = [detail.data.train[1].blob.sha256.to_string(), "ab".repeat(32)];
    request["inventory"]["cached"] = json!(cached);
    assert_eq!(world.post("/v1/work", &host.token, &request).await.status, 200);
    let path = format!("/v1/hosts/{}", host.host);
    let of: HostDetail = world.get(&path, &world.admin).await.json();
    let [cache] = &of.cache[..] else { panic!("{of:?}") };
    assert_eq!((cache.job, cache.shards.len(), cache.of_shards), (job, 1, 2));
    assert_eq!((cache.shards[0].0, cache.bytes), (1, detail.data.train[1].blob.bytes));
    assert_eq!(of.other_blobs, 1);
    world.server.stop().await;
}

#[tokio::test]
async fn failures_are_counted_by_host_and_trial_and_outlast_a_restart() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let job = world.submit().await.job;
    let host = world.enrol("lab-7").await;
    let lease = world.lease(&host.token).await;
    let failure = Failure { kind: FailureKind::Trainer, message: "the loss is NaN".to_owned() };
    let failure = failure.with_log("epoch 1\nbatch 3 <b>");
    let report = Report { lease: lease.id, outcome: Outcome::Failed(failure) };
    for _ in 0..2 {
        assert_eq!(world.post("/v1/results", &host.token, &report).await.status, 200);
    }
    let failures: Vec<FailureView> = world.get("/v1/failures", &world.admin).await.json();
    let [one] = &failures[..] else { panic!("{failures:?}") };
    assert_eq!((one.host, one.job, one.count, one.lease), (host.host, job, 1, lease.id));
    assert_eq!(one.error, "the loss is NaN");
    assert_eq!(one.log.as_deref(), Some("epoch 1\nbatch 3 <b>"));
    let reader = Browser::sign_in(&world, "read").await;
    let html = text(&reader.get("/failures").await);
    for shown in ["By host", "By trial", "lab-7", "the loss is NaN", "batch 3 &lt;b&gt;"] {
        assert!(html.contains(shown), "{shown}: {html}");
    }
    let html = text(&reader.get(&format!("/hosts/{}?part=errors", host.host)).await);
    assert!(html.contains("the loss is NaN"), "{html}");
    world.server.stop().await;
    let again = World::start(folder.path()).await;
    let after: Vec<FailureView> = again.get("/v1/failures", &again.admin).await.json();
    assert_eq!(after, failures);
    again.server.stop().await;
}

const JOB: &str = "name = \"second\"\nseed = 3\n\n[[model]]\narch = \"mlp\"\nhidden = { choice = [[3], [5]] }\n\n\
    [training]\nepochs = 2\nbatch_size = 4\noptimizer = { name = \"sgd\", lr = 0.1 }\n\n\
    [search]\nmethod = \"grid\"\nmetric = \"valid/accuracy\"\ngoal = \"max\"\n";

fn form(text: &str) -> String {
    let encoded: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
    format!("over=1&text={encoded}")
}

#[tokio::test]
async fn a_job_file_is_checked_and_submitted_over_the_data_of_an_earlier_job() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let first = world.submit().await.job;
    let user = Browser::sign_in(&world, "submit").await;
    let page = text(&user.get("/jobs/new?over=1").await);
    assert!(page.contains("value=\"1\" selected") && page.contains("/assets/new.js"), "{page}");
    let check = async |file: &str| text(&user.post("/jobs/new?part=check", &form(file)).await);

    let good = check(JOB).await;
    for shown in ["It can be submitted", "2 trials", "2 epochs of 2 shards", "8 hops"] {
        assert!(good.contains(shown), "{shown}: {good}");
    }
    let wrong = check(&JOB.replace("epochs = 2", "epocs = 2")).await;
    assert!(wrong.contains("data-line=\"9\"") && wrong.contains("epocs"), "{wrong}");
    let syntax = check("name = \"a\nb").await;
    assert!(syntax.contains("data-line=\"1\""), "{syntax}");
    let initial = JOB.replace("hidden", "init = \"m.safetensors\"\nhidden");
    assert!(
        check(&initial).await.contains("can&#39;t be read here")
            || check(&initial).await.contains("can't be read here")
    );
    let loss = JOB.replace("epochs = 2", "epochs = 2\nloss = \"mse\"");
    let loss = loss.replace("valid/accuracy\"\ngoal = \"max\"", "valid/loss\"");
    assert!(check(&loss).await.contains("needs labels that are numbers"), "{}", check(&loss).await);
    // What the file says of data isn't looked at.
    assert_eq!(check(&format!("{JOB}\n[data]\ntrain = \"elsewhere.csv\"\n")).await, good);

    let refused = user.post("/jobs/new", &form("name = 1")).await;
    assert_eq!(refused.status, 400);
    assert!(text(&refused).contains("name = 1") && text(&refused).contains("data-line"));
    let submitted = user.post("/jobs/new", &form(JOB)).await;
    assert_eq!((submitted.status, submitted.header("location")), (303, Some("/jobs/2".into())));
    let detail = |job: u64| {
        let path = format!("/v1/jobs/{job}");
        async { world.get(&{ path }, &world.admin).await.json::<Value>() }
    };
    let (one, two) = (detail(first.0).await, detail(2).await);
    assert_eq!(one["data"], two["data"]);
    assert_eq!((&two["spec"]["seed"], &two["spec"]["data"]["seed"]), (&json!("3"), &json!("7")));
    // The same again is the same job, unless it is to be another.
    let again = user.post("/jobs/new", &form(JOB)).await;
    assert_eq!(again.header("location"), Some("/jobs/2".into()));
    let again = user.post("/jobs/new", &format!("{}&again=true", form(JOB))).await;
    assert_eq!(again.header("location"), Some("/jobs/3".into()));
    let jobs: Vec<JobView> = world.get("/v1/jobs", &world.admin).await.json();
    assert_eq!(jobs.len(), 3);

    let reader = Browser::sign_in(&world, "read").await;
    assert_eq!(reader.get("/jobs/new").await.status, 403);
    assert_eq!(reader.post("/jobs/new", &form(JOB)).await.status, 403);
    let large = user.post("/jobs/new", &form(&"#".repeat(300_000))).await;
    assert_eq!(large.status, 413);
    world.server.stop().await;
}
