//! `sojourn client ctl` with a running client.

use crate::{
    http::poll,
    parts::submit,
    site::{Process, Site, program},
};
use serde_json::Value;
use sojourn_client::control::{Answer, Ask, call};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

pub(crate) const NAME: &str = "owned";

/// A client at a job of many short hops.
pub(crate) struct Owned {
    pub(crate) site: Site,
    pub(crate) client: Process,
}

impl Owned {
    pub(crate) fn start() -> Self {
        let site = Site::start();
        submit(&site, 1000, 400);
        let client = site.client(NAME);
        let owned = Self { site, client };
        owned.until("its work", |status| status["units"][0]["state"]["running"].is_object());
        owned
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.site.path().join(NAME)
    }

    fn ctl(&self, args: &[&str]) -> Output {
        let data = self.data();
        self.site.run(&[&["client", "ctl", "--data", data.to_str().unwrap()], args].concat())
    }

    /// The output of a call, which must succeed.
    fn text(&self, args: &[&str]) -> String {
        let output = self.ctl(args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {error}\n{}", self.site.log(NAME));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.text(&[args, &["--json"]].concat())).unwrap()
    }

    /// Asks the client until it is so.
    fn until(&self, what: &str, so: impl Fn(&Value) -> bool) -> Value {
        let status = || status(&self.data());
        poll(|| Some(status()).filter(&so)).unwrap_or_else(|| {
            panic!("waited in vain for {what}: {}\n{}", status(), self.site.log(NAME))
        })
    }
}

/// The status of the client in a folder, as `ctl status --json` prints it; null where it doesn't listen yet.
pub(crate) fn status(data: &Path) -> Value {
    match call(data, &Ask::Status) {
        Ok(Answer::Status(status)) => serde_json::to_value(status).unwrap(),
        _ => Value::Null,
    }
}

#[test]
fn an_owner_pauses_resumes_limits_and_drains_a_client() {
    let mut owned = Owned::start();
    let status = owned.json(&["status"]);
    assert_eq!((&status["server"], &status["slots"]), (&owned.site.url.as_str().into(), &1.into()));
    assert!(owned.text(&["status"]).contains("on cpu, computing\n"));

    assert!(owned.text(&["pause", "--for", "1d"]).contains("paused: paused by hand, until 2"));
    assert_eq!(owned.json(&["status"])["paused"]["reason"], "owner");
    assert!(owned.json(&["resume"])["paused"].is_null());
    owned.until("work after the pause", |status| status["pace"] == 100);

    assert_eq!(owned.text(&["limits", "cpu=50"]), "cpu=50\nslots=1\n");
    assert_eq!(owned.json(&["limits"])["limits"]["cpu"], "50");
    owned.until("the limit", |status| status["pace"] == 50);
    let file = fs::read_to_string(owned.data().join("client.toml")).unwrap();
    assert_eq!(file, "[limits]\ncpu = 50\n");
    let wrong = owned.ctl(&["limits", "cpu=500"]);
    assert_eq!(wrong.status.code(), Some(2));
    owned.text(&["limits", "cpu="]);

    let cache = owned.json(&["cache"]);
    assert!(cache["used"].as_u64().unwrap() > 0 && cache["shards"] == 1, "{cache}");
    owned.text(&["cache", "clear"]);

    assert!(owned.text(&["log"]).contains("INFO client started "));
    let data = owned.data();
    let mut follow = Command::new(program());
    follow.args(["client", "ctl", "log", "--follow", "--data"]).arg(&data);
    let follow = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert!(owned.text(&["drain"]).contains("ends once what runs has ended"));
    assert_eq!(owned.client.wait(), Some(0), "{}", owned.site.log(NAME));
    assert!(!data.join("control.sock").exists());
    let followed = follow.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&followed.stdout);
    assert_eq!(followed.status.code(), Some(0));
    assert_eq!(said.matches("INFO client stopped").count(), 1, "{said}");
    let nobody = owned.ctl(&["status"]);
    assert_eq!(nobody.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("no client runs on the data folder"));
}

