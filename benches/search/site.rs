//! A server, clients and a job as processes in a folder of their own, and what they cost.

use crate::{job::Job, line::line};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    cell::RefCell,
    fs::{self, File},
    io::{Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Clock ticks a second in `/proc/PID/stat`, on every Linux that this runs on.
const TICKS: f64 = 100.0;
/// A day, in milliseconds.
const DAY: f64 = 86_400e3;

/// A process that is killed with its site.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The folder and the processes.
pub(crate) struct Site {
    folder: TempDir,
    server: Process,
    clients: RefCell<Vec<Process>>,
    url: String,
}

impl Site {
    /// Starts a server, with the job's files beside it.
    pub(crate) fn start(job: &Job) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("job.toml"), &job.text).unwrap();
        fs::write(folder.path().join("digits.csv"), &job.data).unwrap();
        let data = folder.path().join("server");
        let mut command = program();
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data);
        let server = spawn(command, &folder.path().join("server.log"));
        let address = data.join("address");
        await_that("the server starts", || address.exists());
        let url = format!("http://{}", fs::read_to_string(address).unwrap().trim());
        Self { folder, server, clients: RefCell::default(), url }
    }

    /// Starts a client.
    pub(crate) fn client(&self, name: &str, slots: u32) {
        self.client_with(name, slots, &[]);
    }

    /// Starts a client of one slot on a line of its own, which carries so many bytes a second each way. Its
    /// log says what its slot does.
    pub(crate) fn client_over(&self, name: &str, rate: f64) {
        let server = self.url.trim_start_matches("http://").parse().unwrap();
        let url = format!("http://{}", line(server, rate));
        let mut command = self.client_command(name, 1, &url);
        command.env("SOJOURN_LOG", "sojourn_unit=debug");
        let client = spawn(command, &self.log(name));
        self.clients.borrow_mut().push(client);
    }

    /// The log of a process.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.log"))
    }

    /// The same with these arguments.
    pub(crate) fn client_with(&self, name: &str, slots: u32, more: &[&str]) {
        let client = self.start_client(name, slots, more);
        self.clients.borrow_mut().push(client);
    }

    /// Starts a client that has ended, with the folder that it had.
    pub(crate) fn again(&self, client: usize, name: &str, slots: u32, more: &[&str]) {
        let again = self.start_client(name, slots, more);
        self.clients.borrow_mut()[client] = again;
    }

    /// `SIGKILL`.
    pub(crate) fn kill(&self, client: usize) {
        let process = &mut self.clients.borrow_mut()[client].0;
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// `SIGTERM`, which is heeded as a notice is.
    pub(crate) fn end(&self, client: usize) {
        let process = &mut self.clients.borrow_mut()[client].0;
        kill_process(Pid::from_child(process), Signal::TERM).unwrap();
        assert!(process.wait().unwrap().success(), "a client ends well when it is told to");
    }

    fn start_client(&self, name: &str, slots: u32, more: &[&str]) -> Process {
        let mut command = self.client_command(name, slots, &self.url);
        command.args(more);
        spawn(command, &self.log(name))
    }

    fn client_command(&self, name: &str, slots: u32, url: &str) -> Command {
        let mut command = program();
        command
            .args(["client", "--server", url, "--name", name])
            .args(["--slots", &slots.to_string(), "--token", &self.token("enrol-token"), "--data"])
            .arg(self.folder.path().join(name))
            .args(["--metadata", "none"]);
        command
    }

    /// Waits until so many hosts have been heard of with their trainers ready.
    pub(crate) fn await_hosts(&self, count: usize) {
        await_that("the clients start", || {
            let hosts = self.read(&["hosts"]);
            let hosts = hosts.as_array().cloned().unwrap_or_default();
            hosts
                .iter()
                .filter(|host| {
                    host["devices"].as_array().is_some_and(|devices| !devices.is_empty())
                })
                .count()
                == count
        });
    }

    /// Submits the job and waits for its end; what the command says.
    pub(crate) fn submit_and_wait(&self) -> Value {
        let job = self.folder.path().join("job.toml");
        self.read(&["submit", job.to_str().unwrap(), "--wait"])
    }

    /// Submits the job.
    pub(crate) fn submit(&self) {
        let job = self.folder.path().join("job.toml");
        self.run(&["submit", job.to_str().unwrap()]);
    }

    /// Is the job over?
    pub(crate) fn is_over(&self) -> bool {
        self.read(&["jobs"])[0]["state"] != "running"
    }

    /// The status of a client.
    pub(crate) fn status(&self, name: &str) -> Value {
        let mut command = program();
        command.args(["client", "ctl", "status", "--json", "--data"]);
        let output = command.arg(self.folder.path().join(name)).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Waits until so many units of a client have trained a batch.
    pub(crate) fn await_batches(&self, name: &str, units: u32) {
        await_that("the slots train", || {
            let begun = self.batches(name).into_iter().filter(|done| *done > 0.0).count();
            begun == usize::try_from(units).unwrap()
        });
    }

    /// The batches that a client's running units have trained.
    pub(crate) fn batches(&self, name: &str) -> Vec<f64> {
        let status = self.status(name);
        let units = status["units"].as_array().cloned().unwrap_or_default();
        units.iter().map(|unit| unit["state"]["running"]["done"].as_f64().unwrap_or(0.0)).collect()
    }

    /// The processor time of the clients without their trainers.
    pub(crate) fn client_seconds(&self) -> f64 {
        self.clients.borrow().iter().map(|client| seconds(client.0.id())).sum()
    }

    /// The trainers of all clients.
    pub(crate) fn trainers(&self) -> Vec<u32> {
        self.clients.borrow().iter().flat_map(|client| children(client.0.id())).collect()
    }

    /// The JSON of a command.
    pub(crate) fn read(&self, args: &[&str]) -> Value {
        serde_json::from_slice(&self.run(args)).unwrap()
    }

    /// The job's events.
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = self.run(&["events", "1"]);
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    /// Checkpoint uploads over hops, and downloads over hops and evaluations.
    pub(crate) fn transfers(&self) -> (f64, f64) {
        let health = self.health();
        let job = self.read(&["status", "1"])["summary"].take();
        let count = |value: &Value, name: &str| value[name].as_f64().unwrap();
        let hops = count(&job, "hops");
        let units = hops + count(&job, "evaluations");
        (count(&health, "checkpoint_uploads") / hops, count(&health, "blob_downloads") / units)
    }

    /// The largest resident memory of a client and its trainers so far, over its slots.
    pub(crate) fn resident_mb(&self) -> f64 {
        let clients = self.clients.borrow();
        let peaks = clients.iter().map(|client| {
            let trainers = children(client.0.id());
            let slots = u32::try_from(trainers.len()).unwrap();
            let all = trainers.into_iter().chain([client.0.id()]).map(peak_mb);
            all.sum::<f64>() / f64::from(slots)
        });
        peaks.fold(0.0, f64::max)
    }

    /// Milliseconds of processor time for each hop and each evaluation so far: of the server, and of the clients without their
    /// trainers.
    pub(crate) fn millis_per_unit(&self) -> (f64, f64) {
        let job = self.read(&["status", "1"])["summary"].take();
        let count = |name: &str| job[name].as_f64().unwrap();
        let units = count("hops") + count("evaluations");
        let per_unit = |seconds: f64| 1000.0 * seconds / units;
        (per_unit(seconds(self.server.0.id())), per_unit(self.client_seconds()))
    }

    /// Processor time of each part so far, for people.
    pub(crate) fn cost(&self) -> String {
        let clients = self.clients.borrow();
        let pids: Vec<u32> = clients.iter().map(|client| client.0.id()).collect();
        let trainers: f64 = pids.iter().flat_map(|pid| children(*pid)).map(seconds).sum();
        let daemons: f64 = pids.iter().map(|pid| seconds(*pid)).sum();
        let server = seconds(self.server.0.id());
        format!(
            "processor seconds: server {server:.2}, clients {daemons:.2}, trainers {trainers:.2}"
        )
    }

    fn health(&self) -> Value {
        let address = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET /v1/health HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    fn token(&self, name: &str) -> String {
        let text = fs::read_to_string(self.folder.path().join("server").join(name)).unwrap();
        text.trim().to_owned()
    }

    fn run(&self, args: &[&str]) -> Vec<u8> {
        let output = program()
            .args(args)
            .args(["--json", "--server", &self.url])
            .env("SOJOURN_TOKEN", self.token("admin-token"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "`sojourn {}` failed: {said}", args.join(" "));
        output.stdout
    }
}

/// The kind of an event.
pub(crate) fn kind(event: &Value) -> &str {
    event["kind"].as_str().unwrap()
}

/// When it was, in milliseconds.
pub(crate) fn at(event: &Value) -> f64 {
    event["at"].as_f64().unwrap()
}

pub(crate) fn first<'a>(events: &'a [Value], wanted: &str) -> &'a Value {
    events.iter().find(|event| kind(event) == wanted).unwrap()
}

pub(crate) fn last<'a>(events: &'a [Value], wanted: &str) -> &'a Value {
    events.iter().rfind(|event| kind(event) == wanted).unwrap()
}

