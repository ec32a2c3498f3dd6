//! `moto`, an S3 stand-in in Python that many use: it checks no signatures, and no checksums.

use super::s3::{BUCKET, settings};
use sojourn_blobs::StoreSettings;
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
    /// Started, with a bucket.
    pub(crate) async fn start() -> Self {
        let python = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.cache/python/bin/python");
        let mut child = Command::new(python)
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", "0"])
            .env("PYTHONUNBUFFERED", "1")
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
        let bucket = reqwest::Client::new().put(format!("{url}/{BUCKET}"));
        // A key says whose bucket it is; it is no secret here.
        let bucket = bucket.header(
            "authorization",
            "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=x",
        );
        bucket.send().await.unwrap().error_for_status().unwrap();
        Self { _child: child, url }
    }

    pub(crate) fn settings(&self) -> StoreSettings {
        settings(&self.url)
            .with("AWS_ACCESS_KEY_ID", "key")
            .with("AWS_SECRET_ACCESS_KEY", "any will do")
    }
}
