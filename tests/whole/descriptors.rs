//! A server with few file descriptors: it takes as many as the system allows, and connections never use them up.

use crate::{
    http::{PATIENCE, poll},
    site::{Process, listening, program, spawn},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process::Command,
};
use tempfile::TempDir;

/// A server that a shell starts after this command.
fn serve_after(limit: &str) -> (TempDir, Process, SocketAddr) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("server");
    let mut command = Command::new("sh");
    let script = format!("{limit} && exec \"$0\" serve --listen 127.0.0.1:0 --data \"$1\"");
    command.args(["-c", &script]).arg(program()).arg(&data);
    let log = folder.path().join("server.log");
    let mut process = spawn(command, &log);
    let address = listening(&data, &mut process, &log).parse().unwrap();
    (folder, process, address)
}

/// A request that was sent, on a connection of its own.
fn send(address: SocketAddr, request: &str, token: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // A connection beyond all bounds may be closed already.
    let _ = write!(
        stream,
        "{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream
}

/// The answer on a connection; empty where the connection was closed without one.
fn answer(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

/// Has the request no answer yet?
fn is_pending(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let looked = stream.peek(&mut [0]);
    looked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn health_is_answered_though_more_hosts_wait_than_there_are_descriptors() {
    let (folder, mut server, address) = serve_after("ulimit -n 256");
    let token = fs::read_to_string(folder.path().join("server").join("enrol-token")).unwrap();
    let hosts = (0..300).map(|number| {
        let body = format!(r#"{{"name":"host-{number}"}}"#);
        let answer = answer(send(address, "POST /v1/enrol", token.trim(), &body));
        let (_, enrolled) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
        let enrolled: Value = serde_json::from_str(enrolled).unwrap();
        enrolled["token"].as_str().unwrap().to_owned()
    });
    let hosts: Vec<String> = hosts.collect();
    // Each asks for work, and the server holds the request open where it may.
    let body = json!({
        "demand": [{ "device": "cpu", "slots": 1, "idle": 1, "wanted": 1 }],
        "holding": [], "reported": [], "wait": 60_000,
        "inventory": {
            "devices": [{ "name": "cpu", "numeric_class": "00".repeat(32), "flops": 1e9 }],
            "cached": [], "client": "a test",
        },
    });
    let body = body.to_string();
    let mut asks: Vec<TcpStream> =
        hosts.iter().map(|token| send(address, "POST /v1/work", token, &body)).collect();
    // Hosts that are told to come again may have all connections that there are for that, for an instant.
    let health = poll(|| {
        let health = answer(send(address, "GET /v1/health", "", ""));
        health.starts_with("HTTP/1.1 200 ").then_some(())
    });
    assert!(health.is_some(), "no health check was answered");
    // As many as have a place wait on: which ones, the server's threads decide.
    let waiting = asks.iter().filter(|ask| is_pending(ask)).count();
    assert!(waiting >= 20, "health had to wait for the hosts: {waiting} of them wait on");
    assert!(server.is_running());

    // The others were told to come again, and the server says how many.
    let last = asks.pop().unwrap();
    drop(asks);
    let refused = answer(last);
    assert!(refused.is_empty() || refused.starts_with("HTTP/1.1 429 "), "{refused}");
    let admin = fs::read_to_string(folder.path().join("server").join("admin-token")).unwrap();
    let mut refused = Value::Null;
    let counted = poll(|| {
        let traffic = answer(send(address, "GET /v1/traffic", admin.trim(), ""));
        let (head, body) = traffic.split_once("\r\n\r\n")?;
        let traffic =
            head.starts_with("HTTP/1.1 200 ").then(|| serde_json::from_str::<Value>(body));
        refused = traffic?.unwrap()["refused"].clone();
        let told = refused["connections_of_address"].as_u64().unwrap();
        let closed = refused["connections_closed"].as_u64().unwrap();
        (told + closed >= 270).then_some(())
    });
    assert!(counted.is_some(), "{refused}");
}

#[test]
fn a_server_takes_as_many_descriptors_as_the_system_allows() {
    let (_folder, server, _) = serve_after("ulimit -Sn 64 && ulimit -Hn 512");
    let limits = fs::read_to_string(format!("/proc/{}/limits", server.id())).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<&str> = files.split_whitespace().skip(3).take(2).collect();
    assert_eq!(numbers, ["512", "512"]);
}
