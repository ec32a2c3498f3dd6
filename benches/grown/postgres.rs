//! Models as rows of a PostgreSQL, as it comes: each transaction is synced.

use crate::anchor::Model;
use postgres::{Client, NoTls};
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// The user that it runs as where this is root, since it refuses to run as root.
const NOBODY: u32 = 65_534;
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A server on a socket in a folder of its own.
pub(crate) struct Postgres {
    folder: TempDir,
    child: Child,
}

impl Postgres {
    /// One, where it is installed.
    pub(crate) fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            eprintln!("no `initdb` and `postgres` here: PostgreSQL is left out");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        // Its user must be able to enter the folder.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            chown(&data, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let command = |program: &str| {
            let program = programs.join(program);
            let mut command = Command::new(if is_root { Path::new("setpriv") } else { &program });
            if is_root {
                command.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")]);
                command.arg("--clear-groups").arg(program);
            }
            command.arg("-D").arg(data.join("of")).current_dir(&data).stdout(Stdio::null());
            command
        };
        let made = command("initdb").args(["-U", "bench", "-A", "trust"]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let child = command("postgres")
            .args(["-c", "listen_addresses=", "-k"])
            .arg(&data)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { folder, child };
        let mut client = server.client();
        let table = "CREATE TABLE models (model int PRIMARY KEY, value bytea NOT NULL);
                     ALTER TABLE models ALTER COLUMN value SET STORAGE EXTERNAL";
        client.batch_execute(table).unwrap();
        Some(server)
    }

    pub(crate) fn place(&self) -> String {
        format!("host={} user=bench dbname=postgres", self.folder.path().join("data").display())
    }

    fn client(&self) -> Client {
        let since = Instant::now();
        loop {
            match Client::connect(&self.place(), NoTls) {
                Ok(client) => return client,
                Err(error) => assert!(since.elapsed() < PATIENCE, "PostgreSQL starts: {error}"),
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    pub(crate) fn set(&self, model: u32, value: &[u8]) {
        let insert = "INSERT INTO models VALUES ($1, $2)
                      ON CONFLICT (model) DO UPDATE SET value = $2";
        self.client().execute(insert, &[&number(model), &value]).unwrap();
    }

    pub(crate) fn get(&self, model: u32) -> Vec<u8> {
        let select = "SELECT value FROM models WHERE model = $1";
        self.client().query_one(select, &[&number(model)]).unwrap().get(0)
    }

    pub(crate) fn connect(place: &str) -> Client {
        Client::connect(place, NoTls).unwrap()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // An immediate shutdown ends its own processes too.
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
        let _ = self.child.wait();
    }
}

impl Model for Client {
    fn update(&mut self, model: u32, change: impl Fn(&mut [u8])) {
        let mut transaction = self.transaction().unwrap();
        let select = "SELECT value FROM models WHERE model = $1 FOR UPDATE";
        let mut value: Vec<u8> = transaction.query_one(select, &[&number(model)]).unwrap().get(0);
        change(&mut value);
        let update = "UPDATE models SET value = $2 WHERE model = $1";
        transaction.execute(update, &[&number(model), &value]).unwrap();
        transaction.commit().unwrap();
    }
}

fn number(model: u32) -> i32 {
    i32::try_from(model).unwrap()
}

/// The folder of its programs.
fn programs() -> Option<PathBuf> {
    let told = Command::new("pg_config").arg("--bindir").output();
    let told = told.ok().filter(|output| output.status.success());
    let told = told.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = told.into_iter().chain(std::env::split_paths(&path));
    places
        .into_iter()
        .find(|place| ["initdb", "postgres"].iter().all(|name| place.join(name).is_file()))
}
