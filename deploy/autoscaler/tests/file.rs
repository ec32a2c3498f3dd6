//! Files that are read, and what is said of those that can't be.

#![cfg(feature = "ec2")]
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use sojourn_autoscaler::{
    clouds,
    config::{Config, words},
};
use sojourn_clouds::Provider;
use sojourn_ec2::Ec2Provider;
use sojourn_fleet::{
    limits::Limits,
    settings::{Markets, Settings, Times},
};
use sojourn_protocol::money::MicroUsd;
use std::path::Path;

const CLOUDS: &[&dyn Provider] = &[&Ec2Provider];

const SMALLEST: &str = "fleet = 'team'
server = 'https://sojourn.example.org'
token_file = 'admin-token'

[limits]
machines = 16

[ec2]
user_data = 'user-data.yaml'
";

fn wrong(text: &str) -> Vec<String> {
    let problems = Config::parse(text, Path::new("/etc/sojourn"), CLOUDS).unwrap_err();
    problems.into_iter().map(|problem| format!("{}: {problem}", problem.line())).collect()
}

fn with(from: &str, to: &str) -> String {
    assert!(SMALLEST.contains(from));
    SMALLEST.replace(from, to)
}

#[test]
fn the_smallest_file_has_the_defaults() {
    let config = Config::parse(SMALLEST, Path::new("/etc/sojourn"), CLOUDS).unwrap();
    let mut settings =
        Settings::new(Limits { machines: 16, vcpus: None, hourly: None, total: None, job: None });
    settings.prefix = "team".to_owned();
    assert_eq!(config.settings, settings);
    assert_eq!(config.token_file, Path::new("/etc/sojourn/admin-token"));
    assert_eq!(config.machine.server, "https://sojourn.example.org");
    assert_eq!((config.cloud.name.as_str(), config.has_site), ("ec2", false));
    assert_eq!(config.cloud.table["user_data"].as_str(), Some("user-data.yaml"));
    assert_eq!(config.cloud.folder, Path::new("/etc/sojourn"));
}

#[test]
fn the_example_says_all_of_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/autoscaler.toml");
    let config = Config::read(&path, CLOUDS).unwrap();
    assert_eq!(config.settings.limits.hourly, Some(MicroUsd(5_000_000)));
    // What the page says of each key is what it is by default: the example changes few of them.
    assert_eq!(config.settings.times, Times::default());
    assert_eq!(config.settings.markets, Markets { floor: 1, ..Markets::default() });
}

#[test]
fn all_problems_are_told_with_their_lines() {
    assert_eq!(
        wrong(
            "flet = 'team'\nserver = 5\ninterval = '1s'\n[limits]\nhourly = '5'\n[markets]\nflor = 2\n"
        ),
        [
            "1: `fleet` is missing: the fleet's name, as `fleet = \"team\"`",
            "1: `token_file` is missing: the file with the token of a user who may administer",
            "1: `ec2` is missing: a table `[ec2]` with the regions, images and subnets",
            "1: `flet` is no known key; did you mean `fleet`?",
            "2: `server` is a whole number (`5`); a text is wanted",
            "3: `interval` is wrong: between 5s and 2min are wanted",
            "4: `limits.machines` is missing: the most machines at a time",
            "5: `limits.hourly` is 5; an amount of dollars is wanted, e.g. `20 usd` or `0.35 usd`, with six decimals at most",
            "7: `markets.flor` is no known key; did you mean `floor`?",
        ]
    );
    let of_each_other =
        format!("{SMALLEST}[markets]\nfloor = 17\n[times]\nboot = '2h'\nenrol = '1min'\n");
    let told = wrong(&of_each_other);
    assert!(told[0].ends_with("`markets.floor` is more than `limits.machines`"), "{told:?}");
    assert!(told[1].contains("`times.enrol` has to be longer than `times.boot`"), "{told:?}");
    assert_eq!(told.len(), 2);
    let of_each_other = with(
        "machines = 16",
        "machines = 16\nvcpus = 4\ntotal = '5 usd'\njob = '6 usd'\n[types]\nvcpus = [8, 64]\nnames = ['a', 'b']\nexcept = ['b', \
         'a']\n[markets]\nspot = false\nfallback = false",
    );
    assert_eq!(
        wrong(&of_each_other),
        [
            "9: `limits.job` is more than `limits.total`, $5.00: no job could cost so much",
            "11: `types.vcpus` begins above `limits.vcpus`: no machine could be bought",
            "13: `types.except` has all of `types.names`: no machine could be bought",
            "15: `markets.spot` is `false`, and so is `markets.fallback`, without a `markets.floor`: nothing could be bought",
        ]
    );
    assert_eq!(wrong("fleet = 'team"), wrong("fleet = 'team"));
    assert!(wrong("fleet = 'team")[0].starts_with("1: no valid TOML here: "));
}

