//! One trainer process: lines in, lines out, and the end of its log. Killed when dropped.

use crate::{
    config::{Mode, SlotConfig},
    device::{Device, MemoryRatio},
    error::SlotError,
    trainer_group::Member,
};
use parking_lot::Mutex;
use sojourn_protocol::{
    bounds::Bounded,
    report::{Failure, FailureKind},
    trainer::{Hello, Pace, ShardArrived, TRAINER_PROTOCOL, TrainerLine, TrainerRequest},
};
use std::{
    collections::VecDeque,
    env,
    future::pending,
    io,
    pin::{Pin, pin},
    process::Stdio,
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{ChildStderr, ChildStdin, ChildStdout, Command},
    sync::{mpsc::UnboundedReceiver, watch},
    task::JoinHandle,
    time::timeout,
};

/// How long a trainer may take to say hello: libtorch starts, and trains for a moment to measure itself.
const HELLO_WITHIN: Duration = Duration::from_secs(60);
/// The longest line that a trainer may send; a longer one is invalid. The sums of an evaluation fit, as they do into a report.
const MAX_LINE_BYTES: u64 = 16 << 20;
/// As much of a line of the trainer's log is read at once.
const MAX_LOG_BYTES: u64 = 1 << 20;
/// Lines of the log that a message shows.
const TAIL_LINES: usize = 12;
/// How long a process that has closed its output may take to end.
const END_WITHIN: Duration = Duration::from_secs(5);

/// The variable that PyTorch's allocator of GPU memory reads.
const ALLOCATOR: &str = "PYTORCH_CUDA_ALLOC_CONF";

/// The variable that sizes cuBLAS's workspace.
const CUBLAS_WORKSPACE: &str = "CUBLAS_WORKSPACE_CONFIG";

/// A trainer that has said hello.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) mode: Mode,
    pub(crate) hello: Hello,
    process: tokio::process::Child,
    requests: ChildStdin,
    lines: BufReader<ChildStdout>,
    log: Log,
    /// The pace that it goes at.
    pace: Pace,
    /// Goes after the process.
    member: Member,
}

/// The messages to a trainer about its running unit.
#[derive(Debug)]
pub(crate) struct UnitMessages<'a, Stop> {
    /// The unit is to stop when this future ends; `None` once the trainer was told to stop.
    pub(crate) stop: Option<Pin<&'a mut Stop>>,
    /// The pace at which it is to compute.
    pub(crate) pace: watch::Receiver<Pace>,
    /// Shards that arrive.
    pub(crate) files: UnboundedReceiver<ShardArrived>,
}

/// Why there is no line.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The process has ended, or closed its output.
    Ended,
    /// A line that isn't a message of the protocol.
    InvalidLine(String),
    /// A hello of another version, whose fields are others.
    OtherProtocol(u32),
    /// The process's output can't be read.
    Read(io::Error),
    /// Nothing, for so long.
    Silent(Duration),
}

impl Child {
    /// Starts the program and waits for its hello.
    pub(crate) async fn start(config: &SlotConfig, mode: Mode) -> Result<Self, SlotError> {
        Self::start_within(config, mode, HELLO_WITHIN).await
    }

    async fn start_within(
        config: &SlotConfig,
        mode: Mode,
        limit: Duration,
    ) -> Result<Self, SlotError> {
        let trainer = config.trainer.clone();
        let failed = |source| SlotError::Start { trainer: trainer.clone(), source };
        let mut process = command(config, mode).spawn().map_err(failed)?;
        let pid = process.id().ok_or_else(|| failed(io::Error::other("it has no process id")))?;
        let member = config.trainer_group.enter(pid, config.own_group.clone());
        let pipe = || failed(io::Error::other("it has no pipes"));
        let requests = process.stdin.take().ok_or_else(pipe)?;
        let mut lines = BufReader::new(process.stdout.take().ok_or_else(pipe)?);
        let mut log = Log::follow(process.stderr.take().ok_or_else(pipe)?);
        let first = timeout(limit, read_line(&mut lines)).await;
        let hello = match first.unwrap_or(Err(Broken::Silent(limit))) {
            Ok(TrainerLine::Hello(hello)) => hello,
            Ok(other) => {
                let why = format!("its first message is {other:?}");
                return Err(SlotError::Hello { trainer, why });
            }
            Err(Broken::OtherProtocol(found)) => {
                return Err(SlotError::Protocol { trainer, found });
            }
            Err(broken) => {
                let why = describe(broken, &mut process, &mut log, &member).await.message;
                return Err(SlotError::Hello { trainer, why });
            }
        };
        if hello.protocol != TRAINER_PROTOCOL {
            return Err(SlotError::Protocol { trainer, found: hello.protocol });
        }
        // The client tells the server of it, which would refuse all that comes with it.
        if let Err(error) = Bounded::new(&hello.engine) {
            return Err(SlotError::Hello { trainer, why: format!("in its engine, {error}") });
        }
        member.works();
        Ok(Self { mode, hello, process, requests, lines, log, pace: Pace::FULL, member })
    }

