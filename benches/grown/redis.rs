//! Models as keys of a Redis.

use crate::{anchor::Model, redis_server::RedisServer};
use redis::{Connection, cmd};

/// A `redis-server` on a socket in a folder of its own.
pub(crate) struct Redis(RedisServer);

/// A connection to one.
pub(crate) struct Link {
    connection: Connection,
    lossless: bool,
}

impl Redis {
    pub(crate) fn start() -> Self {
        Self(RedisServer::with(&["--appendonly", "yes", "--appendfsync", "everysec"]))
    }

    pub(crate) fn url(&self) -> String {
        self.0.url()
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