/// The milliseconds between the end of each unit of a client's one slot and the beginning of the next.
pub(crate) fn idle(log: &str) -> Vec<f64> {
    let (mut idle, mut ended) = (Vec::new(), None);
    for line in log.lines() {
        if line.contains("unit finished") {
            ended = Some(of_day(line));
        } else if line.contains("unit started") {
            let ended: Option<f64> = ended.take();
            idle.extend(ended.map(|ended| (of_day(line) - ended).rem_euclid(DAY)));
        }
    }
    idle
}

/// The milliseconds of its day at which a line was written.
fn of_day(line: &str) -> f64 {
    let time = line.split_once('T').unwrap().1.split_once('Z').unwrap().0;
    1e3 * time.split(':').fold(0.0, |all, part| all * 60.0 + part.parse::<f64>().unwrap())
}

/// Of each hop that directly follows another: the milliseconds from one version to the next, without
/// those of its training.
pub(crate) fn beyond_training(events: &[Value]) -> Vec<f64> {
    let mut beyond = Vec::new();
    let (mut before, mut trained) = (None, 0.0);
    for event in events {
        match kind(event) {
            "report-acknowledged" => {
                let outcome = &event["event"]["report"]["outcome"];
                match outcome.pointer("/trained/train_micros").and_then(Value::as_f64) {
                    Some(micros) => trained = micros / 1e3,
                    // The slot was at an evaluation meanwhile.
                    None => before = None,
                }
            }
            "assimilated" => {
                let now = at(event);
                beyond.extend(before.map(|before: f64| now - before - trained));
                before = Some(now);
            }
            _ => {}
        }
    }
    beyond
}

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sojourn"));
    for variable in ["SERVER", "TOKEN", "ENROL_TOKEN", "DATA", "LOG", "TRAINER"] {
        command.env_remove(format!("SOJOURN_{variable}"));
    }
    command
}

fn spawn(mut command: Command, log: &Path) -> Process {
    let log = File::options().create(true).append(true).open(log).unwrap();
    let output = log.try_clone().unwrap();
    let child = command.stdin(Stdio::null()).stdout(output).stderr(log).spawn();
    Process(child.unwrap())
}

fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < PATIENCE, "waited too long until {what}");
        thread::sleep(LOOK_EVERY);
    }
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let texts: Vec<String> =
        tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok()).collect();
    texts
        .iter()
        .flat_map(|text| text.split_whitespace())
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// User and system time of a process.
pub(crate) fn seconds(pid: u32) -> f64 {
    let stat = fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat"))).unwrap_or_default();
    // The name may hold anything; the numbers follow its closing bracket.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let times = fields.split_whitespace().skip(11).take(2);
    times.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / TICKS
}

fn peak_mb(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<f64>().unwrap() * 1024.0 / 1e6
}
