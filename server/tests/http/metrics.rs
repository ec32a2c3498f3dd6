//! The metrics for Prometheus: each has its line in the documentation, and says what the server does.

use crate::{
    folder,
    world::{Answer, World, ask, send, trained},
};
use sojourn_protocol::{error::ErrorKind, ids::LeaseId, report::ReportEnd, tokens::NewToken};
use std::collections::{BTreeMap, BTreeSet};

/// The page with a table of all metrics.
const PAGE: &str = include_str!("../../../docs/operate/metrics.md");

/// The samples of a scrape, by name and labels as they are written.
struct Scraped {
    /// Type and help text by the name of the metric.
    metrics: BTreeMap<String, (String, String)>,
    samples: BTreeMap<String, f64>,
}

impl Scraped {
    fn of(answer: &Answer) -> Self {
        let text = String::from_utf8(answer.body.clone()).unwrap();
        assert_eq!(answer.status, 200, "{text}");
        let mut scraped = Self { metrics: BTreeMap::new(), samples: BTreeMap::new() };
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').unwrap();
                let new = (String::new(), help.to_owned());
                assert_eq!(scraped.metrics.insert(name.to_owned(), new), None, "{name} is twice");
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                kind.clone_into(&mut scraped.metrics.get_mut(name).unwrap().0);
            } else if !line.starts_with('#') {
                let (sample, value) = line.rsplit_once(' ').unwrap();
                let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
                assert_eq!(scraped.samples.insert(sample.to_owned(), value), None, "{line}");
            }
        }
        scraped
    }

    fn value(&self, sample: &str) -> f64 {
        let value = self.samples.get(sample);
        *value.unwrap_or_else(|| panic!("no {sample} in {:?}", self.samples.keys()))
    }

    /// The names of the labels of a metric's samples.
    fn labels(&self, metric: &str) -> BTreeSet<String> {
        let parts = ["", "_bucket", "_sum", "_count"].map(|part| format!("{metric}{part}"));
        let samples = self.samples.keys().filter_map(|sample| sample.split_once('{'));
        let samples = samples.filter(|(name, _)| parts.iter().any(|part| part == name));
        let names = samples.flat_map(|(_, labels)| labels.trim_end_matches('}').split("\","));
        let names = names.filter_map(|label| label.split_once('=')).map(|(name, _)| name);
        names.filter(|name| *name != "le").map(str::to_owned).collect()
    }
}

async fn scrape(world: &World) -> Scraped {
    Scraped::of(&world.get("/metrics", &world.admin).await)
}

/// A host trains one hop, whose result is taken.
async fn train(world: &World, token: &str) -> LeaseId {
    let lease = world.lease(token).await;
    let (bytes, report) = trained(&lease, 1);
    assert_eq!(world.upload(token, &lease, &bytes).await.status, 200);
    assert_eq!(world.report(token, &report).await.status, 200);
    let end = world.end(token, lease.id).await;
    assert!(matches!(end, ReportEnd::Assimilated { .. }), "{end:?}");
    lease.id
}

#[tokio::test]
async fn every_metric_has_its_row_in_the_documentation_and_every_row_its_metric() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    assert_eq!(world.submit_with("budget = \"5 USD\"").await.status, 200);
    let host = world.enrol("one").await;
    let lease = world.lease(&host.token).await;
    let scraped = scrape(&world).await;
    let rows = scraped.metrics.iter().map(|(name, (kind, help))| {
        let labels: Vec<String> =
            scraped.labels(name).iter().map(|label| format!("`{label}`")).collect();
        format!("| `{name}` | {kind} | {} | {help} |", labels.join(", ")).replace("|  |", "| |")
    });
    let rows: BTreeSet<String> = rows.collect();
    let described: BTreeSet<String> =
        PAGE.lines().filter(|line| line.starts_with("| `sojourn_")).map(str::to_owned).collect();
    let missing: Vec<&String> = rows.difference(&described).collect();
    let wrong: Vec<&String> = described.difference(&rows).collect();
    assert!(missing.is_empty() && wrong.is_empty(), "missing: {missing:#?}\nwrong: {wrong:#?}");
    assert!(rows.len() > 50, "{rows:?}");
    // No label is of an unbounded number of things.
    for name in scraped.metrics.keys() {
        for label in scraped.labels(name) {
            assert!(
                !["trial", "host", "lease", "path", "token"].contains(&label.as_str()),
                "{name}"
            );
        }
    }
    assert_eq!(scraped.value("sojourn_leases{kind=\"train\",state=\"waiting\"}"), 1.0, "{lease:?}");
    assert_eq!(scraped.value("sojourn_job_budget_dollars{job=\"1\"}"), 5.0);
    world.server.stop().await;
}

