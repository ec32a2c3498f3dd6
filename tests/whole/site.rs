//! A server and clients as processes, in a folder of their own, on a free port.

use crate::http::{HttpClient, PATIENCE, poll};
use serde_json::Value;
use sojourn_protocol::digest::{BlobRef, Digest};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::OnceLock,
    time::Instant,
};
use tempfile::TempDir;

/// The program under test; its trainer lies beside it.
pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_sojourn"))
}

/// A process that is killed when the test ends.
pub(crate) struct Process(Child);

impl Process {
    /// `SIGKILL`, and its end.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// `SIGTERM`, once it is ready for that, and its exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        // One that was just started would be ended by the signal itself.
        poll(|| (self.catches_term() || !self.is_running()).then_some(()));
        self.signal(rustix::process::Signal::TERM);
        self.0.wait().unwrap().code()
    }

    fn catches_term(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id()));
        let status = status.unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        caught.is_some_and(|mask| mask >> (rustix::process::Signal::TERM.as_raw() - 1) & 1 == 1)
    }

    /// The process's id.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Any other signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// The process's exit code, when it ends by itself.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    /// Kills its children (a client's trainers) with `SIGKILL`; says how many there were.
    pub(crate) fn kill_children(&self) -> usize {
        let pid = self.0.id();
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let children =
            tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        let pids: Vec<i32> = children
            .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
            .filter_map(|pid| pid.parse().ok())
            .collect();
        for pid in &pids {
            if let Some(pid) = rustix::process::Pid::from_raw(*pid) {
                // It may have ended by itself.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        pids.len()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The folder, the server and what is known of it.
pub(crate) struct Site {
    folder: TempDir,
    pub(crate) server: Process,
    pub(crate) url: String,
    pub(crate) token: String,
    pub(crate) enrolment: String,
    listen: String,
    secured: Option<Secured>,
    /// More arguments of the server.
    more: Vec<String>,
    environment: Vec<(&'static str, String)>,
    http: OnceLock<HttpClient>,
}

/// The certificate and key of a server that speaks TLS, and the authority that its clients trust.
pub(crate) struct Secured {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) ca: PathBuf,
}

impl Site {
    /// Starts a server with leases of two seconds.
    pub(crate) fn start() -> Self {
        Self::start_with_hops(1)
    }

    /// The same, where a machine gets up to so many hops at once.
    pub(crate) fn start_with_hops(most_hops: u32) -> Self {
        Self::with(tempfile::tempdir().unwrap(), None, hops(most_hops), vec![])
    }

    /// The same in this folder, with these arguments.
    pub(crate) fn start_in(folder: TempDir, more: Vec<String>) -> Self {
        Self::with(folder, None, [hops(1), more].concat(), vec![])
    }

    /// The same, where the blobs are in a folder that other processes reach too, and these alone assimilate.
    pub(crate) fn start_without_assimilators() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let blobs = blobs_of(folder.path());
        let more = ["--assimilators", "0", "--blobs", &blobs].map(str::to_owned);
        Self::with(folder, None, [hops(1), more.to_vec()].concat(), vec![])
    }

    /// The same, where the blobs are in an object store that is reached so.
    pub(crate) fn start_with_store(url: &str, environment: Vec<(&'static str, String)>) -> Self {
        let more = ["--blobs", url].map(str::to_owned);
        let folder = tempfile::tempdir().unwrap();
        Self::with(folder, None, [hops(1), more.to_vec()].concat(), environment)
    }

    /// The same, where other servers have the same journal and others assimilate.
    pub(crate) fn start_shared(
        journal: &str,
        blobs: &str,
        environment: Vec<(&'static str, String)>,
    ) -> Self {
        let more = ["--assimilators", "0", "--journal", journal, "--blobs", blobs];
        let more = [hops(1), more.map(str::to_owned).to_vec()].concat();
        Self::with(tempfile::tempdir().unwrap(), None, more, environment)
    }

    /// Another server (again) that is started in the same way, in a folder of its own; its address.
    pub(crate) fn other_server(&self, name: &str, listen: &str) -> (Process, String) {
        let data = self.path().join(name);
        let _ = fs::remove_file(data.join("address"));
        serve(self.path(), &data, listen, None, &self.more, &self.environment)
    }

    /// The same over TLS, at `localhost`; `folder` is where the certificates are.
    pub(crate) fn start_secured(folder: TempDir, secured: Secured) -> Self {
        let site = Self::with(folder, Some(secured), hops(1), vec![]);
        let url = site.listen.replace("127.0.0.1", "https://localhost");
        Self { url, ..site }
    }

    fn with(
        folder: TempDir,
        secured: Option<Secured>,
        more: Vec<String>,
        environment: Vec<(&'static str, String)>,
    ) -> Self {
        let data = folder.path().join("server");
        let (server, listen) =
            serve(folder.path(), &data, "127.0.0.1:0", secured.as_ref(), &more, &environment);
        let read = |name: &str| fs::read_to_string(data.join(name)).unwrap().trim().to_owned();
        let (token, enrolment) = (read("admin-token"), read("enrol-token"));
        let url = format!("http://{listen}");
        let http = OnceLock::new();
        Self { folder, server, url, token, enrolment, listen, secured, more, environment, http }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path().join("server")
    }

    /// Starts the server again, on the same data and address.
    pub(crate) fn restart(&mut self) {
        self.server.kill();
        fs::remove_file(self.data().join("address")).unwrap();
        let (server, listen) = serve(
            self.path(),
            &self.data(),
            &self.listen,
            self.secured.as_ref(),
            &self.more,
            &self.environment,
        );
        assert_eq!(listen, self.listen);
        self.server = server;
    }

    /// Starts (again) a client with one slot in a folder of its own.
    pub(crate) fn client(&self, name: &str) -> Process {
        self.client_with(name, &[])
    }

    /// The same with these arguments; with as many slots as they say.
    pub(crate) fn client_with(&self, name: &str, more: &[&str]) -> Process {
        self.start_client(name, self.client_command(name, more))
    }

    /// Starts (again) a client by a command, which was made for this name.
    pub(crate) fn start_client(&self, name: &str, command: Command) -> Process {
        spawn(command, &self.path().join(format!("{name}.log")))
    }

    /// The command that starts such a client; by its environment it knows the server and how to enrol.
    pub(crate) fn client_command(&self, name: &str, more: &[&str]) -> Command {
        let data = self.path().join(name);
        let mut command = Command::new(program());
        command
            .arg("client")
            .env("SOJOURN_SERVER", &self.url)
            .env("SOJOURN_ENROL_TOKEN", &self.enrolment)
            .args(["--name", name, "--data"])
            .arg(data)
            .args(["--slots", "1"].iter().filter(|_| !more.contains(&"--slots")))
            .args(more)
            .env("SOJOURN_METADATA", "none");
        if let Some(Secured { ca, .. }) = &self.secured {
            command.arg("--ca").arg(ca);
        }
        command
    }

    /// Where the blobs are, for other processes.
    pub(crate) fn blobs(&self) -> String {
        let at = self.more.iter().position(|word| word == "--blobs").unwrap();
        self.more[at + 1].clone()
    }

    /// Starts (again) a process that assimilates, one unit at a time, and says each step in its log.
    pub(crate) fn assimilator(&self, name: &str) -> Process {
        self.assimilator_with(name, &[])
    }

    /// The same with these arguments.
    pub(crate) fn assimilator_with(&self, name: &str, more: &[&str]) -> Process {
        let token = fs::read_to_string(self.data().join("assimilator-token")).unwrap();
        let mut command = Command::new(program());
        command
            .args(["assimilate", "--server", &self.url])
            .env("SOJOURN_ASSIMILATOR_TOKEN", token.trim())
            .args(["--blobs", &self.blobs(), "--threads", "1", "--name", name])
            .args(more)
            .envs(self.environment.iter().map(|(word, value)| (word, value)))
            .env("SOJOURN_LOG", "info,sojourn_unit=debug");
        spawn(command, &self.path().join(format!("{name}.log")))
    }

    /// Runs a command against the server.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// A command that knows the server and its token.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(args)
            .env("SOJOURN_SERVER", &self.url)
            .env("SOJOURN_TOKEN", &self.token)
            .env("XDG_CACHE_HOME", self.path().join("cache"))
            .current_dir(self.path());
        if let Some(Secured { ca, .. }) = &self.secured {
            command.env("SOJOURN_CA", ca);
        }
        command
    }

    /// Runs a command that prints JSON; tries again while the server is away.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let args = [args, &["--json"]].concat();
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            let output = self.run(&args);
            match output.status.code() {
                Some(0) => return serde_json::from_slice(&output.stdout).unwrap(),
                Some(3) => {}
                code => {
                    let error = String::from_utf8_lossy(&output.stderr);
                    panic!("sojourn {args:?} ended with {code:?}: {error}");
                }
            }
        }
        panic!("the server never came back; its log:\n{}", self.log("server"));
    }

    /// Trains a trial of `job.toml` from this file alone, in the class in which it was trained: speeds decide which that is.
    pub(crate) fn train_alone(&self, trial: usize, class: &Value) -> Value {
        let number = trial.to_string();
        let train = |more: &[&str]| {
            self.json(&[&["replay", "job.toml", "--trial", number.as_str()], more].concat())
        };
        let fastest = train(&[]);
        let trained = if fastest["numeric_class"] == *class {
            fastest
        } else {
            train(&["--instructions", "avx2"])
        };
        assert_eq!(trained["numeric_class"], *class, "trial {trial}");
        trained
    }

    /// Submits a digits job of four trials, two mlps and two cnns.
    pub(crate) fn submit(&self, seed: u64, epochs: u32) -> String {
        self.submit_with(seed, epochs, "[1e-3, 3e-3]", "")
    }

    /// The same with these learning rates and lines of `[placement]`.
    pub(crate) fn submit_with(
        &self,
        seed: u64,
        epochs: u32,
        rates: &str,
        placement: &str,
    ) -> String {
        let csv = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/digits/digits.csv");
        fs::copy(csv, self.path().join("digits.csv")).unwrap();
        let job = format!(
            r#"name = "digits"
seed = {seed}
[data]
train = "digits.csv"
label = "label"
shape = [1, 8, 8]
scale = "standard"
valid = 0.2
shards = 3
[[model]]
arch = "mlp"
hidden = [32]
[[model]]
arch = "cnn"
channels = [4]
[training]
epochs = {epochs}
batch_size = 32
optimizer = {{ name = "adam", lr = {{ choice = {rates} }} }}
schedule = {{ name = "cosine" }}
[placement]
{placement}
"#
        );
        fs::write(self.path().join("job.toml"), job).unwrap();
        let answer = self.json(&["submit", "job.toml"]);
        answer["job"].to_string()
    }

    fn http(&self) -> &HttpClient {
        let ca = self.secured.as_ref().map(|secured| secured.ca.as_path());
        self.http.get_or_init(|| HttpClient::new(&self.token, ca))
    }

    /// Stores a blob at the server.
    pub(crate) fn publish(&self, bytes: &[u8]) -> BlobRef {
        let blob = BlobRef { sha256: Digest::of(bytes), bytes: bytes.len() as u64 };
        self.http().put_blob(&self.url, blob, bytes).unwrap();
        blob
    }

    /// The server's answer to one HTTP call with this body.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        self.http().post(&self.url, path, body).unwrap()
    }

    /// Asks the server by one HTTP call, e.g. for `hosts`; tries again while it is away.
    pub(crate) fn get(&self, path: &str) -> Value {
        let answer = poll(|| self.http().get(&self.url, path));
        answer.unwrap_or_else(|| panic!("the server never came back:\n{}", self.log("server")))
    }

    /// A job's trials.
    pub(crate) fn trials(&self, job: &str) -> Value {
        self.get(&format!("jobs/{job}/trials"))
    }

    /// The job's counts.
    pub(crate) fn job(&self, job: &str) -> Value {
        let jobs = self.get("jobs");
        let jobs = jobs.as_array().expect("a list of jobs");
        jobs.iter().find(|view| view["job"].as_u64() == job.parse().ok()).expect("the job").clone()
    }

    /// Asks for the job until `done` accepts what it has come to.
    pub(crate) fn wait(&self, job: &str, mut done: impl FnMut(&Value) -> bool) -> Value {
        let view = poll(|| Some(self.job(job)).filter(|view| done(view)));
        view.unwrap_or_else(|| panic!("waited in vain: {}", self.job(job)))
    }

    pub(crate) fn log(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(format!("{name}.log"))).unwrap_or_default()
    }

    /// Reads a log until it says `text`: a process may say it after it can be asked.
    pub(crate) fn logged(&self, name: &str, text: &str) {
        let said = poll(|| self.log(name).contains(text).then_some(()));
        assert!(said.is_some(), "no `{text}` in:\n{}", self.log(name));
    }
}

