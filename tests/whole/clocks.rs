//! A server whose clock is set while a client trains: two hours forward and back, and ten years forward; and one that starts
//! with such a clock. No lease runs out by it, no wall time ends, no blob is deleted.

use crate::{
    http::{HttpClient, poll},
    site::{Process, program, spawn},
};
use serde_json::Value;
use sojourn_core::{BlobStatus, request};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    time::UnixMillis,
};
use sojourn_server::{
    ServeConfig, Server,
    shell::{Clock, SteadyClock},
};
use std::{
    fs,
    net::SocketAddr,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Instant, SystemTime, UNIX_EPOCH},
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

const HOUR: i64 = 3_600_000;
const TEN_YEARS: i64 = 10 * 366 * 24 * HOUR;
/// Hops of a job of two shards and one trial.
const EPOCHS: u64 = 12;
const HOPS: u64 = 2 * EPOCHS;

/// A server in this process, whose clock is so many milliseconds ahead of the machine's; its clients are processes.
struct Stepped {
    /// The server, which ends before the runtime and the folder.
    server: Option<Server>,
    runtime: Runtime,
    folder: TempDir,
    ahead: Arc<AtomicI64>,
    address: SocketAddr,
    admin: String,
    http: HttpClient,
}

impl Stepped {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let runtime = Runtime::new().unwrap();
        let ahead = Arc::new(AtomicI64::new(0));
        let address = "127.0.0.1:0".parse().unwrap();
        let server = serve(&runtime, folder.path(), address, &ahead);
        let address = server.ready().address;
        let admin = fs::read_to_string(folder.path().join("data/admin-token")).unwrap();
        let admin = admin.trim().to_owned();
        let http = HttpClient::new(&admin, None);
        Self { server: Some(server), runtime, folder, ahead, address, admin, http }
    }

    /// Somebody sets the clock.
    fn set(&self, ahead: i64) {
        self.ahead.store(ahead, Ordering::SeqCst);
    }

    /// Ends the server, and starts another with the clock as it is set.
    fn start_again(&mut self) {
        self.runtime.block_on(self.server.take().unwrap().stop());
        self.server = Some(serve(&self.runtime, self.folder.path(), self.address, &self.ahead));
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    fn client(&self) -> Process {
        let mut command = Command::new(program());
        command
            .args(["client", "--server", &self.url(), "--slots", "1"])
            .arg("--token-file")
            .arg(&self.server().ready().enrol_token_file)
            .arg("--data")
            .arg(self.path().join("client"))
            .env("SOJOURN_METADATA", "none");
        spawn(command, &self.path().join("client.log"))
    }

    fn assimilator(&self) -> Process {
        let token = fs::read_to_string(self.path().join("data/assimilator-token")).unwrap();
        let mut command = Command::new(program());
        command
            .args(["assimilate", "--server", &self.url(), "--threads", "1", "--blobs"])
            .arg(blobs(self.path()))
            .env("SOJOURN_ASSIMILATOR_TOKEN", token.trim());
        spawn(command, &self.path().join("assimilator.log"))
    }

    /// Runs a command against the server; its output, a line a value.
    fn run(&self, args: &[&str]) -> Vec<Value> {
        let output = Command::new(program())
            .args(args)
            .arg("--json")
            .env("SOJOURN_SERVER", self.url())
            .env("SOJOURN_TOKEN", &self.admin)
            .env("XDG_CACHE_HOME", self.path().join("cache"))
            .env("XDG_DATA_HOME", self.path().join("share"))
            .current_dir(self.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        let values = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
        values.collect::<Result<_, _>>().unwrap()
    }

    fn submit(&self, name: &str) -> String {
        let rows: String = (0..40).map(|i| format!("{i},{},{}\n", i * 2, i % 2)).collect();
        fs::write(self.path().join("t.csv"), format!("a,b,y\n{rows}")).unwrap();
        let job = format!(
            "name = \"{name}\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshards = 2\n[[model]]\narch = \"mlp\"\n\
             hidden = [4]\n[training]\nepochs = {EPOCHS}\n[search]\nwall_time = \"90min\"\n"
        );
        let file = format!("{name}.toml");
        fs::write(self.path().join(&file), job).unwrap();
        self.run(&["submit", &file])[0]["job"].to_string()
    }

    /// Waits until so many hops of a job are done.
    fn trained(&self, job: &str, hops: u64) -> Value {
        let done = || {
            let jobs = self.http.get(&self.url(), "jobs")?;
            let mut jobs = jobs.as_array().unwrap().iter();
            let job = jobs.find(|view| view["job"].as_u64() == job.parse().ok()).unwrap().clone();
            let is_over = job["state"] != "running";
            assert!(!is_over || job["hops"] == HOPS, "it ended too early: {job}");
            (is_over || (hops < HOPS && job["hops"].as_u64().unwrap() >= hops)).then_some(job)
        };
        poll(done).unwrap_or_else(|| panic!("waited in vain for hop {hops}"))
    }

    fn status(&self, blob: BlobRef) -> Option<BlobStatus> {
        let asked = self.server().shell().request(request::GetBlobStatus { blob: blob.sha256 });
        self.runtime.block_on(asked).unwrap()
    }

    /// The stamps of a job's events.
    fn stamps(&self, job: &str) -> Vec<u64> {
        let events = self.run(&["events", job]);
        events.iter().map(|event| event["at"].as_u64().unwrap()).collect()
    }
}

fn blobs(folder: &Path) -> String {
    format!("file://{}/store", folder.display())
}

fn serve(runtime: &Runtime, folder: &Path, address: SocketAddr, ahead: &Arc<AtomicI64>) -> Server {
    let mut config = ServeConfig::new(folder.join("data"), address);
    config.blobs = Some(blobs(folder));
    config.shell.core.most_hops = Some(1);
    let ahead = Arc::clone(ahead);
    let clock: Arc<dyn Clock> = Arc::new(SteadyClock::over(move || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let now = u64::try_from(now).unwrap();
        UnixMillis(now.saturating_add_signed(ahead.load(Ordering::SeqCst)))
    }));
    config.clock = clock;
    runtime.block_on(Server::start(config)).unwrap()
}

