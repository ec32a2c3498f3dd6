//! `sojourn prepare`: makes a job of files that a browser has sent, or a job file for them. The server runs this command and answers its
//! questions, so that strangers' bytes are read in a process with limits of the kernel. The code is that of `sojourn submit` and `init`.

use crate::cli::{
    submit::{
        command::cut,
        graphs::PythonArgs,
        init::name_of,
        jobfile::{self, Problem},
        sharding::{Chosen, Known},
    },
    terminal::{causes::ingest_failure, exit::Failure},
};
use serde::{Serialize, de::DeserializeOwned};
use sojourn_draft::{Taken, TakenColumn, Wishes, draft};
use sojourn_ingest::{Bounds, ProfileOf, Progress, Refusal, Step};
use sojourn_protocol::view::{HostView, JobDetail};
use sojourn_server::{
    Answer, BytesRead, DataStep, DraftedColumn, DraftedJob, Message, PreparedJob, Request, Wanted,
};
use std::{
    fmt,
    io::{self, BufRead, BufReader, IsTerminal as _, Write},
    path::{Path, PathBuf},
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
    let outcome = answer(request, Arc::<Server<_, _>>::clone(&server), &mut tell);
    server.say(&outcome.unwrap_or_else(Message::Wrong)).map_err(failed)
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

/// Does what is wanted, or says what is wrong with the job file or the data.
fn answer(
    request: Request,
    bounds: Arc<dyn Bounds>,
    tell: &mut dyn FnMut(BytesRead),
) -> Result<Message, Vec<String>> {
    let Request { folder, wanted, limits: _ } = request;
    let mut told = |progress: Progress<'_>| {
        let read = match progress {
            Progress::Reading { bytes, of } => BytesRead { bytes, of },
            Progress::Loading { bytes, of, .. } => BytesRead { bytes, of: of.unwrap_or(bytes) },
            _ => return,
        };
        tell(read);
    };
    match wanted {
        Wanted::Job { text, shards, hosts, earlier } => {
            let job = JobOf { text, folder, shards, hosts, earlier };
            prepare(job, bounds, &mut told).map(|job| Message::Made(Box::new(job)))
        }
        Wanted::Draft { data, label } => {
            let drafted = drafted(&folder, &data, label.as_deref(), bounds, &mut told);
            drafted.map(|job| Message::Drafted(Box::new(job)))
        }
    }
}

/// Looks at data in a folder, and writes a job file for it. One that needs files of its own beside it can't be submitted by a browser.
fn drafted(
    folder: &Path,
    data: &str,
    label: Option<&str>,
    bounds: Arc<dyn Bounds>,
    told: &mut dyn FnMut(Progress<'_>),
) -> Result<DraftedJob, Vec<String>> {
    let of = ProfileOf { data, base_dir: folder, spool: folder, separator: None, label };
    let profile = sojourn_ingest::profile(of, bounds, told)
        .map_err(|error| ingest_failure(error).messages().to_vec())?;
    let wishes = Wishes { name: &name_of(data), train: data, label, labels: None };
    let draft = draft(&profile, wishes)?;
    if !draft.files.is_empty() {
        return Err(vec![
            "a model for text is code of your own: `sojourn init` writes it, and `sojourn submit` sends it"
                .to_owned(),
        ]);
    }
    let of_labels = |column: &&TakenColumn| matches!(column.taken, Taken::Label(_));
    let label = draft.columns.iter().find(of_labels).map(|column| column.column.clone());
    let column = |column: &TakenColumn| DraftedColumn {
        name: column.column.clone(),
        holds: column.holds.clone(),
        taken: column.use_in_words(),
    };
    let columns = draft.columns.iter().map(column).collect();
    Ok(DraftedJob { text: draft.job, label, columns, remarks: draft.remarks })
}

/// The files of a job, and what is known of hosts and earlier jobs.
struct JobOf {
    text: String,
    folder: PathBuf,
    shards: PathBuf,
    hosts: Vec<HostView>,
    earlier: Vec<JobDetail>,
}

/// Makes the job, or says what is wrong with it or its data.
fn prepare(
    JobOf { text, folder, shards, hosts, earlier }: JobOf,
    bounds: Arc<dyn Bounds>,
    told: &mut dyn FnMut(Progress<'_>),
) -> Result<PreparedJob, Vec<String>> {
    let problems = |all: Vec<Problem>| all.into_iter().map(|of| of.message).collect::<Vec<_>>();
    let failed = |failure: Failure| failure.messages().to_vec();
    let mut job =
        jobfile::of_text(&text, "job.toml", folder).map_err(|(_, found)| problems(found))?;
    let known = Known::among(&job, hosts, earlier);
    let python = PythonArgs::default();
    let (ingested, chosen) =
        cut(&mut job, &python, &known, (&shards, bounds), told).map_err(failed)?;
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
        let wanted = Wanted::Job {
            text: text.to_owned(),
            shards: folder.join("shards"),
            hosts: Vec::new(),
            earlier: Vec::new(),
        };
        match answered(folder, wanted, end, tell)? {
            Message::Made(job) => Ok(*job),
            other => panic!("{other:?}"),
        }
    }

    fn answered(
        folder: &Path,
        wanted: Wanted,
        end: Option<u64>,
        tell: &mut dyn FnMut(BytesRead),
    ) -> Result<Message, Vec<String>> {
        let limits = ReaderLimits::for_data(0, 0, 0);
        let request = Request { folder: folder.join("data"), limits, wanted };
        answer(request, Arc::new(Until(end, AtomicU64::new(0))), tell)
    }

    fn drafted(
        folder: &Path,
        data: &str,
        label: Option<&str>,
        end: Option<u64>,
    ) -> Result<DraftedJob, Vec<String>> {
        let wanted = Wanted::Draft { data: data.to_owned(), label: label.map(str::to_owned) };
        match answered(folder, wanted, end, &mut |_| {})? {
            Message::Drafted(job) => Ok(*job),
            other => panic!("{other:?}"),
        }
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
    fn a_job_file_that_is_drafted_makes_a_job() {
        let folder = folder();
        // A column that counts the rows would be left out.
        let rows = (0..100).map(|row| format!("{},{}\n", row % 7, row % 2)).collect::<String>();
        fs::write(folder.path().join("data/t.csv"), format!("x,y\n{rows}")).unwrap();
        let drafted_job = drafted(folder.path(), "t.csv", None, None).unwrap();
        assert_eq!(drafted_job.label.as_deref(), Some("y"));
        assert_eq!(drafted_job.columns.len(), 2);
        assert_eq!(drafted_job.columns[0].taken, "a feature");
        let made = made(folder.path(), &drafted_job.text, None, &mut |_| {}).unwrap();
        assert_eq!(made.data.features, ["x"]);
        let other = drafted(folder.path(), "t.csv", Some("x"), None).unwrap();
        assert_eq!(other.label.as_deref(), Some("x"));
        let wrong = drafted(folder.path(), "t.csv", Some("z"), None).unwrap_err();
        assert!(wrong[0].contains("no column `z`"), "{wrong:?}");
        assert!(drafted(folder.path(), "other.csv", None, None).is_err());
        fs::write(folder.path().join("data/t.txt"), "some words\n").unwrap();
        let text = drafted(folder.path(), "t.txt", None, None).unwrap_err();
        assert!(text[0].contains("`sojourn init`"), "{text:?}");
    }

    #[test]
    fn a_look_at_data_ends_when_it_is_told_to() {
        let folder = folder();
        let ended = drafted(folder.path(), "t.csv", None, Some(0)).unwrap_err();
        assert!(ended[0].contains("it was ended"), "{ended:?}");
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
