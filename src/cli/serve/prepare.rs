//! `sojourn prepare`: makes a job of files that a browser has sent. The server runs this command and answers its questions, so that
//! strangers' bytes are read in a process with limits of the kernel. The code is that of `sojourn submit`.

use crate::cli::{
    submit::{
        command::cut,
        graphs::PythonArgs,
        jobfile::{self, Problem},
        sharding::{Chosen, Known},
    },
    terminal::exit::Failure,
};
use serde::{Serialize, de::DeserializeOwned};
use sojourn_ingest::{Bounds, Progress, Refusal, Step};
use sojourn_server::{Answer, BytesRead, DataStep, Message, PreparedJob, Request};
use std::{
    fmt,
    io::{self, BufRead, BufReader, IsTerminal as _, Write},
    sync::{Arc, Mutex, PoisonError},
};

/// Reads the request from stdin, and writes what comes of it on stdout.
pub(crate) fn run() -> Result<(), Failure> {
    if io::stdin().is_terminal() {
        return Err(Failure::call(
            "a server runs this command over files that a browser has sent; `sojourn submit` reads yours",
        ));
    }
    let failed = |error: io::Error| Failure::work(format!("the server doesn't go on: {error}"));
    let server = Arc::new(Server::over(BufReader::new(io::stdin()), io::stdout()));
    let request: Request = server.hear().map_err(failed)?;
    request
        .limits
        .keep()
        .map_err(|error| Failure::work(format!("no limits can be set: {error}")))?;
    let mut tell = |read| {
        // Where the server is gone, the next question ends the reading.
        let _ = server.say(&Message::Read(read));
    };
    let outcome = match prepare(request, Arc::<Server<_, _>>::clone(&server), &mut tell) {
        Ok(job) => Message::Made(Box::new(job)),
        Err(problems) => Message::Wrong(problems),
    };
    server.say(&outcome).map_err(failed)
}

/// The server at the other end of two pipes.
struct Server<I, O>(Mutex<Pipes<I, O>>);

struct Pipes<I, O> {
    input: I,
    output: O,
}

impl<I, O> fmt::Debug for Server<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl<I: BufRead, O: Write> Server<I, O> {
    const fn over(input: I, output: O) -> Self {
        Self(Mutex::new(Pipes { input, output }))
    }

    fn say(&self, message: &Message) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).say(message)
    }

    fn hear<T: DeserializeOwned>(&self) -> io::Result<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).hear()
    }

    /// Several threads may ask: an answer is that of the question before it.
    fn ask(&self, question: &Message) -> Result<(), Refusal> {
        let mut pipes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match pipes.say(question).and_then(|()| pipes.hear()) {
            Ok(Answer::Yes) => Ok(()),
            Ok(Answer::No(why)) => Err(Refusal(why)),
            Err(error) => Err(Refusal(format!("the server is gone: {error}"))),
        }
    }
}

impl<I: BufRead, O: Write> Pipes<I, O> {
    fn say(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.output.write_all(&bytes)?;
        self.output.flush()
    }

    fn hear<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let mut line = String::new();
        self.input.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}

impl<I: BufRead + Send, O: Write + Send> Bounds for Server<I, O> {
    fn admit(&self, step: Step) -> Result<(), Refusal> {
        let step = match step {
            Step::Read(bytes) => DataStep::Read(bytes),
            Step::Unpacked(bytes) => DataStep::Unpacked(bytes),
            Step::Decoded(bytes) => DataStep::Decoded(bytes),
            Step::Written(bytes) => DataStep::Written(bytes),
        };
        self.ask(&Message::Step(step))
    }

    fn admits_url(&self, url: &str) -> bool {
        self.ask(&Message::Url(url.to_owned())).is_ok()
    }
}

