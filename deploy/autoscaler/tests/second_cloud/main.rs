//! A second cloud: all that it needs is a provider. The commands and the driver are those of the library, which doesn't know it.
//!
//! | file | holds |
//! |---|---|
//! | `haze` | the cloud |
//! | `server` | a server with work |

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod haze;
mod server;

use clap::Parser as _;
use haze::{Haze, pool};
use server::{TRIALS, WorkServer};
use sojourn_autoscaler::{
    cli::Cli,
    clouds,
    config::Config,
    driver::{Driver, Options, Round},
    metrics::Metrics,
};
use sojourn_clouds::Providers;
use sojourn_fleet::cloud::{Cloud as _, NewMachine, Order};
use sojourn_programs::exit::Failure;
use sojourn_protocol::{machines::Market, money::MicroUsd, time::Millis};
use std::{
    fs,
    net::TcpListener,
    path::Path,
    sync::{Arc, atomic::Ordering},
};
use tempfile::TempDir;

const FILE: &str = "fleet = 'night'
server = 'http://ADDRESS'
token_file = 'token'

[limits]
machines = 4

[haze]
regions = ['bay-1', 'fen-1']
";

/// A folder with the fleet's file, whose server isn't there, and the token.
fn folder(text: &str) -> TempDir {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("fleet.toml"), text.replace("ADDRESS", &closed)).unwrap();
    fs::write(folder.path().join("token"), "secret\n").unwrap();
    folder
}

async fn call(folder: &TempDir, words: &[&str], clouds: Providers<'_>) -> Result<(), Failure> {
    let file = folder.path().join("fleet.toml").display().to_string();
    let words = ["sojourn-autoscaler"].into_iter().chain(words.iter().copied());
    Cli::try_parse_from(words.chain([&*file])).unwrap().run(clouds).await
}

/// The message of a call that is refused, without the file's name.
async fn refused(text: &str, words: &[&str], clouds: Providers<'_>) -> String {
    let folder = folder(text);
    let failure = call(&folder, words, clouds).await.unwrap_err();
    let file = folder.path().join("fleet.toml").display().to_string();
    failure.messages().join("; ").replace(&format!("`{file}`"), "FILE")
}

#[tokio::test]
async fn a_file_is_checked_and_the_cloud_is_asked_only_where_that_is_wanted() {
    let haze = Haze::named("haze");
    let folder = folder(FILE);
    call(&folder, &["check"], &[&haze]).await.unwrap();
    assert_eq!(haze.cloud.asked.load(Ordering::Relaxed), 0);
    call(&folder, &["check", "--cloud"], &[&haze]).await.unwrap();
    assert_eq!(haze.cloud.asked.load(Ordering::Relaxed), 1);
    let config = Config::read(&folder.path().join("fleet.toml"), &[&haze]).unwrap();
    let holdings = clouds::account(&config, &[&haze]).unwrap().open().await.unwrap();
    let sold = ["bay-1: 1 pools are sold.", "fen-1: 1 pools are sold."];
    assert_eq!(holdings.check().await.unwrap(), sold);
}

#[tokio::test]
async fn a_file_has_the_table_of_one_cloud_that_the_program_has() {
    let (haze, mist) = (Haze::named("haze"), Haze::named("mist"));
    let none = FILE.replace("[haze]\nregions = ['bay-1', 'fen-1']\n", "");
    let both = format!("{FILE}[mist]\nregions = ['bay-1']\n");
    let nowhere = FILE.replace("fen-1", "nowhere-1");
    let check = ["check"].as_slice();
    let all: Providers<'_> = &[&haze, &mist];
    for (text, clouds, expected) in [
        (&*none, &all[..1], "FILE, line 1: `haze` is missing: a table `[haze]` with the regions"),
        (
            &none,
            all,
            "FILE, line 1: `haze` is missing: the table of one cloud is wanted, of Haze (`[haze]`), Haze (`[mist]`)",
        ),
        (
            &none,
            &[],
            "FILE, line 1: there is no table of a cloud; this program was built without any cloud",
        ),
        (
            &both,
            all,
            "FILE, line 10: `mist` is there beside `haze`; a file has the table of one cloud",
        ),
        (
            FILE,
            &all[1..],
            "FILE: this program was built without the cloud of `[haze]`; it has Haze (`[mist]`)",
        ),
        (FILE, &[], "FILE: this program was built without the cloud of `[haze]`; it has none"),
        (&nowhere, all, "FILE: `[haze]`: there is no region `nowhere-1`"),
    ] {
        assert_eq!(refused(text, check, clouds).await, expected);
    }
}

#[tokio::test]
async fn a_cloud_without_sites_says_so() {
    let haze = Haze::named("haze");
    for words in [["up", "--yes"], ["down", "--yes"]] {
        assert_eq!(
            refused(FILE, &words, &[&haze]).await,
            "no server is made in this cloud: `up` and `down` can't be used with it"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_fleet_is_removed() {
    let haze = Haze::named("haze");
    for (name, region) in [("night-1", "bay-1"), ("night-2", "fen-1")] {
        let enrolment_token = "token".to_owned();
        let order = Order {
            machines: vec![NewMachine { name: name.parse().unwrap(), enrolment_token }],
            market: Market::OnDemand,
            pools: vec![pool(region)],
            price_limit: MicroUsd(100_000),
        };
        let filled = haze.cloud.buy(&order).await.unwrap();
        assert_eq!(filled.bought.len(), 1);
    }
    let folder = folder(FILE);
    call(&folder, &["remove", "--preview"], &[&haze]).await.unwrap();
    assert_eq!(haze.alive(), 2, "a preview changes nothing");
    call(&folder, &["remove", "--yes"], &[&haze]).await.unwrap();
    assert_eq!(haze.alive(), 0);
}

#[tokio::test]
async fn the_driver_buys_there() {
    let haze = Haze::named("haze");
    let config =
        Config::parse(FILE, Path::new(""), &[&haze]).unwrap_or_else(|told| panic!("{told:?}"));
    let values = [("server".to_owned(), config.machine.server.clone())].into();
    let account = clouds::account(&config, &[&haze]).unwrap();
    let cloud = account.connect(&values).await.unwrap();
    let server = WorkServer(Arc::clone(&haze.cloud.now));
    let options = Options {
        fleet: config.fleet.clone(),
        holder: "here".to_owned(),
        settings: config.settings.clone(),
        prices: config.prices,
        dry_run: false,
    };
    let metrics = Arc::new(Metrics::default());
    let mut driver = Driver::new(server.clone(), cloud, options, server, metrics);
    for _ in 0..3 {
        let interval = Millis::from_secs(30);
        haze.cloud.now.fetch_add(interval.0, Ordering::Relaxed);
        let round = driver.round().await;
        assert!(matches!(round, Round::Planned(_)), "{round:?}");
    }
    assert_eq!(haze.alive(), usize::try_from(TRIALS).unwrap());
}
