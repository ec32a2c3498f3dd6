//! Logs as JSON lines, where each unit's trace is found in all programs, and the spans of traces at a collector of OpenTelemetry.

use crate::{
    http::poll,
    site::{Process, Site},
    support::{Answer, FakeServer},
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::any_value::Value as Attribute,
    trace::v1::{ResourceSpans, Span},
};
use prost::Message as _;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::TcpListener,
};

/// The messages that a client logs about each unit whose result is used.
const OF_CLIENT: [&str; 5] =
    ["lease taken", "unit started", "unit finished", "checkpoint uploaded", "result acknowledged"];
/// The same of a server.
const OF_SERVER: [&str; 4] =
    ["lease granted", RECEIVED, "result acknowledged", "assimilation offered"];
/// A checkpoint came, whole or as a delta.
const RECEIVED: &str = "checkpoint received";
/// The same of whoever assimilates.
const OF_ASSIMILATOR: [&str; 4] =
    ["unit taken", "upload read and checked", "version published", "assimilation ended"];
const JSON: [&str; 2] = ["--log-format", "json"];

/// The messages of a log, by lease and trace.
type Units = BTreeMap<(u64, String), BTreeSet<String>>;

/// Every line of a log as JSON. The server says on stdout where it is.
fn lines(site: &Site, name: &str) -> Vec<Value> {
    let log = site.log(name);
    let on_stdout = ["serving at ", "a machine joins with: ", "the admin token is in "];
    let lines = log.lines().filter(|line| !on_stdout.iter().any(|begin| line.starts_with(begin)));
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: `{line}`"));
    lines.map(parse).collect()
}

fn units(lines: &[Value]) -> Units {
    let mut units = Units::new();
    for line in lines.iter().filter(|line| line["target"] == "sojourn_unit") {
        let trace = line["span"]["trace_id"].as_str();
        let trace = trace.unwrap_or_else(|| panic!("a unit's line is of no trace: {line}"));
        assert_eq!(trace.len(), 32, "{line}");
        let Some(lease) = line["fields"]["lease"].as_u64() else { continue };
        let message = match line["fields"]["message"].as_str().unwrap() {
            "delta received" => RECEIVED.to_owned(),
            message => message.to_owned(),
        };
        units.entry((lease, trace.to_owned())).or_default().insert(message);
    }
    units
}

/// Every result that was used is found, under one id, in the logs of these.
fn check(client: &Units, server: &Units, assimilator: &Units) {
    let assimilated: Vec<_> = assimilator
        .iter()
        .filter(|(_, said)| said.contains("assimilation ended"))
        .map(|(unit, _)| unit)
        .collect();
    assert!(assimilated.len() >= 12, "four trials of three shards: {assimilator:?}");
    let all = [(client, &OF_CLIENT[..]), (server, &OF_SERVER), (assimilator, &OF_ASSIMILATOR)];
    for unit in assimilated {
        for (said, expected) in all {
            let said = said.get(unit).cloned().unwrap_or_default();
            let is_missing = |message: &&&str| !said.contains(**message);
            let missing: Vec<_> = expected.iter().filter(is_missing).collect();
            assert!(missing.is_empty(), "of {unit:?} there is no {missing:?}, but {said:?}");
        }
    }
}

fn args(of: &[&str]) -> Vec<String> {
    of.iter().map(|word| (*word).to_owned()).collect()
}

fn end(process: &mut Process) {
    assert_eq!(process.end(), Some(0));
}

#[test]
fn one_id_is_in_the_logs_of_client_and_server_from_the_grant_to_the_version() {
    let mut site = Site::start_in(tempfile::tempdir().unwrap(), args(&JSON));
    let mut client = site.client_with("a", &JSON);
    let job = site.submit(3, 1);
    site.wait(&job, |view| view["state"] == "finished");
    end(&mut client);
    end(&mut site.server);
    let client = lines(&site, "a");
    let server = units(&lines(&site, "server"));
    check(&units(&client), &server, &server);
    // The client's own files say the same.
    let files = fs::read_dir(site.path().join("a/log")).unwrap();
    let kept: String =
        files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    let kept: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    check(&units(&kept), &server, &server);
}

#[test]
fn the_id_is_in_the_log_of_an_assimilator_of_another_process_too() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = format!("file://{}/store", folder.path().display());
    let without = ["--assimilators", "0", "--blobs", &blobs];
    let mut site = Site::start_in(folder, args(&[&without[..], &JSON].concat()));
    let mut client = site.client_with("a", &JSON);
    let mut assimilator = site.assimilator_with("assimilator", &JSON);
    let job = site.submit(3, 1);
    site.wait(&job, |view| view["state"] == "finished");
    for process in [&mut client, &mut assimilator, &mut site.server] {
        end(process);
    }
    let [client, server, assimilator] =
        ["a", "server", "assimilator"].map(|name| units(&lines(&site, name)));
    check(&client, &server, &assimilator);
}

