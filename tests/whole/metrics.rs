//! The metrics of a real server while a job is trained, as Prometheus scrapes them with a token that may only read.

use crate::{
    http::{HttpClient, poll},
    site::Site,
};
use std::{
    collections::BTreeMap,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

/// Prometheus' own tool, as `make test-deploy` unpacks it; where that wasn't run, the one of this machine, if any.
const PROMTOOL: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/.cache/deploy/debian/usr/bin/promtool");

/// The samples of a scrape by name and labels, and the names of counters and histograms.
struct Scrape {
    samples: BTreeMap<String, f64>,
    rising: Vec<String>,
}

impl Scrape {
    fn of(text: &str) -> Self {
        let mut scrape = Self { samples: BTreeMap::new(), rising: Vec::new() };
        for line in text.lines() {
            if let Some(metric) = line.strip_prefix("# TYPE ") {
                let (name, kind) = metric.split_once(' ').unwrap();
                if kind != "gauge" {
                    scrape.rising.push(name.to_owned());
                }
            } else if !line.starts_with('#') {
                let (sample, value) = line.rsplit_once(' ').unwrap();
                scrape.samples.insert(sample.to_owned(), value.parse().expect(line));
            }
        }
        assert!(scrape.samples.len() > 100, "{text}");
        scrape
    }

    fn value(&self, sample: &str) -> f64 {
        *self.samples.get(sample).unwrap_or_else(|| panic!("no {sample}"))
    }

    /// Samples that can't get smaller while a server runs.
    fn rising(&self) -> impl Iterator<Item = (&String, f64)> {
        let parts = ["", "_bucket", "_sum", "_count"];
        let rises = move |sample: &str| {
            let name = sample.split('{').next().unwrap();
            let named =
                |metric: &String| parts.iter().any(|part| format!("{metric}{part}") == name);
            self.rising.iter().any(named)
        };
        self.samples.iter().filter(move |(sample, _)| rises(sample)).map(|(name, at)| (name, *at))
    }
}

/// The complaints of Prometheus' own tool about a scrape; none where the machine lacks it.
fn complaints(text: &str) -> Option<String> {
    let program = if Path::new(PROMTOOL).exists() { PROMTOOL } else { "promtool" };
    let mut command = Command::new(program);
    command.args(["check", "metrics"]).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut tool = command.spawn().ok()?;
    tool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let said = tool.wait_with_output().unwrap();
    let all = [said.stdout, said.stderr].concat();
    Some(String::from_utf8_lossy(&all).into_owned())
}

#[test]
fn counters_rise_while_a_job_is_trained_and_begin_again_with_a_restart() {
    let mut site = Site::start();
    let token = site.json(&["token", "new", "--name", "prometheus", "--rights", "read"]);
    let prometheus = HttpClient::new(token["secret"].as_str().unwrap(), None);
    let scrape = |site: &Site| {
        let text = poll(|| prometheus.text(&format!("{}/metrics", site.url)));
        let text = text.expect("a server that can be scraped");
        (Scrape::of(&text), text)
    };
    let (before, _) = scrape(&site);
    let job = site.submit(7, 1);
    let _client = site.client("a");
    site.wait(&job, |job| job["state"] == "finished");
    let (after, text) = scrape(&site);
    if let Some(complaints) = complaints(&text) {
        assert_eq!(complaints, "", "of promtool, about\n{text}");
    }
    for (sample, value) in before.rising() {
        assert!(after.value(sample) >= value, "{sample} went down from {value}");
    }
    // Four trials, each with three shards and one evaluation.
    let jobs = after.value("sojourn_jobs{state=\"finished\"}");
    assert_eq!((jobs, after.value("sojourn_trials{state=\"finished\"}")), (1.0, 4.0));
    let train = after.value("sojourn_leases_granted_total{kind=\"train\"}");
    assert!((4.0..=12.0).contains(&train), "{train}: a lease may have several hops");
    assert!(after.value("sojourn_leases_granted_total{kind=\"evaluate\"}") >= 4.0);
    assert!(after.value("sojourn_results_total{outcome=\"taken\"}") >= train);
    assert!(after.value("sojourn_trained_rows_total") > 4.0 * 1_000.0);
    assert!(after.value("sojourn_slot_seconds_total") > 0.0);
    assert!(after.value("sojourn_training_flops") > 0.0);
    assert!(after.value("sojourn_received_bytes_total") > 0.0);
    site.restart();
    let (restarted, _) = scrape(&site);
    assert_eq!(restarted.value("sojourn_reports_total"), 0.0);
    assert_eq!(restarted.value("sojourn_trials{state=\"finished\"}"), 4.0);
    let events = "sojourn_journal_events_total";
    assert!(restarted.value(events) >= after.value(events), "the journal is the same");
}
