//! The main job as people watch it: a model search over real data, on a server and three clients, while
//! a client and the server are killed under it; then the proof that nothing was lost or counted twice, and that the job file
//! alone makes the same model.
//!
//! ```text
//!   serve ---- client 1          SIGSTOP, look that it holds a lease, SIGKILL: its lease runs out,
//!      |  '--- client 2 (killed)  another host does the unit; the client starts again later
//!      '------ client 3          SIGKILL of the server in the middle; started again on the same data
//! ```
//!
//! Everything goes through the same commands and the same HTTP interface as anybody's job.

mod figures;
mod machine;

pub(crate) use figures::{Figures, Summary};

use crate::{
    api_client::ApiClient,
    cli::{
        render::{
            progress::{Meter, Unit},
            text,
        },
        terminal::exit::Failure,
    },
    replay::trial::replay_trial,
};
use machine::Machine;
use serde_json::Value;
use sojourn_api::endpoints;
use sojourn_client::GpuChoice;
use sojourn_http::Servers;
use sojourn_protocol::{
    digest::Digest,
    ids::{Epoch, JobId, TrialId},
    quantity::to_u64,
    view::{EventView, JobView},
};
use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

const DIGITS_CSV: &str = include_str!("../../examples/digits/digits.csv");
const DIGITS_JOB: &str = include_str!("../../examples/digits/job.toml");

const CLIENTS: usize = 3;
/// The index of the client that is killed.
const VICTIM: usize = 1;
/// A short lease, so that a killed client's units soon go to another.
const LEASE_SECONDS: &str = "4";
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The demo takes a minute or two; after this time it has failed.
const DEMO_TIMEOUT: Duration = Duration::from_secs(900);

/// The settings of a demo.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Where the model is written.
    pub(crate) output: PathBuf,
    /// Epochs of every trial.
    pub(crate) epochs: u32,
    /// The server stays after the end.
    pub(crate) stay: bool,
}

/// Runs the demo; `say` receives a line for each thing that happens, and `show` what came of it. One that stays goes on until it is
/// dropped.
///
/// # Errors
/// Where a promise that the demo shows isn't kept.
pub(crate) async fn run(
    plan: &Plan,
    say: &dyn Fn(&str),
    show: &dyn Fn(&Summary) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let folder = tempfile::Builder::new().prefix("sojourn-demo-").tempdir();
    let folder =
        folder.map_err(|error| Failure::work(format!("no folder for the demo: {error}")))?;
    fs::create_dir_all(&plan.output)
        .map_err(|error| Failure::work(format!("`{}`: {error}", plan.output.display())))?;
    let mut processes = Processes::start(folder.path(), say).await?;
    let job = processes.submit(plan.epochs).await?;
    say(&format!("watch it at {}", processes.page(job)));
    say(&format!("sign in with {}", processes.token));
    let since = Instant::now();
    processes.watch(job, say).await?;
    let seconds = since.elapsed().as_secs_f64();
    let summary = processes.prove(job, plan, seconds, say).await?;
    show(&summary)?;
    if plan.stay {
        say(&format!("the page stays at {}; Ctrl-C ends it", processes.page(job)));
        std::future::pending::<()>().await;
    }
    processes.end().await
}

/// The processes, and what was done to them.
struct Processes<'a> {
    folder: &'a Path,
    address: String,
    api: ApiClient,
    token: String,
    enrolment: String,
    server: Machine,
    clients: Vec<Machine>,
    killed: Option<Killed>,
    server_restarts: u64,
    transferred: u64,
    begun: Instant,
}

/// A client that was killed, and whether it runs again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Killed {
    Away,
    Back,
}

impl<'a> Processes<'a> {
    async fn start(folder: &'a Path, say: &dyn Fn(&str)) -> Result<Self, Failure> {
        let begun = Instant::now();
        let data = folder.join("server");
        let mut server = start_server(folder, "127.0.0.1:0")?;
        let address = server.wait_for(&data.join("address")).await?;
        let token = server.wait_for(&data.join("admin-token")).await?;
        let enrolment = server.wait_for(&data.join("enrol-token")).await?;
        let url = format!("http://{address}");
        say(&format!("a server listens on {url}"));
        let servers =
            Servers::parse(&url, false).map_err(|error| Failure::work(error.to_string()))?;
        let api = ApiClient::new(servers, None, Some(token.clone()))?;
        let mut processes = Self {
            folder,
            address,
            api,
            token,
            enrolment,
            server,
            clients: Vec::new(),
            killed: None,
            server_restarts: 0,
            transferred: 0,
            begun,
        };
        for n in 0..CLIENTS {
            let client = processes.start_client(n)?;
            processes.clients.push(client);
        }
        say(&format!("{CLIENTS} clients start, one slot each"));
        Ok(processes)
    }

