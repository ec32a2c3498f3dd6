//! An owner's word holds over restarts, a clock's hours are those of a known time zone, and a copied identity disturbs nobody.

use crate::{
    ctl::{NAME, Owned, status},
    http::poll,
    site::{Process, Site, program, spawn},
    support::script,
};
use serde_json::Value;
use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

fn ctl(site: &Site, data: &Path, args: &[&str]) -> Output {
    site.run(&[&["client", "ctl", "--data", data.to_str().unwrap()], args].concat())
}

/// The output of a call, which must succeed.
fn text(site: &Site, data: &Path, args: &[&str]) -> String {
    let output = ctl(site, data, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Asks the client in a folder until it is so.
fn until(site: &Site, name: &str, what: &str, so: impl Fn(&Value) -> bool) -> Value {
    let data = site.path().join(name);
    let found = poll(|| Some(status(&data)).filter(&so));
    found.unwrap_or_else(|| {
        panic!("waited in vain for {what}: {}\n{}", status(&data), site.log(name))
    })
}

/// A client with these variables, and no token.
fn client_in(site: &Site, name: &str, environment: &[(&str, &str)]) -> Process {
    let mut command = Command::new(program());
    command.args(["client", "--server", &site.url, "--slots", "1", "--data"]);
    command.arg(site.path().join(name)).env("SOJOURN_METADATA", "none");
    command.envs(environment.iter().copied());
    spawn(command, &site.path().join(format!("{name}.log")))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in ["identity.json", "stores.json", "machine.json", "owner.json"] {
        if from.join(file).exists() {
            fs::copy(from.join(file), to.join(file)).unwrap();
        }
    }
}

#[test]
fn a_pause_outlives_restarts_and_kills_until_it_is_over_or_taken_back() {
    let mut owned = Owned::start();
    let data = owned.data();
    for (how, is_killed) in [
        (&["pause"][..], false),
        (&["pause"], true),
        (&["pause", "--for", "2h"], false),
        (&["pause", "--for", "2h"], true),
    ] {
        let before = owned.json(how);
        let paused = &before["paused"];
        assert_eq!(paused["reason"], "owner", "{before}");
        assert_eq!(paused["until"].is_u64(), how.len() > 1, "{before}");
        if is_killed {
            owned.client.kill();
        } else {
            assert_eq!(owned.client.end(), Some(0), "{}", owned.site.log(NAME));
        }
        owned.client = owned.site.client(NAME);
        let after = until(&owned.site, NAME, "its next start", |status| status["pace"].is_u64());
        assert_eq!((&after["pace"], &after["paused"]["reason"]), (&0.into(), &"owner".into()));
        // To the second, as the clock of the machine goes on.
        let minutes =
            |status: &Value| status["paused"]["until"].as_u64().map(|until| until / 60_000);
        if let (Some(before), Some(after)) = (minutes(&before), minutes(&after)) {
            assert!(before.abs_diff(after) <= 1, "{before} {after}");
        }
        owned.site.logged(NAME, "paused from before this start");
        let said = text(&owned.site, &data, &["status"]);
        assert_eq!(said.contains("paused: paused by hand, until 2"), how.len() > 1, "{said}");
        assert!(owned.json(&["resume"])["paused"].is_null());
        until(&owned.site, NAME, "work after the pause", |status| status["pace"] == 100);
    }
    // What was taken back stays taken back.
    owned.client.kill();
    owned.client = owned.site.client(NAME);
    until(&owned.site, NAME, "work after a restart", |status| status["pace"] == 100);
    // Nobody knows what a damaged file said.
    owned.client.kill();
    fs::write(data.join("owner.json"), "{\"format\":1,").unwrap();
    owned.client = owned.site.client(NAME);
    let unknown = until(&owned.site, NAME, "its next start", |status| status["pace"].is_u64());
    assert_eq!(unknown["paused"]["reason"], "commands_unknown", "{unknown}");
    let said = text(&owned.site, &data, &["status"]);
    assert!(said.contains("`owner.json` can't be read"), "{said}");
    assert!(owned.json(&["resume"])["paused"].is_null());
}

#[test]
fn limits_and_a_drain_that_the_owner_has_said_hold_over_flags_and_kills() {
    let mut owned = Owned::start();
    owned.client.kill();
    let again = |owned: &mut Owned| {
        owned.client = owned.site.client_with(NAME, &["--limit", "cpu=60"]);
        until(&owned.site, NAME, "its start", |status| status["units"].is_array());
    };
    again(&mut owned);
    assert_eq!(owned.json(&["limits"])["limits"]["cpu"], "60");
    owned.json(&["limits", "cpu=40"]);
    owned.client.kill();
    // The service gives its flags again.
    again(&mut owned);
    assert_eq!(owned.json(&["limits"])["limits"]["cpu"], "40");
    owned.site.logged(NAME, "the owner has replaced this limit of a flag");

    // A client that was killed while it drained goes on with that.
    owned.client.kill();
    fs::write(owned.data().join("owner.json"), "{\"format\":1,\"drain\":true}").unwrap();
    owned.client = owned.site.client(NAME);
    assert_eq!(owned.client.wait(), Some(0), "{}", owned.site.log(NAME));
    owned.site.logged(NAME, "draining from before this start");
    // It is drained: the next start works.
    owned.client = owned.site.client(NAME);
    let works = until(&owned.site, NAME, "work", |status| {
        status["units"][0]["state"]["running"].is_object()
    });
    assert_eq!(works["draining"], false);
}

#[test]
fn hours_without_a_known_time_zone_compute_nothing_until_the_owner_names_it() {
    let site = Site::start();
    site.submit(5, 200);
    let data = site.path().join("zoned");
    fs::create_dir_all(&data).unwrap();
    let file = data.join("client.toml");
    fs::write(&file, "[limits]\nhours = '00:00-24:00'\n").unwrap();
    let token = ("SOJOURN_ENROL_TOKEN", site.enrolment.as_str());
    let misspelt = [token, ("TZ", "Europe/Berlim")];
    let mut client = client_in(&site, "zoned", &misspelt);
    let paused = until(&site, "zoned", "a pause", |status| {
        status["paused"].is_object() && status["unknown"].is_array()
    });
    assert_eq!(paused["paused"]["reason"], serde_json::json!({ "unknown": "time_zone" }));
    assert_eq!(paused["unknown"][0]["fact"], "time_zone");
    let said = text(&site, &data, &["status"]);
    assert!(said.contains("time zone isn't known") && said.contains("timezone = "), "{said}");
    site.logged("zoned", "the machine's time zone isn't known");
    assert_eq!(client.end(), Some(0), "{}", site.log("zoned"));

    fs::write(&file, "timezone = 'UTC'\n[limits]\nhours = '00:00-24:00'\n").unwrap();
    client = client_in(&site, "zoned", &misspelt);
    until(&site, "zoned", "work", |status| status["pace"] == 100);
    assert_eq!(client.end(), Some(0), "{}", site.log("zoned"));

    // Outside of the hours, it says until when.
    let now = hour_of_utc();
    let hours = format!("{:02}:00-{:02}:01", (now + 12) % 24, (now + 12) % 24);
    fs::write(&file, format!("timezone = 'UTC'\n[limits]\nhours = '{hours}'\n")).unwrap();
    client = client_in(&site, "zoned", &misspelt);
    let paused = until(&site, "zoned", "a pause", |status| status["paused"].is_object());
    assert_eq!(paused["paused"]["reason"], "hours", "{paused}");
    let until_local = paused["paused"]["until_local"].as_str().unwrap();
    assert!(until_local.ends_with(&format!("{:02}:00 UTC", (now + 12) % 24)), "{until_local}");
    let said = text(&site, &data, &["status"]);
    assert!(said.contains(&format!("not one of its hours, until {until_local} (")), "{said}");
    assert_eq!(client.end(), Some(0), "{}", site.log("zoned"));

    // A zone that is wrong in the file is refused.
    fs::write(&file, "timezone = 'Europe/Berlim'\n").unwrap();
    client = client_in(&site, "zoned", &[token]);
    assert_eq!(client.wait(), Some(2));
    site.logged("zoned", "knows no such time zone");
}

/// The hour of UTC.
fn hour_of_utc() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    now.unwrap().as_secs() / 3600 % 24
}

#[test]
fn percentages_by_the_hour_hold_in_their_hours() {
    let site = Site::start();
    site.submit(5, 200);
    let data = site.path().join("shared");
    fs::create_dir_all(&data).unwrap();
    let percentages = "cpu = { \"00:00-24:00\" = 25, else = 100 }";
    let text_of_file = format!("timezone = 'UTC'\n[limits]\ncgroup = false\n{percentages}\n");
    fs::write(data.join("client.toml"), text_of_file).unwrap();
    let token = ("SOJOURN_ENROL_TOKEN", site.enrolment.as_str());
    let mut client = client_in(&site, "shared", &[token]);
    until(&site, "shared", "the share of the hour", |status| status["pace"] == 25);
    let said = text(&site, &data, &["limits"]);
    assert!(said.contains("cpu={ \"00:00-24:00\" = 25, else = 100 }"), "{said}");
    let now = hour_of_utc();
    let other = format!(
        "cpu={{ \"{:02}:00-{:02}:01\" = 25, else = 70 }}",
        (now + 12) % 24,
        (now + 12) % 24
    );
    text(&site, &data, &["limits", &other]);
    until(&site, "shared", "the other share", |status| status["pace"] == 70);
    assert_eq!(client.end(), Some(0), "{}", site.log("shared"));
}

#[test]
fn of_two_machines_with_one_identity_the_copy_enrols_anew_or_ends_with_words() {
    let site = Site::start();
    let job = site.submit(5, 400);
    let _first = site.client("first");
    until(&site, "first", "work", |status| status["units"][0]["state"]["running"].is_object());
    let (first, second) = (site.path().join("first"), site.path().join("second"));
    copy(&first, &second);
    // Without a token it ends, and says why.
    let mut refused = client_in(&site, "second", &[]);
    assert_eq!(refused.wait(), Some(2), "{}", site.log("second"));
    site.logged("second", "another machine works with this machine's identity");
    let hosts = String::from_utf8(site.run(&["hosts"]).stdout).unwrap();
    assert!(hosts.contains("host 1: 1 other machine had a copy of its identity"), "{hosts}");
    assert_eq!(site.json(&["hosts"])[0]["copies"], 1);
    // With one it becomes another host.
    copy(&first, &second);
    let _second = site.client("second");
    until(&site, "second", "another identity", |status| status["host"] == "2");
    until(&site, "first", "its own", |status| status["host"] == "1");
    let hops = site.job(&job)["hops"].as_u64();
    site.wait(&job, |view| view["hops"].as_u64() > hops);
    assert!(!second.join("identity.forgotten").exists(), "the other machine's token");

    // A client that is started again is no copy, whether it was ended or killed.
    let mut third = site.client("third");
    until(&site, "third", "a start", |status| status["host"] == "3");
    third.kill();
    third = site.client("third");
    until(&site, "third", "a start", |status| status["host"] == "3");
    assert_eq!(third.end(), Some(0), "{}", site.log("third"));
    third = site.client("third");
    until(&site, "third", "a start", |status| status["host"] == "3");
    assert_eq!(site.json(&["hosts"])[2]["copies"], Value::Null);
    drop(third);
}

#[test]
fn a_folder_of_another_machine_enrols_anew_or_says_how() {
    let site = Site::start();
    let mut client = site.client("moved");
    until(&site, "moved", "a start", |status| status["host"] == "1");
    assert_eq!(client.end(), Some(0), "{}", site.log("moved"));
    let record = site.path().join("moved/machine.json");
    let kept = fs::read_to_string(&record).unwrap();
    let mut moved: Value = serde_json::from_str(&kept).unwrap();
    if moved["machine"].is_null() {
        // A system without an id, as a container: there is nothing to notice it by.
        return;
    }
    moved["machine"] = "ab".repeat(32).into();
    fs::write(&record, moved.to_string()).unwrap();
    let mut client = client_in(&site, "moved", &[]);
    assert_eq!(client.wait(), Some(2), "{}", site.log("moved"));
    site.logged("moved", "the folder was copied or moved here");
    assert!(site.path().join("moved/identity.json").exists());
    let mut client = site.client("moved");
    until(&site, "moved", "another identity", |status| status["host"] == "2");
    assert_eq!(client.end(), Some(0), "{}", site.log("moved"));
    assert_eq!(fs::read_to_string(&record).unwrap(), kept);
}

#[test]
fn a_name_after_enrolment_is_said_to_be_of_no_use() {
    let site = Site::start();
    let mut client = site.client("named");
    let status = until(&site, "named", "a start", |status| status["host"] == "1");
    assert!(status["unused_name"].is_null(), "{status}");
    assert_eq!(client.end(), Some(0), "{}", site.log("named"));
    let mut client = client_in(&site, "named", &[("SOJOURN_NAME", "another")]);
    let status = until(&site, "named", "a start", |status| status["host"] == "1");
    assert_eq!(status["unused_name"]["enrolled"], "named", "{status}");
    let said = text(&site, &site.path().join("named"), &["status"]);
    assert!(
        said.contains("the name `another` isn't used: the machine enrolled as `named`"),
        "{said}"
    );
    assert_eq!(client.end(), Some(0), "{}", site.log("named"));
}

#[test]
fn machines_that_are_gone_can_be_forgotten() {
    let site = Site::start();
    let mut gone = site.client("gone");
    until(&site, "gone", "a start", |status| status["host"] == "1");
    let _here = site.client("here");
    until(&site, "here", "a start", |status| status["host"] == "2");
    let forget = |args: &[&str]| site.run(&[&["hosts", "forget"], args].concat());
    let refused = forget(&["1"]);
    assert!(!refused.status.success(), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is in contact"), "{refused:?}");
    assert_eq!(gone.end(), Some(0), "{}", site.log("gone"));
    // Leases last two seconds here.
    poll(|| {
        forget(&["--gone-for", "1s"])
            .stdout
            .starts_with(b"host 1 `gone` is forgotten")
            .then_some(())
    })
    .expect("it is forgotten");
    let hosts = site.json(&["hosts"]);
    let names: Vec<&str> =
        hosts.as_array().unwrap().iter().map(|host| host["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["here"]);
}

#[test]
fn a_service_is_uninstalled_with_its_token_where_systemd_cannot_be_told() {
    let folder = tempfile::tempdir().unwrap();
    let (programs, home) = (folder.path().join("programs"), folder.path().join("home"));
    fs::create_dir_all(&programs).unwrap();
    fs::create_dir_all(&home).unwrap();
    script(&programs.join("systemctl"), "echo 'Failed to connect to bus' >&2; exit 1\n");
    let service = |args: &[&str]| {
        crate::support::sojourn(&[&["service"], args].concat())
            .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
            .env("HOME", &home)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_DATA_HOME")
            .assert()
    };
    let installed = service(&["install", "--server", "http://s", "--token", "secret"]).code(1);
    let said = String::from_utf8_lossy(&installed.get_output().stderr).into_owned();
    assert!(said.contains("`sojourn service uninstall` removes them"), "{said}");
    let settings = home.join(".config/sojourn/client.env");
    assert!(settings.exists());
    let data = home.join(".local/share/sojourn/client");
    fs::create_dir_all(&data).unwrap();
    let link = home.join(".config/systemd/user/default.target.wants/sojourn-client.service");
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(home.join(".config/systemd/user/sojourn-client.service"), &link)
        .unwrap();
    let removed = service(&["uninstall"]).code(1);
    let said = String::from_utf8_lossy(&removed.get_output().stderr).into_owned();
    assert!(said.contains("disable --now") && said.contains("the files are gone"), "{said}");
    let unit = home.join(".config/systemd/user/sojourn-client.service");
    for path in [settings, unit, data, link] {
        assert!(path.symlink_metadata().is_err(), "{}", path.display());
    }
}
