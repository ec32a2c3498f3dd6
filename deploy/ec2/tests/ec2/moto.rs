//! `moto`, a stand-in for EC2 in Python that many use. It has capacity without end and fixed prices, checks no signatures,
//! and knows no client tokens.

use std::process::Stdio;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

/// A server on a port of its own; it ends with this.
pub(crate) struct Moto {
    _child: Child,
    pub(crate) url: String,
}

impl Moto {
    /// Starts `moto`, and waits until it listens.
    pub(crate) async fn start() -> Self {
        let python = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.cache/python/bin/python");
        let mut child = Command::new(python)
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", "0"])
            .env("PYTHONUNBUFFERED", "1")
            // The policies that AWS itself has, as that of the Session Manager.
            .env("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("`make setup` makes the tests' Python");
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut heard = String::new();
        let url = loop {
            let line = said.next_line().await.unwrap();
            let line = line.unwrap_or_else(|| panic!("moto ended: {heard}"));
            if let Some(at) = line.find("http://127.0.0.1:") {
                break line[at..].trim().to_owned();
            }
            heard.push_str(&line);
        };
        // Nobody may wait for what it says later.
        tokio::spawn(async move { while let Ok(Some(_)) = said.next_line().await {} });
        Self { _child: child, url }
    }
}