#[test]
fn a_client_that_lends_too_little_disk_says_so_and_one_that_was_stopped_is_gone_at_once() {
    let site = Site::start();
    let job = site.submit(5, 1);
    let jobs = || String::from_utf8(site.run(&["jobs"]).stdout).unwrap();
    let no_host =
        format!("job {job} waits: no host is in contact; start one with `sojourn client`");
    assert!(jobs().contains(&no_host), "{}", jobs());

    let mut client = site.client_with(NAME, &["--cache", "0"]);
    let owned = site.path().join(NAME);
    let reason = poll(|| status(&owned)["waiting"].as_str().map(str::to_owned)).expect("a reason");
    assert!(reason.contains("lends too little disk for any unit"), "{reason}");
    assert!(site.log(NAME).contains("none for this machine"), "{}", site.log(NAME));
    let hosts = || String::from_utf8(site.run(&["hosts"]).stdout).unwrap();
    assert!(hosts().contains(&format!("host 1 is given nothing: {reason}")), "{}", hosts());
    assert!(jobs().contains("no host in contact lends the disk for it"), "{}", jobs());

    assert_eq!(client.end(), Some(0), "{}", site.log(NAME));
    assert!(hosts().lines().nth(1).unwrap().contains(" gone "), "{}", hosts());
    assert!(jobs().contains(&no_host), "{}", jobs());

    // A second client in a folder that is in use says how to have more.
    client = site.client(NAME);
    poll(|| status(&owned)["slots"].is_u64().then_some(())).expect("it runs");
    let twice = Command::new(program())
        .args(["client", "--server", &site.url, "--data"])
        .arg(&owned)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&twice.stderr);
    assert_eq!(twice.status.code(), Some(2), "{said}");
    assert!(said.contains("more `--slots`") && said.contains("`--data DIR`"), "{said}");
    assert_eq!(client.end(), Some(0), "{}", site.log(NAME));
}

#[test]
fn the_log_continues_after_a_killed_run() {
    let mut owned = Owned::start();
    owned.client.kill();
    // Its log can still be read, by people and by programs.
    assert!(owned.text(&["log"]).contains("INFO client started "));
    let lines = owned.text(&["log", "--json", "-n", "1"]);
    let line: Value = serde_json::from_str(&lines).unwrap();
    assert!(line["fields"]["message"].is_string(), "{line}");

    owned.client = owned.site.client(NAME);
    let starts = |text: &str| text.matches("INFO client started").count();
    owned.until("its next start", |status| status["slots"] == 1);
    assert_eq!(starts(&owned.text(&["log"])), 2);
    // The folder is gone, and the client doesn't mind.
    fs::remove_dir_all(owned.data().join("log")).unwrap();
    owned.text(&["pause"]);
    owned.text(&["resume"]);
    owned.until("work after the pause", |status| status["pace"] == 100);
    assert_eq!(owned.client.end(), Some(0), "{}", owned.site.log(NAME));
    let text = owned.text(&["log"]);
    assert!(text.contains("work pauses reason=\"paused by hand\""), "{text}");
    assert!(text.contains("client stopped"), "{text}");
    assert_eq!(starts(&text), 0);

    let client = owned.site.client_with(NAME, &["--log-file", "none"]);
    owned.client = client;
    owned.until("its third start", |status| status["slots"] == 1);
    assert_eq!(starts(&owned.text(&["log"])), 1, "from memory");
    assert_eq!(owned.client.end(), Some(0), "{}", owned.site.log(NAME));
    assert_eq!(starts(&owned.text(&["log"])), 0, "it has written nothing");

    // Why it couldn't begin is there too.
    owned.client = owned.site.client_with(NAME, &["--trainer", "/bin/false"]);
    assert_eq!(owned.client.wait(), Some(1));
    assert!(owned.text(&["log", "-n", "1"]).contains("ERROR the client has ended error="));
}