#[test]
fn a_clock_that_is_set_while_a_client_trains_expires_no_lease_and_ends_no_wall_time() {
    let site = Stepped::start();
    let begun = Instant::now();
    let job = site.submit("small");
    let (_assimilator, _client) = (site.assimilator(), site.client());
    for (step, ahead) in (0..).zip([2 * HOUR, -2 * HOUR, TEN_YEARS, 0, -TEN_YEARS, 0]) {
        site.trained(&job, 2 + 3 * step);
        site.set(ahead);
    }
    let view = site.trained(&job, HOPS);
    let took = u64::try_from(begun.elapsed().as_millis()).unwrap();
    assert_eq!(view["state"], "finished", "{view}");
    assert_eq!(view["leases_expired"], 0, "{view}");
    let stamps = site.stamps(&job);
    assert!(stamps.is_sorted(), "{stamps:?}");
    let length = stamps.last().unwrap() - stamps[0];
    // A second for the clocks' rounding.
    assert!(length <= took + took / 100 + 1_000, "{length} ms were stamped in {took} ms");
    let replay = &site.run(&["replay", &job, "--trial", "0"])[0];
    assert_eq!(replay["verdict"], "identical", "{replay}");
}

#[test]
fn a_server_that_starts_with_a_clock_that_is_ahead_ends_and_deletes_nothing() {
    for ahead in [2 * HOUR, TEN_YEARS] {
        let mut site = Stepped::start();
        let job = site.submit("small");
        let (mut assimilator, mut client) = (site.assimilator(), site.client());
        site.trained(&job, 3);
        // Data of a submission that is under way.
        let blob = BlobRef { sha256: Digest::of(b"awaited"), bytes: 7 };
        let published = site.server().shell().request(request::Published { blob });
        site.runtime.block_on(published).unwrap();

        site.set(ahead);
        site.start_again();
        assert_eq!(site.status(blob), Some(BlobStatus::Published));
        site.trained(&job, 9);
        // The clock is mended, and the journal is ahead of it: time goes on from there.
        site.set(0);
        site.start_again();
        let view = site.trained(&job, HOPS);
        assert_eq!(view["state"], "finished", "{view}");
        assert_eq!(view["leases_expired"], 0, "{view}");
        assert_eq!(site.status(blob), Some(BlobStatus::Published));
        let stamps = site.stamps(&job);
        assert!(stamps.is_sorted(), "{stamps:?}");
        assert_eq!(client.end(), Some(0));
        assert_eq!(assimilator.end(), Some(0));
    }
}
