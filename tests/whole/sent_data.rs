//! Jobs over data that the page's addresses take: what they become is what `sojourn submit` makes, and data at URLs is fetched only
//! where the operator allows it.

use crate::{
    http::{HttpClient, poll},
    site::Site,
    support::{Answer, FakeServer},
};
use serde_json::Value;
use std::fs;

const JOB: &str = "name = \"sent\"\n[data]\ntrain = \"rows.csv\"\nlabel = \"y\"\nvalid = 0.2\nshards = 3\n[[model]]\n\
                   arch = \"mlp\"\nhidden = [4]\n[training]\nepochs = 1\n";

fn rows() -> String {
    let rows = (0..200).map(|row| format!("{row},{}\n", row % 2)).collect::<String>();
    format!("x,y\n{rows}")
}

/// Sends files and a job file; what is shown at the end.
fn send(site: &Site, files: &[(&str, &str)], job: &str) -> String {
    let files: Vec<(&str, &[u8])> =
        files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    send_bytes(site, &files, job)
}

fn send_bytes(site: &Site, files: &[(&str, &[u8])], job: &str) -> String {
    let http = HttpClient::new(&site.token, None);
    let upload = upload(site, &http, files);
    submit(site, &http, &upload, job)
}

/// Sends files: the address of their upload.
fn upload(site: &Site, http: &HttpClient, files: &[(&str, &[u8])]) -> String {
    let data = format!("{}/jobs/new/data", site.url);
    let upload = http.send_body("POST", &data, "");
    let upload = format!("{data}/{upload}");
    for (name, bytes) in files {
        http.send_body("PUT", &format!("{upload}?name={name}"), bytes);
    }
    upload
}

/// Sends the job file for an upload; what is shown at the end.
fn submit(site: &Site, http: &HttpClient, upload: &str, job: &str) -> String {
    let form: String = job.bytes().map(|byte| format!("%{byte:02x}")).collect();
    http.send_body("POST", upload, format!("text={form}"));
    ended(site, http, upload)
}

fn ended(site: &Site, http: &HttpClient, upload: &str) -> String {
    let ended = || http.text(upload).filter(|shown| !shown.contains("data-making"));
    poll(ended).unwrap_or_else(|| panic!("{}", site.log("server")))
}

/// The number of the job that was made.
fn made(shown: &str) -> &str {
    let (_, rest) = shown.split_once("href=\"/jobs/").unwrap_or_else(|| panic!("{shown}"));
    rest.split_once('"').unwrap().0
}

#[test]
fn a_job_over_files_that_were_sent_is_the_one_that_submit_makes() {
    let site = Site::start();
    fs::write(site.path().join("job.toml"), JOB).unwrap();
    fs::write(site.path().join("rows.csv"), rows()).unwrap();
    let submitted = site.json(&["submit", "job.toml"])["job"].to_string();
    let shown = send(&site, &[("rows.csv", &rows())], JOB);
    assert_eq!(made(&shown), submitted, "{shown}");
    let other = JOB.replace("epochs = 1", "epochs = 2").replace("\"sent\"", "\"other\"");
    let shown = send(&site, &[("rows.csv", &rows())], &other);
    let data = |job: &str| -> Value { site.get(&format!("jobs/{job}"))["data"].clone() };
    assert_ne!(made(&shown), submitted);
    assert_eq!(data(made(&shown)), data(&submitted));
    // What is wrong with the data is said by the reader.
    let shown = send(&site, &[("rows.csv", "x,y\n1,0\nonly one\n")], JOB);
    assert!(shown.contains("rows.csv") && shown.contains("1 problem"), "{shown}");
    assert!(!shown.contains("href=\"/jobs/"), "{shown}");
}