#[tokio::test]
async fn counters_go_up_as_hosts_work() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    world.submit().await;
    let host = world.enrol("one").await;
    let before = scrape(&world).await;
    train(&world, &host.token).await;
    let after = scrape(&world).await;
    let more = |sample: &str| after.value(sample) - before.value(sample);
    assert_eq!(more("sojourn_leases_granted_total{kind=\"train\"}"), 1.0);
    assert_eq!(more("sojourn_reports_total"), 1.0);
    assert_eq!(more("sojourn_results_total{outcome=\"taken\"}"), 1.0);
    assert_eq!(more("sojourn_assimilated_results_total"), 1.0);
    assert_eq!(more("sojourn_trained_rows_total"), 10.0);
    assert_eq!(more("sojourn_slot_seconds_total"), 0.001);
    assert_eq!(more("sojourn_checkpoint_uploads_total"), 1.0);
    assert!(more("sojourn_received_bytes_total") > 0.0);
    assert!(more("sojourn_journal_events_total") >= 3.0, "granted, acknowledged, assimilated");
    assert!(more("sojourn_journal_append_duration_seconds_count") >= 1.0);
    assert_eq!(after.value("sojourn_job_hops{job=\"1\"}"), 1.0);
    assert_eq!(after.value("sojourn_hosts{state=\"live\"}"), 1.0);
    assert_eq!(after.value("sojourn_invariant_violations{invariant=\"H1\"}"), 0.0);
    let free = after.value("sojourn_disk_free_bytes{folder=\"data\"}");
    assert!(free > 0.0 && free <= after.value("sojourn_disk_size_bytes{folder=\"data\"}"));
    // Of a request's time the route is said, and never the address.
    let reports = "sojourn_http_request_duration_seconds_count{route=\"/v1/results\",method=\"POST\",status=\"2xx\"}";
    assert_eq!(after.value(reports), 1.0);
    world.get("/v1/nothing-at-all/7", &world.admin).await;
    world.get("/v1/jobs/7", &world.admin).await.refused(ErrorKind::NotFound);
    let last = scrape(&world).await;
    let count = |route: &str, status: &str| {
        last.value(&format!(
            "sojourn_http_request_duration_seconds_count{{route=\"{route}\",method=\"GET\",status=\"{status}\"}}"
        ))
    };
    assert_eq!((count("none", "4xx"), count("/v1/jobs/{job}", "4xx")), (1.0, 1.0));
    assert_eq!(count("/metrics", "2xx"), 2.0, "those before this one");
    world.server.stop().await;
}

#[tokio::test]
async fn a_scraper_gets_the_text_that_it_asks_for_with_a_token_that_may_read() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let grant = serde_json::json!({ "access": { "rights": "read" } });
    let request = serde_json::json!({ "label": "prometheus", "grant": grant });
    let token: NewToken = world.post("/v1/tokens", &world.admin, &request).await.json();
    let answer = world.get("/metrics", &token.secret).await;
    let plain = "text/plain; version=0.0.4; charset=utf-8";
    assert_eq!(answer.header("content-type").as_deref(), Some(plain));
    // As Prometheus asks.
    let accept = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5";
    let headers = [("accept", accept)];
    let answer = send(world.address(), "GET", "/metrics", &token.secret, &headers, b"").await;
    let open = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(answer.header("content-type").as_deref(), Some(open));
    let text = String::from_utf8(answer.body).unwrap();
    assert!(
        text.ends_with("# EOF\n") && text.contains("# TYPE sojourn_reports counter\n"),
        "{text}"
    );
    world.get("/metrics", "").await.refused(ErrorKind::Unauthorized);
    let host = world.enrol("one").await;
    world.work(&host.token, &ask(0)).await;
    world.get("/metrics", &host.token).await.refused(ErrorKind::Unauthorized);
    world.server.stop().await;
}
