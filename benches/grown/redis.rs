//! Models as keys of a Redis.

use crate::anchor::Model;
use redis::{Connection, cmd};
use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;

/// A `redis-server` on a socket in a folder of its own.
pub(crate) struct Redis {
    folder: TempDir,
    child: Child,
}

/// A connection to one.
pub(crate) struct Link {
    connection: Connection,
    lossless: bool,
}

impl Redis {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("redis-server")
            .args(["--port", "0", "--unixsocket", "redis.sock", "--logfile", "", "--save", ""])
            .args(["--appendonly", "yes", "--appendfsync", "everysec", "--dir"])
            .arg(folder.path())
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("eady to accept connections")));
        std::thread::spawn(move || for _ in lines {});
        Self { folder, child }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis+unix://{}", self.folder.path().join("redis.sock").display())
    }

    pub(crate) fn set(&self, model: u32, value: &[u8]) {
        let mut link = Self::connect(&self.url(), false);
        cmd("SET").arg(model).arg(value).exec(&mut link.connection).unwrap();
    }

    pub(crate) fn get(&self, model: u32) -> Vec<u8> {
        let mut link = Self::connect(&self.url(), false);
        cmd("GET").arg(model).query(&mut link.connection).unwrap()
    }

    pub(crate) fn connect(url: &str, lossless: bool) -> Link {
        let connection = redis::Client::open(url).unwrap().get_connection().unwrap();
        Link { connection, lossless }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Link {
    /// Whether nobody else had set it meanwhile.
    fn try_update(&mut self, model: u32, change: &impl Fn(&mut [u8])) -> bool {
        if self.lossless {
            cmd("WATCH").arg(model).exec(&mut self.connection).unwrap();
        }
        let mut value: Vec<u8> = cmd("GET").arg(model).query(&mut self.connection).unwrap();
        change(&mut value);
        let mut set = redis::pipe();
        if self.lossless {
            set.atomic();
        }
        let set: Option<()> =
            set.cmd("SET").arg(model).arg(value).ignore().query(&mut self.connection).unwrap();
        set.is_some()
    }
}

impl Model for Link {
    fn update(&mut self, model: u32, change: impl Fn(&mut [u8])) {
        while !self.try_update(model, &change) {}
    }
}