#[test]
fn values_are_checked() {
    for (from, to, message) in [
        (
            "'team'",
            "'Team A'",
            "1: `fleet` is wrong: 1 to 24 lower-case letters, digits and `-` are wanted",
        ),
        (
            "[ec2]",
            "[types]\nvcpus = [8, 2]\n[ec2]",
            "9: `types.vcpus` is no range: its first end is above its last",
        ),
        (
            "[ec2]",
            "[types]\nmemory = ['4', '8GiB']\n[ec2]",
            "9: `types.memory` is a list; a range, as `[\"4GiB\", \"64GiB\"]`, is wanted",
        ),
        (
            "[ec2]",
            "[times]\nboot = '3'\n[ec2]",
            "9: `times.boot` is 3; a length of time up to a year is wanted, e.g. `90s`, `10min` or `2h`",
        ),
        (
            "[ec2]",
            "[machine]\nidle = '5s'\n[ec2]",
            "9: `machine.idle` is wrong: a minute or more is wanted",
        ),
        (
            "machines = 16",
            "machines = -1",
            "6: `limits.machines` is -1; a whole number from 0 to 10000 is wanted",
        ),
    ] {
        assert_eq!(wrong(&with(from, to)), [message]);
    }
    let open = with("[limits]", "metrics = '0.0.0.0:9464'\n[limits]");
    assert_eq!(
        wrong(&open),
        ["5: `metrics` is no address of this machine alone, as `127.0.0.1:9464` is"]
    );
}

#[test]
fn a_file_is_told_in_words() {
    let text = with(
        "machines = 16",
        "machines = 16\nhourly = '3 usd'\ntotal = '50 usd'\n[types]\nvcpus = [2, 16]",
    );
    let config = Config::parse(&text, Path::new(""), CLOUDS).unwrap();
    let words = words(&config);
    assert_eq!(words[1], "At a time it has at most 16 machines and $3.00 an hour.");
    assert_eq!(words[2], "In all it spends at most $50.00.");
    assert_eq!(
        words[3],
        "Types that the cloud offers with 2 to 16 virtual processors are bought; a machine has one slot, or one for each GPU."
    );
}

const WITH_SERVER: &str = "fleet = 'night'

[limits]
machines = 16

[ec2]
types = ['c7i.*']

[ec2.server]
allowed = ['192.0.2.7/32']

[ec2.regions.eu-west-1]
image = 'ami-1'
";

#[test]
fn a_file_with_a_server_needs_none_of_what_up_knows() {
    let config = Config::parse(WITH_SERVER, Path::new("/home/me"), CLOUDS).unwrap();
    assert!(config.has_site);
    assert_eq!(config.server, "https://127.0.0.1:8642");
    assert_eq!(config.token_file, Path::new("/etc/sojourn/autoscaler-token"));
    assert_eq!(config.ca.as_deref(), Some(Path::new("/etc/sojourn/server.pem")));
    // Without that table they are wanted.
    let told = wrong(&WITH_SERVER.replace("[ec2.server]", "[ec2.servers]"));
    assert!(told.iter().any(|message| message.contains("`token_file` is missing")), "{told:?}");
}

#[test]
fn the_file_of_the_page_is_one_for_up() {
    let page = include_str!("../../../docs/operate/aws.md");
    let block = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let config = Config::parse(block, Path::new(""), CLOUDS).unwrap();
    assert!(config.has_site);
    clouds::account(&config, CLOUDS).map(drop).unwrap();
}
