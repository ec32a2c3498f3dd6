//! A Redis with replicas, which reach it on a port.

use crate::redis_server::RedisServer;
use std::net::TcpListener;

/// A Redis that others may follow, and its port. It syncs each write.
pub(crate) fn primary(more: &[&str]) -> (RedisServer, u16) {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let port_word = port.to_string();
        let settings = ["--port", &port_word, "--bind", "127.0.0.1", "--appendonly", "yes"];
        let settings = [&settings[..], &["--repl-diskless-sync-delay", "0"], more].concat();
        match RedisServer::try_with(&settings) {
            Ok(redis) => return (redis, port),
            // Somebody else has taken the port meanwhile.
            Err(told) => assert!(told.contains("Address already in use"), "{told}"),
        }
    }
}

/// Has one follow that of another port.
pub(crate) fn follow(replica: &RedisServer, port: u16) {
    let _: String = replica.ask(&["REPLICAOF", "127.0.0.1", &port.to_string()]);
}

/// Has it all that the primary has, and does that one count it among its replicas?
pub(crate) fn is_in_step(replica: &RedisServer, primary: &RedisServer) -> bool {
    let told: String = replica.ask(&["INFO", "replication"]);
    let counted: String = primary.ask(&["INFO", "replication"]);
    told.contains("master_link_status:up")
        && told.contains("master_sync_in_progress:0")
        && counted.contains("state=online")
}