    /// Has the process ended?
    pub(crate) fn is_dead(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    /// A failure that it has said, with the end of its log since the request began.
    pub(crate) fn failure(&self, said: Failure) -> Failure {
        said.with_log(&self.log.lines())
    }

    /// Sends a request, to be done at that pace.
    pub(crate) async fn begin(&mut self, request: &TrainerRequest, pace: Pace) -> io::Result<()> {
        self.log.lines.lock().clear();
        if self.pace != pace {
            self.pace = pace;
            send(&mut self.requests, &TrainerRequest::Pace(pace)).await?;
        }
        send(&mut self.requests, request).await
    }

    /// The next line of the trainer; meanwhile, messages are passed on to it.
    pub(crate) async fn line_or(
        &mut self,
        messages: &mut UnitMessages<'_, impl Future<Output = ()>>,
    ) -> Result<TrainerLine, Broken> {
        // One future for the whole line: dropping it would lose the bytes that it has read.
        let mut line = pin!(read_line(&mut self.lines));
        loop {
            let request = tokio::select! {
                biased;
                line = &mut line => return line,
                () = ended(&mut messages.stop) => {
                    messages.stop = None;
                    TrainerRequest::Stop
                }
                Some(file) = messages.files.recv() => TrainerRequest::ShardArrived(file),
                next = next(&mut messages.pace) => {
                    if next == self.pace {
                        continue;
                    }
                    self.pace = next;
                    TrainerRequest::Pace(next)
                }
            };
            // If that fails, the trainer has ended, and reading its line fails.
            send(&mut self.requests, &request).await.ok();
        }
    }

    /// How it ended; it is killed where it hasn't.
    pub(crate) async fn end(mut self, broken: Broken) -> Failure {
        describe(broken, &mut self.process, &mut self.log, &self.member).await
    }
}

fn command(config: &SlotConfig, mode: Mode) -> Command {
    let mut command = Command::new(&config.trainer);
    let threads = mode.threads().to_string();
    command
        .args(["--threads", &threads])
        .env("OMP_NUM_THREADS", &threads)
        .env("MKL_NUM_THREADS", &threads)
        // Threads that wait by spinning take the cores that the machine's owner works on.
        .env("OMP_WAIT_POLICY", "PASSIVE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    // Signals to the daemon's group (Ctrl-C) are the daemon's to deal with.
    command.process_group(0);
    if let Mode::Pinned { instructions, .. } = mode {
        command.envs(instructions.environment().iter().copied());
    }
    if let Device::Cuda { uuid, library } = &config.device {
        // The only one that the child can see is its first.
        command.env("CUDA_VISIBLE_DEVICES", uuid).args(["--device", "cuda:0"]);
        if let Mode::Pinned { .. } = mode {
            command.arg("--reproducible");
        }
        // cuBLAS is reproducible only with a workspace of a fixed size.
        if env::var_os(CUBLAS_WORKSPACE).is_none() {
            command.env(CUBLAS_WORKSPACE, ":4096:8");
        }
        // Loaded before the program begins: libtorch looks once, at its first tensor, what there is.
        // A library that can't be loaded is named in the log and left out; the trainer then finds no GPU.
        command.env("LD_PRELOAD", library);
        if let Some(ratio) = config.gpu_memory {
            let settings =
                [ALLOCATOR, "PYTORCH_ALLOC_CONF"].map(|name| env::var(name).unwrap_or_default());
            command.env(ALLOCATOR, allocator(ratio, &settings));
        }
    }
    command
}

/// The settings of PyTorch's GPU memory allocator: those of the environment, and the memory limit.
fn allocator(ratio: MemoryRatio, settings: &[impl AsRef<str>]) -> String {
    let present = settings.iter().map(AsRef::as_ref).find(|setting| !setting.is_empty());
    let prefix = present.map(|setting| format!("{setting},")).unwrap_or_default();
    format!("{prefix}per_process_memory_fraction:{ratio}")
}

/// Ends when the `stop` future does; never where there is none.
async fn ended(stop: &mut Option<Pin<&mut impl Future<Output = ()>>>) {
    match stop {
        Some(stop) => stop.as_mut().await,
        None => pending().await,
    }
}

/// The next pace; never ends where the sender is gone.
async fn next(pace: &mut watch::Receiver<Pace>) -> Pace {
    match pace.changed().await {
        Ok(()) => *pace.borrow_and_update(),
        Err(_) => pending().await,
    }
}

async fn send(requests: &mut ChildStdin, request: &TrainerRequest) -> io::Result<()> {
    let mut text = serde_json::to_vec(request)?;
    text.push(b'\n');
    requests.write_all(&text).await?;
    requests.flush().await
}

async fn read_line(lines: &mut (impl AsyncBufRead + Unpin)) -> Result<TrainerLine, Broken> {
    let mut line = Vec::new();
    lines.take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await.map_err(Broken::Read)?;
    if line.is_empty() {
        return Err(Broken::Ended);
    }
    serde_json::from_slice(&line).map_err(|_| {
        if let Some(found) = protocol_of(&line).filter(|found| *found != TRAINER_PROTOCOL) {
            return Broken::OtherProtocol(found);
        }
        let text = String::from_utf8_lossy(&line);
        Broken::InvalidLine(text.trim_end().chars().take(200).collect())
    })
}

/// The version that a hello names, whatever else it says.
fn protocol_of(line: &[u8]) -> Option<u32> {
    let line: serde_json::Value = serde_json::from_slice(line).ok()?;
    line.get("hello")?.get("protocol")?.as_u64()?.try_into().ok()
}

async fn describe(
    broken: Broken,
    process: &mut tokio::process::Child,
    log: &mut Log,
    member: &Member,
) -> Failure {
    let mut kind = FailureKind::Died;
    let what = match broken {
        Broken::Ended => match timeout(END_WITHIN, process.wait()).await {
            Ok(ended) => {
                let how = match &ended {
                    Ok(status) => format!("the trainer died ({status})"),
                    Err(error) => format!("the trainer died ({error})"),
                };
                match member.out_of_memory(&ended) {
                    Some(why) => {
                        kind = FailureKind::OutOfMemory;
                        format!("{why}: {how}")
                    }
                    None => how,
                }
            }
            Err(_) => "the trainer closed its output".into(),
        },
        Broken::InvalidLine(text) => format!("the trainer said `{text}`"),
        Broken::OtherProtocol(found) => {
            format!("the trainer speaks version {found}, this program {TRAINER_PROTOCOL}")
        }
        Broken::Read(error) => format!("the trainer's output can't be read ({error})"),
        Broken::Silent(limit) => format!("the trainer has said nothing for {limit:?}"),
    };
    // It may have ended already.
    process.kill().await.ok();
    let tail = log.tail().await;
    Failure { kind, message: what }.with_log(&tail)
}

/// The child's stderr: passed on to our log, its end kept for messages.
#[derive(Debug)]
struct Log {
    lines: Arc<Mutex<VecDeque<String>>>,
    reader: JoinHandle<()>,
}

impl Log {
    fn follow(stderr: ChildStderr) -> Self {
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&lines);
        let reader = tokio::spawn(async move {
            let mut stderr = BufReader::new(stderr);
            loop {
                let mut line = Vec::new();
                let read = (&mut stderr).take(MAX_LOG_BYTES).read_until(b'\n', &mut line).await;
                if !matches!(read, Ok(bytes) if bytes > 0) {
                    return;
                }
                let text: String =
                    String::from_utf8_lossy(&line).trim_end().chars().take(500).collect();
                tracing::debug!(target: "sojourn_trainer", "{text}");
                let mut kept = kept.lock();
                kept.push_back(text);
                if kept.len() > TAIL_LINES {
                    kept.pop_front();
                }
            }
        });
        Self { lines, reader }
    }

    /// The last lines so far.
    fn lines(&self) -> String {
        self.lines.lock().iter().cloned().collect::<Vec<_>>().join("\n")
    }

    /// The last lines, once the child has closed its stderr.
    async fn tail(&mut self) -> String {
        // A grandchild may hold it open: then what has come so far must do.
        timeout(END_WITHIN, &mut self.reader).await.ok();
        self.lines()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt};

    #[tokio::test]
    async fn a_trainer_that_never_says_hello_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let trainer = folder.path().join("trainer");
        fs::write(&trainer, "#!/bin/sh\necho 'waiting for a lock' >&2\nread never\n").unwrap();
        fs::set_permissions(&trainer, fs::Permissions::from_mode(0o755)).unwrap();
        let config = SlotConfig::new(trainer);
        let limit = Duration::from_millis(200);
        let started = Child::start_within(&config, Mode::Free { threads: 1 }, limit).await;
        let Err(SlotError::Hello { why, .. }) = started else { panic!("{started:?}") };
        assert!(why.starts_with("the trainer has said nothing for 200ms"), "{why}");
    }

    #[test]
    fn allocator_settings_of_the_environment_are_kept() {
        let half = MemoryRatio::of(1, 2);
        assert_eq!(allocator(half, &["", ""]), "per_process_memory_fraction:0.5000");
        let settings = allocator(half, &["", "expandable_segments:True"]);
        assert_eq!(settings, "expandable_segments:True,per_process_memory_fraction:0.5000");
    }
}
