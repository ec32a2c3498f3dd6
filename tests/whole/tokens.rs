//! Tokens by the command line: for machines, for users, and the server's own.

use crate::{
    http::poll,
    site::{Process, Site, program, spawn},
};
use serde_json::Value;
use std::{
    fs,
    process::{Command, Output},
};

/// Runs a command with another token than the admin's.
fn with(site: &Site, token: &str, args: &[&str]) -> Output {
    Command::new(program())
        .args(args)
        .env("SOJOURN_SERVER", &site.url)
        .env("SOJOURN_TOKEN", token)
        .output()
        .unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A token that a command prints.
fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", told(output));
    String::from_utf8(output.stdout.clone()).unwrap().trim().to_owned()
}

/// A client that enrols with a token in a file.
fn client(site: &Site, name: &str, token: &str) -> Process {
    let file = site.path().join(format!("{name}.token"));
    fs::write(&file, format!("{token}\n")).unwrap();
    let mut command = Command::new(program());
    command
        .args(["client", "--server", &site.url, "--name", name, "--slots", "1", "--token-file"])
        .arg(file)
        .arg("--data")
        .arg(site.path().join(name))
        .env("SOJOURN_METADATA", "none");
    spawn(command, &site.path().join(format!("{name}.log")))
}

#[test]
fn machines_enrol_with_a_token_of_their_owner_until_it_is_revoked() {
    let site = Site::start();
    let new = ["token", "new", "--hosts", "1", "--for", "7d", "--owner", "lab-3", "--label", "gpu"];
    let token = printed(&site.run(&new));
    let mut first = client(&site, "first", &token);
    let hosts = || site.json(&["hosts"]);
    let host = poll(|| hosts().as_array().unwrap().first().cloned()).expect("it enrols");
    assert_eq!((&host["name"], &host["owner"]), (&"first".into(), &"lab-3".into()));
    let table = String::from_utf8(site.run(&["hosts"]).stdout).unwrap();
    assert!(table.contains("OWNER") && table.contains("lab-3"), "{table}");

    // It was for one machine.
    let mut second = client(&site, "second", &token);
    assert_eq!(second.wait(), Some(2));
    let log = fs::read_to_string(site.path().join("second.log")).unwrap();
    assert!(log.contains("token 1 was for one host, which has enrolled"), "{log}");

    let tokens = site.json(&["token", "list"]);
    assert_eq!((&tokens[0]["state"], &tokens[0]["label"]), (&"used".into(), &"gpu".into()));
    let listed = String::from_utf8(site.run(&["token", "list"]).stdout).unwrap();
    assert!(listed.contains("1/1") && !listed.contains(&token), "{listed}");
    let revoked = String::from_utf8(site.run(&["token", "revoke", "1"]).stdout).unwrap();
    assert_eq!(revoked, "token 1 is revoked, and the machine that had enrolled with it\n");
    assert_eq!(first.wait(), Some(2), "it hears that it may not work any more");
    let log = fs::read_to_string(site.path().join("first.log")).unwrap();
    assert!(log.contains("revoked") && !log.contains("the server is away"), "{log}");
    assert_eq!(hosts()[0]["state"], "revoked");
}