fn hops(most: u32) -> Vec<String> {
    vec!["--most-hops".to_owned(), most.to_string()]
}

fn blobs_of(folder: &Path) -> String {
    format!("file://{}/store", folder.display())
}

/// Starts a server and waits for its address.
fn serve(
    folder: &Path,
    data: &Path,
    listen: &str,
    secured: Option<&Secured>,
    more: &[String],
    environment: &[(&str, String)],
) -> (Process, String) {
    let mut command = Command::new(program());
    command.args(["serve", "--listen", listen, "--lease-seconds", "2", "--data"]).arg(data);
    if secured.is_none() {
        // Some listen in a network of their own.
        command.arg("--insecure");
    }
    command.args(more).envs(environment.iter().map(|(word, value)| (word, value)));
    if let Some(Secured { certificate, key, .. }) = secured {
        command.arg("--tls-cert").arg(certificate).arg("--tls-key").arg(key);
    }
    let log = folder.join("server.log");
    let mut server = spawn(command, &log);
    let address = listening(data, &mut server, &log);
    (server, address)
}

/// Waits until a server has written where it listens.
pub(crate) fn listening(data: &Path, server: &mut Process, log: &Path) -> String {
    let address = poll(|| {
        let address = fs::read_to_string(data.join("address")).unwrap_or_default();
        let text = || fs::read_to_string(log).unwrap_or_default();
        assert!(server.is_running(), "the server ended:\n{}", text());
        Some(address.trim().to_owned()).filter(|address| !address.is_empty())
    });
    address.unwrap_or_else(|| panic!("the server never listened"))
}

pub(crate) fn spawn(mut command: Command, log: &Path) -> Process {
    let file = File::options().create(true).append(true).open(log).unwrap();
    if !command.get_envs().any(|(name, _)| name == "SOJOURN_LOG") {
        command.env("SOJOURN_LOG", "info");
    }
    let child = command
        .stdin(Stdio::null())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .spawn()
        .unwrap();
    Process(child)
}
