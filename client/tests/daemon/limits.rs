//! Limits that are kept: what a paused machine does and doesn't.

use super::*;
use crate::restarts::{ends, released};
use std::sync::atomic::Ordering;

/// A daemon whose file says so.
pub fn limited(server: &Server, dir: &TempDir, text: &str) -> ClientConfig {
    let data = dir.path().join("client");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("client.toml"), text).unwrap();
    let allowance = Allowance::read(None, &data, Vec::new()).unwrap();
    ClientConfig { allowance, ..config(server, dir) }
}

/// No hour of the day but one minute of UTC, which is not now.
fn never() -> String {
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).datetime();
    let hour = (now.hour() + 12) % 24;
    format!("hours = '{hour:02}:00-{hour:02}:01'\n")
}

#[tokio::test]
async fn a_machine_outside_of_its_hours_asks_for_nothing() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| queue_hops(world, 1..=1));
    let config = limited(&server, &dir, &format!("timezone = 'UTC'\n[limits]\n{}", never()));
    let socket = config.data.join("control.sock");
    let daemon = Daemon::start(config, &trainer);
    server.until("its enrolment", |world| world.enrolled == 1).await;
    while !socket.exists() {
        tokio::task::yield_now().await;
    }
    while !said(&socket, r#""status""#).await.contains("not one of its hours") {}
    assert!(server.world().works.is_empty());
    // Taken away, the limit stands against nothing any more.
    said(&socket, r#"{"set_limits":["hours="]}"#).await;
    server.until("its work", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    assert_eq!(trainer.at_once.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_long_pause_sends_partial_results_and_gives_the_leases_back() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| queue_hops(world, 1..=2));
    let config = limited(&server, &dir, "[limits]\ngive_back_after = '0s'\n");
    let socket = config.data.join("control.sock");
    let daemon = Daemon::start(config, &trainer);
    trainer.until_started(1).await;
    server.until("both leases", |world| world.held.len() == 2).await;
    said(&socket, r#"{"pause":{}}"#).await;
    server.until("the part", |world| world.reports.len() == 1).await;
    server.until("the other to be given back", |world| world.released.len() == 1).await;
    {
        let world = server.world();
        assert_eq!(ends(&world).iter().map(|(_, end)| *end).collect::<Vec<_>>(), [1]);
        assert_eq!(released(&world).len(), 1);
        assert!(world.released[0].1.contains("paused"), "{:?}", world.released);
    }
    // It goes on with what is there when it may.
    trainer.gate.add_permits(1);
    server.change(|world| queue_hops(world, 3..=3));
    said(&socket, r#""resume""#).await;
    server.until("the next", |world| world.reports.len() == 2).await;
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_short_pause_keeps_the_leases() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| {
        queue_hops(world, 1..=1);
        for lease in &mut world.queue {
            lease.heartbeat_every = Millis(10);
        }
    });
    let config = limited(&server, &dir, "");
    let socket = config.data.join("control.sock");
    let daemon = Daemon::start(config, &trainer);
    trainer.until_started(1).await;
    said(&socket, r#"{"pause":{}}"#).await;
    trainer.gate.add_permits(1);
    let beats = server.world().heartbeats.len();
    server.until("heartbeats", |world| world.heartbeats.len() > beats + 2).await;
    {
        let world = server.world();
        assert!(world.reports.is_empty() && world.released.is_empty());
    }
    let status = said(&socket, r#""status""#).await;
    assert!(status.contains("paused by hand"), "{status}");
    let status = said(&socket, r#""resume""#).await;
    assert!(!status.contains("paused by hand") && status.contains(r#""pace":100"#), "{status}");
    server.until("the whole", |world| world.reports.len() == 1).await;
    assert_eq!(ends(&server.world()), [(1, 2)]);
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_drained_daemon_finishes_what_runs_and_ends_well() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| queue_hops(world, 1..=2));
    let config = limited(&server, &dir, "");
    let socket = config.data.join("control.sock");
    let daemon = Daemon::start(config, &trainer);
    trainer.until_started(1).await;
    said(&socket, r#""drain""#).await;
    server.until("the other to be given back", |world| world.released.len() == 1).await;
    trainer.gate.add_permits(2);
    daemon.ended().await.unwrap();
    assert_eq!(ends(&server.world()).iter().map(|(_, end)| *end).collect::<Vec<_>>(), [2]);
    assert!(!socket.exists(), "it leaves no socket behind");
}

#[tokio::test]
async fn a_paused_daemon_that_is_drained_sends_what_it_has_and_ends() {
    for pause_first in [true, false] {
        let (dir, server, trainer) =
            (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
        server.change(|world| queue_hops(world, 1..=2));
        let config = limited(&server, &dir, "[limits]\ngive_back_after = '1d'\n");
        let socket = config.data.join("control.sock");
        let daemon = Daemon::start(config, &trainer);
        trainer.until_started(1).await;
        server.until("both leases", |world| world.held.len() == 2).await;
        let (first, then) = (r#"{"pause":{}}"#, r#""drain""#);
        let (first, then) = if pause_first { (first, then) } else { (then, first) };
        said(&socket, first).await;
        said(&socket, then).await;
        server.until("the part", |world| world.reports.len() == 1).await;
        daemon.ended().await.unwrap();
        let world = server.world();
        assert_eq!(ends(&world).iter().map(|(_, end)| *end).collect::<Vec<_>>(), [1]);
        assert_eq!(released(&world).len(), 1);
    }
}

#[tokio::test]
async fn limits_change_while_it_runs_and_stay_in_the_file() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    let config = limited(&server, &dir, "# mine\n[limits]\ncpu = 80 # percent\n");
    let (socket, file) = (config.data.join("control.sock"), config.data.join("client.toml"));
    let daemon = Daemon::start(config, &trainer);
    server.until("its first request", |world| !world.works.is_empty()).await;
    let answer = said(&socket, r#"{"set_limits":["cpu=30","upload=2MB/s"]}"#).await;
    assert!(answer.contains(r#""cpu":"30""#), "{answer}");
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text, "# mine\n[limits]\ncpu = 30 # percent\nupload = \"2MB/s\"\n");
    let refused = said(&socket, r#"{"set_limits":["cpu=300"]}"#).await;
    assert!(refused.contains("refused") && refused.contains("1 to 100 percent"), "{refused}");
    for wrong in ["no json", r#""dance""#, ""] {
        let refused = said(&socket, wrong).await;
        assert!(refused.contains("refused"), "{refused}");
    }
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn only_the_owner_can_open_the_socket() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    let config = limited(&server, &dir, "");
    let data = config.data.clone();
    // One that a killed daemon has left.
    drop(std::os::unix::net::UnixListener::bind(data.join("control.sock")).unwrap());
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
    let daemon = Daemon::start(config, &trainer);
    server.until("its first request", |world| !world.works.is_empty()).await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&data), mode(&data.join("control.sock"))), (0o700, 0o600));
    let status = said(&data.join("control.sock"), r#""status""#).await;
    assert!(status.contains(r#""slots":1"#), "{status}");
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_month_whose_bytes_are_used_up_takes_nothing_until_the_owner_allows_more() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    let mut shard = 0;
    server.change(|world| shard = queue_hops(world, 1..=1).bytes);
    let config = limited(&server, &dir, "[limits]\nmonthly = '1MB'\n");
    let (socket, file) = (config.data.join("control.sock"), config.data.join("volume.json"));
    // It may be midnight at any time.
    let today = jiff::Zoned::now().date();
    let months = [today, today.last_of_month().tomorrow().unwrap()];
    let months = months.map(|day| format!("\"{}\":1000000", day.strftime("%Y-%m"))).join(",");
    std::fs::write(&file, format!("{{\"version\":1,\"months\":{{{months}}}}}")).unwrap();
    let daemon = Daemon::start(config, &trainer);
    server.until("its enrolment", |world| world.enrolled == 1).await;
    while !socket.exists() {
        tokio::task::yield_now().await;
    }
    let status = said(&socket, r#""status""#).await;
    assert!(status.contains("closed_until"), "{status}");
    assert!(server.world().works.is_empty());
    said(&socket, r#"{"set_limits":["monthly=2MB"]}"#).await;
    server.until("its work", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    let kept = std::fs::read_to_string(&file).unwrap();
    let counted = 1_000_000 + u64::from(CHECKPOINT) + shard;
    assert!(kept.contains(&format!(":{counted}")), "{kept}");
}

#[tokio::test]
async fn a_unit_that_does_not_fit_into_the_month_is_given_back_and_what_runs_is_sent() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| queue_hops(world, 1..=2));
    let config = limited(&server, &dir, "[limits]\nmonthly = '1500B'\n");
    let socket = config.data.join("control.sock");
    let daemon = Daemon::start(config, &trainer);
    trainer.until_started(1).await;
    server.until("the other to be given back", |world| world.released.len() == 1).await;
    assert!(server.world().released[0].1.contains("this month"), "{:?}", server.world().released);
    // Less than it has reserved: what runs is finished and sent all the same.
    said(&socket, r#"{"set_limits":["monthly=5B"]}"#).await;
    trainer.gate.add_permits(1);
    server.until("the result", |world| world.reports.len() == 1).await;
    assert_eq!(ends(&server.world()).iter().map(|(_, end)| *end).collect::<Vec<_>>(), [2]);
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_status_says_what_units_are_and_what_moves() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| {
        let shard = world.put(&crate::trainer::checkpoint(8, 900_000));
        world.queue.push_back(hop(1, shard));
    });
    // A quarter of an hour, if nobody says otherwise.
    let config = limited(&server, &dir, "[limits]\ndownload = '1kB/s'\n");
    let socket = config.data.join("control.sock");
    let daemon = Daemon::start(config, &trainer);
    server.until("its lease", |world| !world.held.is_empty()).await;
    let status = async || -> serde_json::Value {
        let answer: serde_json::Value =
            serde_json::from_str(&said(&socket, r#""status""#).await).unwrap();
        answer["status"].clone()
    };
    let moving = loop {
        let status = status().await;
        if status["transfers"][0]["bytes"].as_u64() > Some(0) {
            break status;
        }
    };
    let transfer = &moving["transfers"][0];
    assert_eq!((&transfer["direction"], &transfer["of"]), (&"down".into(), &900_000.into()));
    let unit = &moving["units"][0];
    assert!(unit["state"]["fetching"]["fetched"].is_u64(), "{unit}");
    let work = serde_json::json!({
        "job": 1, "trial": 0, "task": { "train": { "epoch": 0, "shard": 0 } }, "download": 900_000
    });
    assert_eq!(unit["work"], work);
    said(&socket, r#"{"set_limits":["download="]}"#).await;
    trainer.until_started(1).await;
    let running = status().await;
    assert_eq!(running["transfers"], serde_json::json!([]));
    assert_eq!(running["units"][0]["state"]["running"]["of"], 2);
    trainer.gate.add_permits(1);
    server.until("the report", |world| world.reports.len() == 1).await;
    while status().await["units"] != serde_json::json!([]) {}
    daemon.stop().await.unwrap();
}

/// The answer of a daemon to a line.
pub async fn said(socket: &Path, line: &str) -> String {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    let stream = tokio::net::UnixStream::connect(socket).await.unwrap();
    let (from, mut to) = stream.into_split();
    to.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    BufReader::new(from).read_line(&mut answer).await.unwrap();
    answer
}