#[test]
fn a_user_may_do_what_the_rights_of_the_token_say() {
    let site = Site::start();
    let make =
        |rights: &str| printed(&site.run(&["token", "new", "--name", "alice", "--rights", rights]));
    let (read, submit) = (make("read"), make("submit"));
    assert!(with(&site, &read, &["jobs"]).status.success());
    assert!(with(&site, &read, &["hosts"]).status.success());
    let refused = with(&site, &read, &["cancel", "1"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(told(&refused).contains("the right to `submit`"), "{}", told(&refused));
    let missing = with(&site, &submit, &["cancel", "1"]);
    assert!(told(&missing).contains("no job 1"), "{}", told(&missing));
    assert!(told(&with(&site, &submit, &["token", "list"])).contains("`administer`"));

    let rotated = printed(&site.run(&["token", "rotate", "1"]));
    assert!(!with(&site, &read, &["jobs"]).status.success());
    assert!(with(&site, &rotated, &["jobs"]).status.success());
    assert!(site.run(&["token", "revoke", "1"]).status.success());
    let refused = with(&site, &rotated, &["jobs"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(told(&refused).contains("unknown or was revoked"), "{}", told(&refused));

    let own = site.run(&["token", "revoke", "admin"]);
    assert!(told(&own).contains("`sojourn token rotate admin`"), "{}", told(&own));
    let admin = site.run(&["token", "rotate", "admin"]);
    assert!(told(&admin).contains("the file `admin-token`"), "{}", told(&admin));
    let admin = printed(&admin);
    assert!(!site.run(&["jobs"]).status.success(), "the one before opens nothing");
    assert!(with(&site, &admin, &["jobs"]).status.success());
    let file = fs::read_to_string(site.data().join("admin-token")).unwrap();
    assert_eq!(file.trim(), admin, "commands on the server's machine go on");
}

#[test]
fn a_job_is_shared_by_a_link_that_is_no_users_token() {
    let site = Site::start();
    let job = site.submit(7, 1);
    let link = printed(&site.run(&["share", &job, "--for", "7d", "--label", "reviewers"]));
    let secret = link.strip_prefix(&format!("{}/share#", site.url)).expect(&link);
    let refused = with(&site, secret, &["jobs"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(told(&refused).contains("a link to a job's page"), "{}", told(&refused));
    let listed = String::from_utf8(site.run(&["token", "list"]).stdout).unwrap();
    assert!(listed.contains("page of job 1") && listed.contains("reviewers"), "{listed}");
    assert!(site.run(&["token", "revoke", "1"]).status.success());
    let events = String::from_utf8(site.run(&["events", &job]).stdout).unwrap();
    assert!(events.contains("the server's own token made link 1"), "{events}");
    assert!(events.contains("the server's own token revoked link 1"), "{events}");
    let missing = site.run(&["share", "9"]);
    assert!(told(&missing).contains("no job 9"), "{}", told(&missing));
}

#[test]
fn secrets_are_taken_from_files_and_one_on_the_command_line_draws_a_warning() {
    let site = Site::start();
    let file = site.data().join("admin-token");
    let token = fs::read_to_string(&file).unwrap();
    let jobs = |args: &[&str]| -> Output {
        let mut command = Command::new(program());
        command.args(["jobs", "--json", "--server", &site.url]).args(args);
        command.env_remove("SOJOURN_TOKEN").output().unwrap()
    };
    let by_file = jobs(&["--token-file", file.to_str().unwrap()]);
    assert!(by_file.status.success() && by_file.stderr.is_empty(), "{}", told(&by_file));
    assert_eq!(serde_json::from_slice::<Value>(&by_file.stdout).unwrap(), serde_json::json!([]));
    let by_flag = jobs(&["--token", token.trim()]);
    assert!(by_flag.status.success());
    assert_eq!(told(&by_flag).lines().count(), 1);
    assert!(told(&by_flag).starts_with("warning: every user of this machine can read a secret"));
    let missing = jobs(&["--token-file", "/nowhere/token"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(told(&missing).contains("`/nowhere/token`"), "{}", told(&missing));
    let long = "x".repeat(5_000);
    let long = site.run(&["token", "new", "--owner", &long]);
    assert!(long.stderr.len() < 500, "{}", told(&long));
    for args in [
        &["token", "new", "--hosts", "0"][..],
        &["token", "new", "--for", "0s"],
        &["token", "new", "--for", "2y"],
        &["token", "new", "--name", "alice"],
        &["token", "new", "--owner", " a"],
        &["token", "rotate", "root"],
    ] {
        assert_eq!(site.run(args).status.code(), Some(2), "{args:?}");
    }
}