    /// The address of a job's page.
    fn page(&self, job: JobId) -> String {
        format!("{}/jobs/{job}", self.url())
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn start_client(&self, n: usize) -> Result<Machine, Failure> {
        let data = self.folder.join(client_name(n));
        let data = data.display().to_string();
        let name = client_name(n);
        let url = self.url();
        let args = ["client", "--server", &url, "--data", &data, "--name", &name, "--slots", "1"];
        Machine::start(self.folder, &name, &args, Some(&self.enrolment))
    }

    /// Submits the digits job with `sojourn submit`.
    async fn submit(&mut self, epochs: u32) -> Result<JobId, Failure> {
        let job = self.folder.join("job.toml");
        let text = DIGITS_JOB.lines().map(|line| {
            if line.starts_with("epochs = ") { format!("epochs = {epochs}") } else { line.into() }
        });
        let text: Vec<String> = text.collect();
        let write = |path: &Path, text: &str| {
            fs::write(path, text)
                .map_err(|error| Failure::work(format!("`{}`: {error}", path.display())))
        };
        write(&job, &text.join("\n"))?;
        write(&self.folder.join("digits.csv"), DIGITS_CSV)?;
        let job = job.display().to_string();
        let answer = self.sojourn(&["submit", &job, "--json"]).await?;
        let id = answer.get("job").and_then(Value::as_u64);
        id.map(JobId).ok_or_else(|| Failure::work(format!("`submit` answered {answer}")))
    }

    /// Runs a command that prints one JSON object.
    async fn sojourn(&self, args: &[&str]) -> Result<Value, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::work(format!("`sojourn {}`: {error}", args.join(" ")))
        };
        let output = machine::sojourn()
            .map_err(|error| failed(&error))?
            .args(args)
            .env("SOJOURN_SERVER", self.url())
            .env("SOJOURN_TOKEN", &self.token)
            .output()
            .await
            .map_err(|error| failed(&error))?;
        if !output.status.success() {
            return Err(failed(&String::from_utf8_lossy(&output.stderr)));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| failed(&error))
    }

    /// Watches the job to its end, and kills a client and the server on the way.
    async fn watch(&mut self, job: JobId, say: &dyn Fn(&str)) -> Result<(), Failure> {
        let since = Instant::now();
        let mut meter = Meter::new("searching", Unit::Steps, 0);
        let tell = |meter: &Meter, begun: Instant, text: &str| {
            meter.remark(&figures::stamped(begun, text));
        };
        loop {
            if since.elapsed() > DEMO_TIMEOUT {
                return Err(Failure::work("the search doesn't end"));
            }
            for (n, client) in self.clients.iter_mut().enumerate() {
                if n != VICTIM || self.killed != Some(Killed::Away) {
                    client.must_live()?;
                }
            }
            let view = self.api.call(endpoints::Job::request(job)).await?.summary;
            meter.set(view.hops, view.hops_expected, &figures::progress(&view));
            if view.state.has_ended() {
                break;
            }
            if self.killed.is_none() && percent_done(&view) >= 30 {
                let leases = self.kill_client().await?;
                let name = client_name(VICTIM);
                tell(
                    &meter,
                    self.begun,
                    &format!(
                        "SIGKILL to {name}, which held {}",
                        text::counted(to_u64(leases), "unit")
                    ),
                );
            }
            if self.killed == Some(Killed::Away) && view.leases_expired > 0 {
                let revived = self.start_client(VICTIM)?;
                if let Some(place) = self.clients.get_mut(VICTIM) {
                    *place = revived;
                }
                self.killed = Some(Killed::Back);
                let text = format!(
                    "{} ran out, to be done by others; {} starts again",
                    text::counted(view.leases_expired, "lease"),
                    client_name(VICTIM)
                );
                tell(&meter, self.begun, &text);
            }
            if self.server_restarts == 0 && percent_done(&view) >= 55 {
                self.restart_server().await?;
                let text = "SIGKILL to the server; it is started again on the same data";
                tell(&meter, self.begun, text);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        drop(meter);
        say("the search has ended");
        Ok(())
    }

    /// Kills a client in the middle of a unit: stops it first, so that what it holds stays as it is, and
    /// goes on only when the server knows it to hold a lease. Says how many it held.
    async fn kill_client(&mut self) -> Result<usize, Failure> {
        let since = Instant::now();
        loop {
            let client = self.clients.get_mut(VICTIM);
            let client = client.ok_or_else(|| Failure::work("no client to kill"))?;
            client.stop()?;
            // Requests that it had sent before it was stopped arrive meanwhile.
            tokio::time::sleep(POLL_INTERVAL).await;
            let hosts = self.api.call(endpoints::Hosts::request()).await?;
            let held = hosts.iter().find(|host| host.name == client_name(VICTIM));
            let held = held.map_or(0, |host| host.leases.len());
            if held > 0 {
                client.kill().await?;
                self.killed = Some(Killed::Away);
                return Ok(held);
            }
            client.go_on()?;
            if since.elapsed() > DEMO_TIMEOUT {
                return Err(Failure::work("the client to kill never holds a unit"));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    async fn restart_server(&mut self) -> Result<(), Failure> {
        self.count_transfers().await?;
        self.server.kill().await?;
        // Its address is known to the clients and must stay.
        let address = self.folder.join("server").join("address");
        fs::remove_file(&address)
            .map_err(|error| Failure::work(format!("`{}`: {error}", address.display())))?;
        self.server = start_server(self.folder, &self.address)?;
        self.server.wait_for(&address).await?;
        self.server_restarts += 1;
        Ok(())
    }

    /// Adds the bytes that the running server has sent and received.
    async fn count_transfers(&mut self) -> Result<(), Failure> {
        let health = self.api.call(endpoints::Health::request()).await?;
        self.transferred += health.received_bytes + health.sent_bytes;
        Ok(())
    }

    /// Exports and replays the best trial, and fails where a promise isn't kept.
    async fn prove(
        &mut self,
        job: JobId,
        plan: &Plan,
        seconds: f64,
        say: &dyn Fn(&str),
    ) -> Result<Summary, Failure> {
        self.count_transfers().await?;
        let view = self.api.call(endpoints::Job::request(job)).await?.summary;
        let trials = self.api.call(endpoints::Trials::request(job)).await?;
        let mut events: Vec<EventView> = Vec::new();
        loop {
            let after = events.last().map_or(0, |event| event.position);
            let more = self.api.call(endpoints::Events::request(job).after(after)).await?;
            if more.is_empty() {
                break;
            }
            events.extend(more);
        }
        let best = view.best.clone();
        let best = best.ok_or_else(|| Failure::work("no trial was evaluated"))?;
        let file = plan.output.join("best.safetensors");
        let (number, path) = (job.to_string(), file.display().to_string());
        self.sojourn(&["export", &number, "--best", "-o", &path, "--json"]).await?;
        say(&format!("the replay of trial {} begins, on this machine alone", best.trial));
        let replayed = replay_trial(&self.api, job, best.trial, &GpuChoice::Auto).await?;
        say(&format!("trial {} is trained from its job file, without a server", best.trial));
        let of_best = trials.iter().find(|trial| trial.trial == best.trial);
        let class = of_best.and_then(|trial| trial.numeric_class);
        let alone = self.train_alone(best.trial, best.epoch, class).await?;
        let summary = Summary::of(Figures {
            alone,
            view,
            trials,
            events,
            replayed,
            file,
            clients: CLIENTS,
            clients_killed: u64::from(self.killed.is_some()),
            server_restarts: self.server_restarts,
            transferred: self.transferred,
            search_seconds: seconds,
            seconds: self.begun.elapsed().as_secs_f64(),
        })?;
        summary.check()?;
        Ok(summary)
    }

    /// The digest of a checkpoint as this machine makes it from the job file alone, in the numeric class that the trial was in: a
    /// machine has several, and how fast they are found to be decides which one a job prefers.
    async fn train_alone(
        &self,
        trial: TrialId,
        epoch: Epoch,
        class: Option<Digest>,
    ) -> Result<Option<Digest>, Failure> {
        let (job, trial) = (self.folder.join("job.toml").display().to_string(), trial.to_string());
        let replay = ["replay", &job, "--trial", &trial, "--json"];
        let mut made = self.sojourn(&replay).await?;
        let is_of_class = |made: &Value| {
            let made = made.get("numeric_class").and_then(Value::as_str);
            class.is_none_or(|class| made == Some(class.to_string().as_str()))
        };
        if !is_of_class(&made) {
            made = self.sojourn(&[&replay[..], &["--instructions", "avx2"]].concat()).await?;
        }
        let sha256 = made.pointer(&format!("/epochs/{epoch}/sha256")).and_then(Value::as_str);
        Ok(sha256.and_then(|text| text.parse().ok()))
    }

    async fn end(mut self) -> Result<(), Failure> {
        for client in &mut self.clients {
            client.end().await?;
        }
        self.server.end().await
    }
}

fn start_server(folder: &Path, listen: &str) -> Result<Machine, Failure> {
    let data = folder.join("server").display().to_string();
    let args = ["serve", "--data", &data, "--listen", listen, "--lease-seconds", LEASE_SECONDS];
    Machine::start(folder, "server", &args, None)
}

fn client_name(n: usize) -> String {
    format!("client-{}", n + 1)
}

/// Percent of the hops that are done.
fn percent_done(view: &JobView) -> u64 {
    view.hops.saturating_mul(100).checked_div(view.hops_expected).unwrap_or(0)
}