/// Makes the job, or says what is wrong with it or its data.
fn prepare(
    request: Request,
    bounds: Arc<dyn Bounds>,
    tell: &mut dyn FnMut(BytesRead),
) -> Result<PreparedJob, Vec<String>> {
    let Request { text, folder, shards, hosts, earlier, limits: _ } = request;
    let mut told = |progress: Progress<'_>| {
        let read = match progress {
            Progress::Reading { bytes, of } => BytesRead { bytes, of },
            Progress::Loading { bytes, of, .. } => BytesRead { bytes, of: of.unwrap_or(bytes) },
            _ => return,
        };
        tell(read);
    };
    let problems = |all: Vec<Problem>| all.into_iter().map(|of| of.message).collect::<Vec<_>>();
    let failed = |failure: Failure| failure.messages().to_vec();
    let mut job =
        jobfile::of_text(&text, "job.toml", folder).map_err(|(_, found)| problems(found))?;
    let known = Known::among(&job, hosts, earlier);
    let python = PythonArgs::default();
    let (ingested, chosen) =
        cut(&mut job, &python, &known, (&shards, bounds), &mut told).map_err(failed)?;
    let Chosen { shards: count, visits, .. } = chosen;
    job.spec.data.shards = Some(count);
    job.spec.placement.visits = Some(visits.visits);
    Ok(PreparedJob { spec: job.spec, data: ingested.manifest, files: ingested.files })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_server::ReaderLimits;
    use std::{
        fs,
        path::Path,
        sync::atomic::{AtomicU64, Ordering},
    };

    const FILE: &str = "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshards = 2\n[[model]]\n\
                        arch = \"mlp\"\nhidden = [4]\n[training]\nepochs = 1\n";

    /// Bounds that end it at a question, or never.
    #[derive(Debug)]
    struct Until(Option<u64>, AtomicU64);

    impl Bounds for Until {
        fn admit(&self, _: Step) -> Result<(), Refusal> {
            let asked = self.1.fetch_add(1, Ordering::Relaxed);
            match self.0 {
                Some(end) if asked >= end => Err(Refusal("it was ended".to_owned())),
                _ => Ok(()),
            }
        }

        fn admits_url(&self, _: &str) -> bool {
            false
        }
    }

    fn made(
        folder: &Path,
        text: &str,
        end: Option<u64>,
        tell: &mut dyn FnMut(BytesRead),
    ) -> Result<PreparedJob, Vec<String>> {
        let request = Request {
            text: text.to_owned(),
            folder: folder.join("data"),
            shards: folder.join("shards"),
            hosts: Vec::new(),
            earlier: Vec::new(),
            limits: ReaderLimits::for_data(0, 0, 0),
        };
        prepare(request, Arc::new(Until(end, AtomicU64::new(0))), tell)
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir_all(folder.path().join("shards")).unwrap();
        fs::create_dir_all(&data).unwrap();
        let rows = (0..100).map(|row| format!("{row},{}\n", row % 2)).collect::<String>();
        fs::write(data.join("t.csv"), format!("x,y\n{rows}")).unwrap();
        folder
    }

    #[test]
    fn the_job_and_its_shards_are_those_of_submit() {
        let folder = folder();
        let mut last = None;
        let mut tell = |read| last = Some(read);
        let made = made(folder.path(), FILE, None, &mut tell).unwrap();
        assert_eq!((made.data.train.len(), made.spec.data.shards), (2, Some(2)));
        assert!(made.spec.placement.visits.is_some());
        assert!(made.data.blobs().all(|blob| made.files[&blob.sha256].exists()));
        let BytesRead { bytes, of } = last.unwrap();
        assert_eq!(bytes, of);
    }

    #[test]
    fn what_is_wrong_with_the_data_is_said() {
        let folder = folder();
        let mut tell = |_| {};
        let missing = made(folder.path(), &FILE.replace("t.csv", "other.csv"), None, &mut tell);
        assert!(missing.unwrap_err()[0].contains("data.train"));
        let label =
            made(folder.path(), &FILE.replace("\"y\"", "\"z\""), None, &mut tell).unwrap_err();
        assert!(label[0].contains('z'), "{label:?}");
        let both = FILE.replace("epochs", "epocs").replace("hidden", "hiden");
        assert!(made(folder.path(), &both, None, &mut tell).unwrap_err().len() > 1);
    }

    #[test]
    fn reading_ends_when_it_is_told_to_and_leaves_nothing() {
        let folder = folder();
        for end in 0..6 {
            let ended = made(folder.path(), FILE, Some(end), &mut |_| {});
            let why = ended.unwrap_err();
            assert!(why[0].contains("it was ended"), "{end}: {why:?}");
            assert_eq!(fs::read_dir(folder.path().join("shards")).unwrap().count(), 0);
        }
    }

    #[test]
    fn the_server_is_asked_before_each_step() {
        let mut said = Vec::new();
        {
            let answers = &b"\"yes\"\n{\"no\":\"the disk is full\"}\n\"yes\"\n"[..];
            let server = Server::over(answers, &mut said);
            assert_eq!(server.admit(Step::Unpacked(7)), Ok(()));
            assert_eq!(server.admit(Step::Written(8)), Err(Refusal("the disk is full".to_owned())));
            assert!(server.admits_url("https://here/"));
            // A server that is gone admits nothing.
            let gone = server.admit(Step::Read(1)).unwrap_err();
            assert!(gone.0.contains("the server is gone"), "{gone:?}");
            assert!(!server.admits_url("https://here/"));
        }
        let said = String::from_utf8(said).unwrap();
        let lines: Vec<&str> = said.lines().take(3).collect();
        assert_eq!(
            lines,
            [
                "{\"step\":{\"unpacked\":7}}",
                "{\"step\":{\"written\":8}}",
                "{\"url\":\"https://here/\"}"
            ]
        );
    }
}
