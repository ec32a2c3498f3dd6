//! Several users of one server: whose jobs they may change, what their jobs may take, and slot time between them.

use crate::site::{Site, program};
use serde_json::Value;
use std::process::{Command, Output};

/// Runs a command with a user's token.
fn with(site: &Site, token: &str, args: &[&str]) -> Output {
    Command::new(program())
        .args(args)
        .env("SOJOURN_SERVER", &site.url)
        .env("SOJOURN_TOKEN", token)
        .env("XDG_CACHE_HOME", site.path().join("cache"))
        .current_dir(site.path())
        .output()
        .unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", told(output));
    String::from_utf8(output.stdout.clone()).unwrap().trim().to_owned()
}

fn json(site: &Site, token: &str, args: &[&str]) -> Value {
    let text = printed(&with(site, token, &[args, &["--json"]].concat()));
    serde_json::from_str(&text).unwrap()
}

/// A user who may submit.
fn user(site: &Site, name: &str, quotas: &[&str]) -> String {
    let new = ["token", "new", "--name", name, "--rights", "submit"];
    printed(&site.run(&[&new, quotas].concat()))
}

/// One more job of a user over the digits.
fn submit(site: &Site, token: &str) -> String {
    json(site, token, &["submit", "job.toml", "--again"])["job"].to_string()
}

#[test]
fn users_change_their_own_jobs_and_no_others_within_their_quotas() {
    let site = Site::start();
    let of_admin = site.submit(7, 1);
    let alice = user(&site, "alice", &["--jobs", "2", "--links", "1"]);
    let bob = user(&site, "bob", &[]);
    let [first, second] = [(); 2].map(|()| submit(&site, &alice));
    let of_bob = submit(&site, &bob);

    for (args, job) in [
        (vec!["cancel"], &first),
        (vec!["pause"], &first),
        (vec!["extend", "--epochs", "9"], &first),
        (vec!["set", "--priority", "5"], &first),
        (vec!["share"], &first),
    ] {
        let args = [&args[..1], &[job.as_str()], &args[1..]].concat();
        let refused = with(&site, &bob, &args);
        let why = format!("job {job} belongs to `alice`; this token is `bob`");
        assert!(told(&refused).contains(&why), "{args:?}: {}", told(&refused));
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
    }
    let refused = with(&site, &bob, &["cancel", &of_admin]);
    let why = "belongs to the server's admin token; this token is `bob`";
    assert!(told(&refused).contains(why), "{}", told(&refused));
    printed(&with(&site, &alice, &["pause", &first]));
    assert!(site.run(&["resume", &first]).status.success(), "administrators change all");

    // Lists by owner.
    let numbers = |jobs: Value| -> Vec<String> {
        jobs.as_array().unwrap().iter().map(|job| job["job"].to_string()).collect()
    };
    assert_eq!(numbers(json(&site, &alice, &["jobs", "--mine"])), [first.as_str(), &second]);
    assert_eq!(numbers(json(&site, &alice, &["jobs", "--owner", "bob"])), [of_bob.as_str()]);
    assert_eq!(numbers(json(&site, &alice, &["jobs", "--owner", "admin"])), [of_admin.as_str()]);
    let table = printed(&with(&site, &bob, &["jobs"]));
    assert!(table.contains("OWNER") && table.contains("alice"), "{table}");
    let mine = printed(&with(&site, &bob, &["jobs", "--mine"]));
    assert!(!mine.contains("OWNER") && !mine.contains("alice"), "{mine}");
    assert!(printed(&with(&site, &bob, &["status", &first])).contains("alice"));

    // A quota is hit, says what to do, and the advice helps.
    let refused = with(&site, &alice, &["submit", "job.toml", "--again"]);
    assert!(told(&refused).contains("its quota `jobs` is 2"), "{}", told(&refused));
    assert!(told(&refused).contains("`sojourn token set 1 --jobs N`"), "{}", told(&refused));
    let listed = printed(&site.run(&["token", "list"]));
    assert!(listed.contains("FAILURES") && listed.contains("2/2") && listed.contains("1/20"));
    let set = printed(&site.run(&["token", "set", "1", "--jobs", "3"]));
    assert!(set.starts_with("token 1 may have 3 jobs with 10,000 open trials, 20 GB"), "{set}");
    let third = submit(&site, &alice);
    printed(&with(&site, &alice, &["cancel", &third]));
    assert!(told(&site.run(&["token", "set", "1"])).contains("no quota is given"));

    // A link ends with the token that made it.
    let link = printed(&with(&site, &alice, &["share", &first]));
    let secret = link.split_once('#').unwrap().1;
    let refused = with(&site, &alice, &["share", &first]);
    assert!(told(&refused).contains("its quota `links` is 1"), "{}", told(&refused));
    let opened = with(&site, secret, &["jobs"]);
    assert!(told(&opened).contains("a link to a job's page"), "{}", told(&opened));
    printed(&site.run(&["token", "revoke", "1"]));
    let opened = with(&site, secret, &["jobs"]);
    assert!(told(&opened).contains("unknown or was revoked"), "{}", told(&opened));
    assert!(site.run(&["cancel", &first]).status.success(), "its jobs stay, for administrators");
}

#[test]
fn one_job_of_a_user_trains_as_much_as_five_of_another() {
    let site = Site::start();
    let (alice, bob) = (user(&site, "alice", &[]), user(&site, "bob", &[]));
    let of_admin = site.submit(7, 60);
    assert!(site.run(&["cancel", &of_admin]).status.success());
    for _ in 0..5 {
        submit(&site, &alice);
    }
    let of_bob = submit(&site, &bob);
    let mut client = site.client("one");
    let used = |owner: &str| -> u64 {
        let jobs = site.get(&format!("jobs?owner={owner}"));
        let jobs = jobs.as_array().unwrap().iter();
        jobs.map(|job| job["train_micros"].as_u64().unwrap()).sum()
    };
    site.wait(&of_bob, |view| view["hops"].as_u64().unwrap() >= 40);
    client.kill();
    let (alice, bob) = (used("alice"), used("bob"));
    // By jobs alone it would be five times as much.
    assert!(2 * alice > bob && alice < 2 * bob, "{alice} and {bob} microseconds");
}
