//! The process that reads a job's data: started, answered, ended. A crash of it is a refusal of the data, and the server goes on.

use super::{
    BytesRead, DataBounds, DataStep, DraftFiles, DraftedJob, JobFiles, PrepareJob, PreparedJob,
    ReaderLimits,
    messages::{Answer, Message, Request, Wanted},
};
use serde::Serialize;
use sojourn_protocol::{figures, text::plain_line, time::Millis};
use std::{
    collections::VecDeque,
    ffi::OsString,
    io::{self, BufRead as _, BufReader, Read, Write as _},
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread::{self, JoinHandle},
    time::Duration,
};

/// Most bytes of a line of a reader. The longest has a job and its data, for which a request has 16 MiB, and the places of all shards.
const MAX_LINE: u64 = 32 << 20;
/// A reader that says nothing for so long is looked at: somebody may have ended it.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Messages that wait: a reader that says more waits too.
const MAX_WAITING: usize = 1;
/// Bytes of its error output that are kept: the last ones.
const KEPT_ERRORS: usize = 4096;
/// Characters of an error output in the log.
const MAX_LOGGED: usize = 1000;
/// Variables that begin so are the server's, its tokens and its journal's password among them.
const OWN_VARIABLES: &[u8] = b"SOJOURN_";

/// The signals by which a limit ends a process, with their numbers on Linux and macOS.
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;
/// The words with which Rust's runtime ends a process that gets no memory, and those of the system where a thread gets none.
const NO_MEMORY: [&str; 2] = ["memory allocation of", "os error 12"];

/// The program that reads data, with its arguments.
#[derive(Debug, Clone)]
pub struct ReaderProgram {
    program: PathBuf,
    arguments: Vec<OsString>,
}

/// A reader's process, killed where it is dropped before its end.
struct Reader {
    child: Child,
    /// The reader's input.
    answers: Option<ChildStdin>,
    messages: Receiver<Message>,
    errors: Option<JoinHandle<String>>,
}

impl ReaderProgram {
    /// A program that speaks as `messages` says.
    #[must_use]
    pub const fn new(program: PathBuf, arguments: Vec<OsString>) -> Self {
        Self { program, arguments }
    }

    /// This program itself, with arguments. Where the system has a name for the running program, that one is taken: an update may have
    /// put another in its place.
    ///
    /// # Errors
    /// Where the system doesn't say which program this is.
    pub fn own(arguments: Vec<OsString>) -> io::Result<Self> {
        let running = PathBuf::from("/proc/self/exe");
        let program = if running.exists() { running } else { std::env::current_exe()? };
        Ok(Self::new(program, arguments))
    }

    fn start(&self) -> io::Result<Reader> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The last of its errors are the words of its end, rather than a trace.
        command.env("RUST_BACKTRACE", "0");
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(OWN_VARIABLES) {
                command.env_remove(name);
            }
        }
        let mut child = command.spawn()?;
        let answers = child.stdin.take();
        let (sender, messages) = mpsc::sync_channel(MAX_WAITING);
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || {
                let mut lines = BufReader::new(output);
                while let Some(message) = next_message(&mut lines) {
                    if sender.send(message).is_err() {
                        return;
                    }
                }
            });
        }
        let errors = child.stderr.take().map(|errors| thread::spawn(move || last_of(errors)));
        Ok(Reader { child, answers, messages, errors })
    }
}

