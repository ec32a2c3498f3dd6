//! A server, processes that assimilate for it, and results that are reported all at once.

use crate::{Shape, connection::Connection, hosts};
use serde_json::Value;
use std::{
    fmt::Write as _,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A process that is killed with what it belongs to.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Seconds for each result, from the first report to the last version. The results are left in the folder.
pub(crate) fn seconds_per_result(shape: Shape, processes: u32, results: &Path) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let (_server, address) = serve(&folder);
    let token = |name: &str| {
        fs::read_to_string(folder.path().join("server").join(name)).unwrap().trim().to_owned()
    };
    submit(&folder, address, &token("admin-token"), shape);
    let mut hosts = hosts::trained(address, &token("enrol-token"), shape, results);
    let start = |_| assimilate(&folder, address, &token("assimilator-token"));
    let assimilators: Vec<Process> = (0..processes).map(start).collect();
    let mut connection = Connection::open(address, &token("admin-token"));
    let mut view = || -> Value {
        serde_json::from_slice(connection.call("GET", "/v1/assimilations", "", b"")).unwrap()
    };
    await_that("assimilators come", || {
        view()["assimilators"].as_array().map_or(0, Vec::len) == assimilators.len()
    });
    let begun = Instant::now();
    hosts.iter_mut().for_each(hosts::Host::report);
    let all = u64::from(shape.models * shape.results);
    await_that("all results are versions", || view()["ended"].as_u64() == Some(all));
    let took = begun.elapsed().as_secs_f64();
    let trials = read(&folder, address, &token("admin-token"), &["trials", "1"]);
    let versions = trials.as_array().unwrap().iter().map(|trial| trial["version"].as_u64());
    assert_eq!(versions.sum::<Option<u64>>(), Some(all), "each result is merged: {trials}");
    took / f64::from(shape.models * shape.results)
}

fn serve(folder: &TempDir) -> (Process, SocketAddr) {
    let data = folder.path().join("server");
    let mut command = program();
    command.args(["serve", "--listen", "127.0.0.1:0", "--assimilators", "0"]);
    command.args(["--most-hops", "1", "--most-copied", "0", "--lease-seconds", "3600"]);
    command.args(["--blobs", &blobs(folder), "--data"]).arg(&data);
    let server = spawn(command);
    let address = data.join("address");
    await_that("the server starts", || address.exists());
    (server, fs::read_to_string(address).unwrap().trim().parse().unwrap())
}

fn assimilate(folder: &TempDir, address: SocketAddr, token: &str) -> Process {
    let mut command = program();
    command.args(["assimilate", "--server", &format!("http://{address}"), "--token", token]);
    command.args(["--blobs", &blobs(folder), "--threads", "1"]);
    spawn(command)
}

fn blobs(folder: &TempDir) -> String {
    format!("file://{}/blobs", folder.path().display())
}

/// A job of models, each of which trains on all shards of its only epoch at once.
fn submit(folder: &TempDir, address: SocketAddr, token: &str, shape: Shape) {
    let Shape { models, results } = shape;
    let mut rows = (0..3072).fold(String::new(), |mut head, n| {
        write!(head, "p{n},").unwrap();
        head
    });
    rows.push_str("label\n");
    for row in 0..results.max(10) * 2 {
        (0..3072).for_each(|n| write!(rows, "{},", (n * 7 + row * 31) % 256).unwrap());
        writeln!(rows, "{}", row % 10).unwrap();
    }
    fs::write(folder.path().join("images.csv"), rows).unwrap();
    let rates: Vec<String> = (1..=models).map(|n| format!("{n}e-3")).collect();
    let job = format!(
        "name = \"bench\"\n[data]\ntrain = \"images.csv\"\nlabel = \"label\"\nshape = [3, 32, 32]\n\
         shards = {results}\n[[model]]\narch = \"resnet\"\ndepth = 164\n[training]\nepochs = 1\n\
         optimizer = {{ name = \"sgd\", lr = {{ choice = [{}] }} }}\n\
         [placement]\norder = \"merge\"\nmerge = \"vc-asgd\"\n",
        rates.join(", ")
    );
    let file = folder.path().join("job.toml");
    fs::write(&file, job).unwrap();
    read(folder, address, token, &["submit", file.to_str().unwrap()]);
}

/// The JSON of a command.
fn read(folder: &TempDir, address: SocketAddr, token: &str, args: &[&str]) -> Value {
    let mut command = program();
    command.args(args).args(["--json", "--server", &format!("http://{address}")]);
    let command = command.env("SOJOURN_TOKEN", token).current_dir(folder.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The command: cargo puts it into the folder above the benches' own.
fn built() -> PathBuf {
    let bench = std::env::current_exe().unwrap();
    let path = bench.parent().and_then(Path::parent).unwrap().join("sojourn");
    assert!(path.exists(), "`{}` is missing: `cargo build --release -p sojourn`", path.display());
    path
}

pub(crate) fn program() -> Command {
    let mut command = Command::new(built());
    for variable in ["SERVER", "TOKEN", "ENROL_TOKEN", "ASSIMILATOR_TOKEN", "DATA", "BLOBS"] {
        command.env_remove(format!("SOJOURN_{variable}"));
    }
    command.env("SOJOURN_LOG", "warn").stdin(Stdio::null());
    command
}

pub(crate) fn spawn(mut command: Command) -> Process {
    Process(command.stdout(Stdio::null()).spawn().unwrap())
}

pub(crate) fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < PATIENCE, "waited too long until {what}");
        thread::sleep(LOOK_EVERY);
    }
}
