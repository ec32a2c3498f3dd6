//! A Redis with a replica and a Sentinel, which makes the replica the primary once that is gone.

use crate::{
    contract::{at, records},
    redis::settings,
};
use sojourn_server::journal::{JournalError, OpenJournal, RedisJournals};
use std::{
    io::{BufRead as _, BufReader, Lines},
    net::TcpListener,
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

/// A `redis-server` on a port, whose output is read.
struct Process {
    port: u16,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts one that is ready, on a free port.
    fn start(folder: &Path, settings: &str, sentinel: bool) -> Self {
        loop {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            // Somebody else may have taken the port meanwhile.
            if let Some(process) = Self::start_at(folder, port, settings, sentinel) {
                return process;
            }
        }
    }

    fn start_at(folder: &Path, port: u16, settings: &str, sentinel: bool) -> Option<Self> {
        std::fs::create_dir_all(folder).unwrap();
        let file = folder.join("redis.conf");
        std::fs::write(&file, settings).unwrap();
        let mut command = Command::new("redis-server");
        command.arg(&file).args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
        command.arg("--dir").arg(folder);
        if sentinel {
            command.arg("--sentinel");
        }
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut process = Self { port, child, lines };
        let ready = ["eady to accept connections", "Sentinel ID is"];
        let taken = "Address already in use";
        (!process.says(&[ready[0], ready[1], taken]).contains(taken)).then_some(process)
    }

    /// Reads on until it says one of these; gives the line.
    fn says(&mut self, words: &[&str]) -> String {
        let mut told = String::new();
        loop {
            let line =
                self.lines.next().unwrap_or_else(|| panic!("it has ended:\n{told}")).unwrap();
            if words.iter().any(|word| line.contains(word)) {
                return line;
            }
            told.push_str(&line);
            told.push('\n');
        }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn a_failover_keeps_all_events_that_a_replica_had_to_have() {
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str| folder.path().join(name);
    let kept = "save \"\"\nrepl-diskless-sync-delay 0\nappendonly yes\nappendfsync always\n";
    let followed = "Synchronization with replica";
    let mut primary = Process::start(&of("primary"), kept, false);
    let replicaof = format!("{kept}replicaof 127.0.0.1 {}\n", primary.port);
    let mut replica = Process::start(&of("replica"), &replicaof, false);
    primary.says(&[followed]);
    let watches = format!(
        "sentinel monitor main 127.0.0.1 {} 1\nsentinel down-after-milliseconds main 300\n\
         sentinel failover-timeout main 3000\n",
        primary.port
    );
    let mut sentinel = Process::start(&of("sentinel"), &watches, true);
    // Without having heard of the replica it could make nobody the primary.
    sentinel.says(&["+slave slave"]);

    let url = format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port);
    let connect = |durability: &str| {
        RedisJournals::connect(settings(&url, durability, of("reached"))).unwrap()
    };
    let journals = connect("always,wait:1");
    let mut journal = journals.open().unwrap();
    journal.append(&records(1..=300)).unwrap();
    // Somebody who chose less goes on with a primary that is alone.
    primary.kill();
    assert!(matches!(journal.append(&records(301..=301)), Err(JournalError::Storage(_))));
    sentinel.says(&["+switch-master"]);
    let refused = journals.open().err().unwrap();
    assert!(
        matches!(refused, JournalError::Weak(_) | JournalError::Unreachable { .. }),
        "{refused}"
    );
    journals.leave();
    let alone = connect("always");
    let mut journal = alone.open().unwrap();
    assert_eq!(journal.read(at(0), 1000).unwrap(), records(1..=300));
    journal.append(&records(301..=302)).unwrap();
    alone.leave();

    // With a replica again there is one more place where an event is.
    let replicaof = format!("{kept}replicaof 127.0.0.1 {}\n", replica.port);
    let _other = Process::start(&of("other"), &replicaof, false);
    replica.says(&[followed]);
    let mut journal = journals.open().unwrap();
    assert_eq!(journal.tail(), at(302));
    journal.append(&records(303..=303)).unwrap();
}
