//! A job of two clients with its blobs in S3 (a stand-in that checks signatures), and the same with its blobs in the
//! server's folder: every byte between clients and server, over those of blobs that clients fetched and sent.

use crate::{
    figure,
    ours::{Process, await_that, program, spawn},
    relay::Relay,
    s3::{BUCKET, StandIn},
};
use serde_json::Value;
use std::{fs, path::Path, process::Stdio};

const DIGITS: &str = include_str!("../../examples/digits/digits.csv");
const CLIENTS: [&str; 2] = ["client-1", "client-2"];
/// Checkpoints of 28 MB.
const JOB: &str = r#"name = "bench"
seed = 7
[data]
train = "digits.csv"
label = "label"
shape = [1, 8, 8]
valid = 0.2
shards = 4
[[model]]
arch = "mlp"
hidden = [1500, 1500]
[training]
epochs = 3
batch_size = 32
optimizer = { name = "adam", lr = { choice = [1e-3, 2e-3] } }
"#;

/// The bytes that a job moved.
struct Moved {
    through_server: f64,
    by_clients: f64,
}

impl Moved {
    fn ratio(&self) -> f64 {
        self.through_server / self.by_clients
    }
}

/// Prints the share of what clients move that goes through the server.
pub(crate) fn measure() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = runtime.block_on(StandIn::start());
    let blobs = format!("s3://{BUCKET}/bench");
    let past = run(&["--blobs", &blobs], &store.environment());
    let through = run(&[], &[]);
    for (what, moved) in [("in S3", &past), ("in the server's folder", &through)] {
        eprintln!(
            "blobs {what}: {:.3} MB between clients and server, {:.1} MB of blobs moved by clients",
            moved.through_server / 1e6,
            moved.by_clients / 1e6
        );
    }
    let name = "bytes through the server per GB that clients move, blobs in S3 by signed URLs, beside \
                blobs in the server's folder";
    figure(name, past.ratio() * 1e3, "MB/GB", through.ratio() * 1e3);
}

fn run(serve: &[&str], environment: &[(&'static str, String)]) -> Moved {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("digits.csv"), DIGITS).unwrap();
    fs::write(path.join("job.toml"), JOB).unwrap();
    let data = path.join("server");
    let mut command = program();
    command.args(["serve", "--listen", "127.0.0.1:0"]).args(serve).arg("--data").arg(&data);
    command.envs(environment.iter().map(|(word, value)| (word, value)));
    let _server = spawn(command);
    await_that("the server starts", || data.join("address").exists());
    let read = |name: &str| fs::read_to_string(data.join(name)).unwrap().trim().to_owned();
    let server = read("address");
    let relay = Relay::to(server.parse().unwrap());
    let token = read("admin-token");
    let ask = |args: &[&str]| -> Value {
        let mut command = program();
        command.args(args).args(["--json", "--server", &format!("http://{server}")]);
        answer(command.env("SOJOURN_TOKEN", &token).current_dir(path))
    };
    let url = format!("http://{}", relay.address);
    let start = |name: &&str| {
        let mut command = program();
        command.args(["client", "--server", &url, "--name", name, "--slots", "1"]);
        command.args(["--token", &read("enrol-token"), "--metadata", "none", "--data"]);
        command.arg(path.join(name));
        spawn(command)
    };
    let _clients: Vec<Process> = CLIENTS.iter().map(start).collect();
    let job = ask(&["submit", "job.toml", "--wait"]);
    let by_clients: u64 = CLIENTS.iter().map(|name| moved(path, name)).sum();
    assert!(job.to_string().contains("finished"), "the job ends well: {job}");
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    Moved { through_server: relay.passed() as f64, by_clients: by_clients as f64 }
}

/// Bytes of blobs that a client has fetched and sent.
fn moved(folder: &Path, client: &str) -> u64 {
    let mut command = program();
    command.args(["client", "ctl", "status", "--json", "--data"]).arg(folder.join(client));
    answer(&mut command)["month"]["bytes"].as_u64().unwrap()
}

fn answer(command: &mut std::process::Command) -> Value {
    let output = command.stderr(Stdio::piped()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