/// A collector, and what it was sent.
struct Collector(FakeServer);

/// A span, and the service that it is of.
type Found = (String, Span);

impl Collector {
    fn start() -> Self {
        Self(FakeServer::start(|_| Answer { headers: String::new(), ..Answer::json(200, "") }))
    }

    fn spans(&self) -> Vec<Found> {
        let requests = self.0.requests.lock().unwrap();
        let of_request = |request: &crate::support::Request| {
            assert_eq!(request.line, "POST /v1/traces");
            assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
            ExportTraceServiceRequest::decode(&*request.body).unwrap().resource_spans
        };
        requests.iter().flat_map(of_request).flat_map(spans_of).collect()
    }
}

fn spans_of(resource: ResourceSpans) -> Vec<Found> {
    let attributes = resource.resource.unwrap().attributes;
    let name = attributes.into_iter().find(|attribute| attribute.key == "service.name");
    let Some(Attribute::StringValue(service)) = name.unwrap().value.unwrap().value else {
        panic!("the name of a service is no text")
    };
    let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
    spans.map(|span| (service.clone(), span)).collect()
}

/// The spans of each unit's trace: services and names, the causes first.
const SPANS: [(&str, &str, Option<&str>); 9] = [
    ("sojourn-client", "ask for work", None),
    ("sojourn-server", "POST /v1/work", Some("ask for work")),
    ("sojourn-client", "unit", Some("ask for work")),
    ("sojourn-client", "train", Some("unit")),
    ("sojourn-client", "upload", Some("unit")),
    ("sojourn-server", "PUT /v1/leases/{lease}/checkpoint", Some("upload")),
    ("sojourn-client", "report", Some("unit")),
    ("sojourn-server", "POST /v1/results", Some("report")),
    ("sojourn-server", "assimilate", Some("POST /v1/results")),
];

#[test]
fn a_collector_is_sent_the_spans_of_client_and_server() {
    let collector = Collector::start();
    let otlp = ["--otlp", &collector.0.url];
    let mut site = Site::start_in(tempfile::tempdir().unwrap(), args(&otlp));
    let mut client = site.client_with("a", &otlp);
    let job = site.submit(3, 1);
    site.wait(&job, |view| view["state"] == "finished");
    // The last spans are sent when the programs end.
    end(&mut client);
    end(&mut site.server);
    let spans = collector.spans();
    let assimilated: Vec<_> = spans.iter().filter(|(_, span)| span.name == "assimilate").collect();
    assert!(assimilated.len() >= 12, "four trials of three shards: {}", assimilated.len());
    for (_, last) in assimilated {
        let of_trace = |(_, span): &&Found| span.trace_id == last.trace_id;
        let trace: Vec<_> = spans.iter().filter(of_trace).collect();
        for (service, name, parent) in SPANS {
            // A checkpoint also comes as a delta, at an address below.
            let is_it = |(of, span): &&&Found| {
                of == service && span.name.trim_end_matches("/delta") == name
            };
            let found = trace.iter().find(is_it);
            let (_, span) = found.unwrap_or_else(|| panic!("no `{name}` of {service}: {trace:?}"));
            assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{span:?}");
            let above = trace.iter().find(|(_, above)| above.span_id == span.parent_span_id);
            assert_eq!(above.map(|(_, above)| above.name.as_str()), parent, "above `{name}`");
        }
    }
    // Nobody hears more on stderr than without it.
    for name in ["a", "server"] {
        let log = site.log(name);
        assert!(!log.contains("trace_id") && !log.contains("traces"), "{log}");
    }
}

#[test]
fn a_collector_that_is_away_or_hangs_changes_nothing() {
    // Nobody listens there any more.
    let away = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    // The system takes connections, and nobody answers.
    let hanging = TcpListener::bind("127.0.0.1:0").unwrap();
    let url_of = |address| format!("http://{address}");
    let (away, hangs) = (url_of(away), url_of(hanging.local_addr().unwrap()));
    for url in [away.as_str(), hangs.as_str()] {
        let otlp = ["--otlp", url];
        let mut site = Site::start_in(tempfile::tempdir().unwrap(), args(&otlp));
        let mut client = site.client_with("a", &otlp);
        let job = site.submit(3, 1);
        site.wait(&job, |view| view["state"] == "finished");
        let replayed = site.json(&["replay", &job, "--trial", "0"]);
        assert_eq!(replayed["verdict"], "identical", "{replayed}");
        if url == away {
            for name in ["a", "server"] {
                let log = || site.log(name);
                let said = || log().contains("traces can't be exported").then_some(());
                assert!(poll(said).is_some(), "{}", log());
            }
        }
        end(&mut client);
        end(&mut site.server);
    }
}

#[test]
fn an_address_that_is_none_is_refused() {
    let ended = crate::support::sojourn(&["serve", "--otlp", "localhost"]).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("no traces can be exported: it is no address"), "{said}");
}