/// The next message; none at the end, or where a line is none.
fn next_message(lines: &mut BufReader<impl Read>) -> Option<Message> {
    let mut line = Vec::new();
    lines.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

/// The last bytes of an output, as text.
fn last_of(mut output: impl Read) -> String {
    let (mut last, mut buffer) = (VecDeque::new(), [0; KEPT_ERRORS]);
    while let Ok(read) = output.read(&mut buffer) {
        if read == 0 {
            break;
        }
        last.extend(buffer.iter().take(read));
        let above = last.len().saturating_sub(KEPT_ERRORS);
        last.drain(..above);
    }
    String::from_utf8_lossy(last.make_contiguous()).into_owned()
}

impl PrepareJob for ReaderProgram {
    fn prepare(
        &self,
        files: JobFiles<'_>,
        tell: &mut dyn FnMut(BytesRead),
    ) -> Result<PreparedJob, Vec<String>> {
        let JobFiles { text, folder, shards, hosts, earlier, bounds, limits } = files;
        let (text, shards_at) = (text.to_owned(), shards.to_owned());
        let wanted = Wanted::Job { text, shards: shards_at, hosts, earlier };
        let request = Request { folder: folder.to_owned(), limits, wanted };
        match self.read(&request, &*bounds, tell)? {
            Outcome::Made(job) => within(*job, shards),
            Outcome::Drafted(_) => Err(vec![damaged()]),
        }
    }

    fn draft(
        &self,
        files: DraftFiles<'_>,
        tell: &mut dyn FnMut(BytesRead),
    ) -> Result<DraftedJob, Vec<String>> {
        let DraftFiles { folder, data, label, bounds, limits } = files;
        let wanted = Wanted::Draft { data: data.to_owned(), label: label.map(str::to_owned) };
        let request = Request { folder: folder.to_owned(), limits, wanted };
        match self.read(&request, &*bounds, tell)? {
            Outcome::Drafted(job) => Ok(*job),
            Outcome::Made(_) => Err(vec![damaged()]),
        }
    }
}

/// The answer of a reader that has done what was wanted.
enum Outcome {
    Made(Box<PreparedJob>),
    Drafted(Box<DraftedJob>),
}

impl ReaderProgram {
    /// Runs a reader from its start to its end.
    fn read(
        &self,
        request: &Request,
        bounds: &dyn DataBounds,
        tell: &mut dyn FnMut(BytesRead),
    ) -> Result<Outcome, Vec<String>> {
        let mut reader = self.start().map_err(|error| {
            tracing::error!(%error, "the program that reads data can't be started");
            vec!["the server can't start the program that reads data; its log says why".to_owned()]
        })?;
        // A reader that ends before it has read this says why by its end.
        let _ = reader.send(request);
        let outcome = reader.serve(bounds, tell)?;
        let ended = reader.end();
        match (outcome, ended) {
            (Some(Ok(outcome)), Some((status, _))) if status.success() => Ok(outcome),
            (Some(Err(problems)), _) => Err(problems),
            (_, Some((status, errors))) => {
                let said = plain_line(&errors, MAX_LOGGED);
                tracing::warn!(%status, said, "reading the data of a new job ended early");
                Err(vec![why(status, &errors, &request.limits)])
            }
            (_, None) => Err(vec!["the end of the program that reads data isn't known".to_owned()]),
        }
    }
}

impl Reader {
    fn send(&mut self, line: &impl Serialize) -> io::Result<()> {
        let Some(input) = &mut self.answers else { return Ok(()) };
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        input.write_all(&bytes)?;
        input.flush()
    }

    /// Answers until the reader's output ends: what was wanted, or what is wrong with the data; none where the reader said neither.
    ///
    /// # Errors
    /// Why the bounds have ended it, where it asked nothing.
    fn serve(
        &mut self,
        bounds: &dyn DataBounds,
        tell: &mut dyn FnMut(BytesRead),
    ) -> Result<Option<Result<Outcome, Vec<String>>>, Vec<String>> {
        let go_on = || bounds.admit(DataStep::Read(0)).map_err(|why| vec![why]);
        let mut outcome = None;
        loop {
            let answer = match self.messages.recv_timeout(LOOK_INTERVAL) {
                Ok(Message::Read(read)) => {
                    tell(read);
                    go_on()?;
                    continue;
                }
                Ok(Message::Step(step)) => {
                    bounds.admit(step).map_or_else(Answer::No, |()| Answer::Yes)
                }
                Ok(Message::Url(url)) if bounds.admits_url(&url) => Answer::Yes,
                Ok(Message::Url(_)) => Answer::No("the operator doesn't allow it".to_owned()),
                Ok(Message::Made(job)) => {
                    outcome = Some(Ok(Outcome::Made(job)));
                    continue;
                }
                Ok(Message::Drafted(job)) => {
                    outcome = Some(Ok(Outcome::Drafted(job)));
                    continue;
                }
                Ok(Message::Wrong(problems)) => {
                    outcome = Some(Err(problems));
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {
                    // A decoder that doesn't come back asks nothing.
                    go_on()?;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(outcome),
            };
            // A reader that has ended reads no answer. Its end says why.
            let _ = self.send(&answer);
        }
    }

    /// Ends it where it hasn't ended with its output: how it ended, and the last of its errors.
    fn end(&mut self) -> Option<(ExitStatus, String)> {
        let _ = self.child.kill();
        let status = self.child.wait().ok()?;
        let errors = self.errors.take().and_then(|errors| errors.join().ok());
        Some((status, errors.unwrap_or_default()))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // One that has ended is neither killed nor waited for again.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The job, if all its blobs lie in the folder of its shards: what strangers' bytes have made of a reader might name any file of the
/// server.
fn within(job: PreparedJob, shards: &Path) -> Result<PreparedJob, Vec<String>> {
    let folder = shards.canonicalize().ok();
    let is_within = |file: &PathBuf| {
        let (file, folder) = (file.canonicalize().ok(), folder.as_ref());
        file.zip(folder).is_some_and(|(file, folder)| file.starts_with(folder))
    };
    if job.files.values().all(is_within) {
        Ok(job)
    } else {
        Err(vec![
            "the program that reads data named a file that isn't one of its shards".to_owned(),
        ])
    }
}

/// Why a reader ended that said neither a job nor what is wrong.
fn why(status: ExitStatus, errors: &str, limits: &ReaderLimits) -> String {
    let ReaderLimits { memory, seconds, file } = *limits;
    let elsewhere = "`sojourn submit` reads it on a machine of yours";
    if NO_MEMORY.iter().any(|words| errors.contains(words)) {
        let memory = figures::bytes(memory);
        return format!(
            "reading its data takes more than {memory} of memory (`--max-data-memory`): {elsewhere}"
        );
    }
    match status.signal() {
        Some(SIGXCPU) => {
            let time = figures::duration(Millis::from_secs(seconds).0);
            format!("reading its data takes more than {time} of processor time: {elsewhere}")
        }
        Some(SIGXFSZ) => format!(
            "its data becomes a file of more than {} (`--max-data-uploads`): {elsewhere}",
            figures::bytes(file)
        ),
        Some(signal) => format!(
            "its data ended the program that reads it (signal {signal}): a file is damaged, or hostile"
        ),
        None => damaged(),
    }
}

fn damaged() -> String {
    "its data ended the program that reads it: a file is damaged, or hostile".to_owned()
}

#[cfg(test)]
mod tests;