#[test]
fn a_job_file_for_files_that_were_sent_is_the_one_that_init_writes() {
    let site = Site::start();
    let rows = (0..200).map(|row| format!("{},{}\n", row % 7, row % 2)).collect::<String>();
    let rows = format!("x,y\n{rows}");
    fs::write(site.path().join("rows.csv"), &rows).unwrap();
    site.run(&["init", "rows.csv", "--yes"]);
    let written = fs::read_to_string(site.path().join("job.toml")).unwrap();
    let http = HttpClient::new(&site.token, None);
    let upload = upload(&site, &http, &[("rows.csv", rows.as_bytes())]);
    http.send_body("POST", &format!("{upload}/draft"), "data=rows.csv");
    let shown = ended(&site, &http, &upload);
    let (_, text) = shown.split_once("data-text=\"").unwrap_or_else(|| panic!("{shown}"));
    let text = text.split('"').next().unwrap();
    let text = text.replace("&quot;", "\"").replace("&gt;", ">").replace("&lt;", "<");
    assert_eq!(text.replace("&amp;", "&"), written);
    // It makes the job that `submit` makes of it.
    let submitted = site.json(&["submit", "job.toml"])["job"].to_string();
    let shown = submit(&site, &http, &upload, &written);
    assert_eq!(made(&shown), submitted, "{shown}");
}

#[test]
fn no_hop_of_a_redirect_leads_to_where_the_operator_allows_nothing() {
    let inner = FakeServer::start(|_| Answer::json(200, rows()));
    let secret = format!("{}/latest/meta-data/", inner.url);
    let store = FakeServer::start(move |_| {
        let headers = format!("location: {secret}\r\n");
        Answer { status: 302, headers, body: Vec::new() }
    });
    let allowed = format!("{}/sets/", store.url);
    let folder = tempfile::tempdir().unwrap();
    let site = Site::start_in(folder, vec!["--data-urls".to_owned(), allowed.clone()]);
    let shown = send(&site, &[], &JOB.replace("rows.csv", &format!("{allowed}rows.csv")));
    assert!(shown.contains("may not be fetched"), "{shown}");
    assert_eq!((store.lines().len(), inner.lines().len()), (1, 0));
}

#[test]
fn a_few_packed_bytes_become_no_more_than_may_be_sent() {
    let bomb = format!("x,y\n{}", "0,0\n0,1\n".repeat(200_000));
    let bomb = zstd::stream::encode_all(bomb.as_bytes(), 3).unwrap();
    assert!(bomb.len() < 10_000, "{}", bomb.len());
    let folder = tempfile::tempdir().unwrap();
    let site = Site::start_in(folder, vec!["--max-data-uploads".to_owned(), "100kB".to_owned()]);
    let job = JOB.replace("rows.csv", "rows.csv.zst");
    let shown = send_bytes(&site, &[("rows.csv.zst", &bomb)], &job);
    assert!(
        shown.contains("more than 819200 bytes") || shown.contains("more than 800000 bytes"),
        "{shown}"
    );
    assert!(!shown.contains("href=\"/jobs/"), "{shown}");
}

#[test]
fn data_at_a_url_is_fetched_where_the_operator_allows_it() {
    let store = FakeServer::start(|_| Answer::json(200, rows()));
    let allowed = format!("{}/sets/", store.url);
    let folder = tempfile::tempdir().unwrap();
    let site = Site::start_in(folder, vec!["--data-urls".to_owned(), allowed.clone()]);
    let at = |url: &str| JOB.replace("rows.csv", url);
    let shown = send(&site, &[], &at(&format!("{allowed}rows.csv")));
    let job = site.get(&format!("jobs/{}", made(&shown)));
    assert_eq!(job["data"]["train"].as_array().unwrap().len(), 3, "{job}");
    assert_eq!(store.lines(), ["GET /sets/rows.csv"]);
    let http = HttpClient::new(&site.token, None);
    for elsewhere in [format!("{}/rows.csv", store.url), format!("{allowed}../rows.csv")] {
        let data = format!("{}/jobs/new/data", site.url);
        let upload = format!("{data}/{}", http.send_body("POST", &data, ""));
        let form: String = at(&elsewhere).bytes().map(|byte| format!("%{byte:02x}")).collect();
        let shown = http.send_body("POST", &upload, format!("text={form}"));
        assert!(shown.contains("may not fetch") && shown.contains("--data-urls"), "{shown}");
    }
    assert_eq!(store.lines().len(), 1, "{:?}", store.lines());
}
