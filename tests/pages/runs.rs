//! Runs the commands that README and the book show, page by page, as a reader would.
//!
//! Each page has a folder of its own as the home of its user, with the repository's `examples/` in it. Blocks run in their
//! order. Servers listen on free ports: the default port in a page stands for the port of the page's server.
//! `CONTRIBUTING.md` lists the marks of a block.

use crate::page::{self, Block, Page, ROOT};
use sojourn_protocol::jobfile;
use std::{
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader, Read as _},
    os::unix::{fs::symlink, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};
use tempfile::TempDir;

/// Blocks that no test can run. A new one is a decision: it takes a reason in the page, and this number.
const NOT_RUN: usize = 42;

/// The port that pages name.
const DEFAULT_PORT: &str = ":8642";

/// The pages whose commands are run.
fn pages() -> Vec<Page> {
    let root = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md"];
    root.into_iter().map(Page::read).chain(page::book()).collect()
}

fn is_shell(block: &Block) -> bool {
    matches!(block.language.as_str(), "sh" | "console" | "bash" | "shell")
}

#[test]
fn every_block_of_commands_is_run_or_says_why_not() {
    let mut not_run = Vec::new();
    for page in pages() {
        for block in page.blocks().iter().filter(|block| is_shell(block)) {
            let runs = block.has("run") || block.value("run").is_some();
            match block.value("not-run") {
                Some(reason) => {
                    assert!(!runs && reason.len() > 3, "{}", page.at(block.line));
                    not_run.push(format!("{}: {reason}", page.at(block.line)));
                }
                None => assert!(runs, "{}: neither `run` nor `not-run`", page.at(block.line)),
            }
        }
    }
    assert_eq!(not_run.len(), NOT_RUN, "not run:\n{}", not_run.join("\n"));
}

/// A user at a terminal: a home, and what runs in the background.
struct Reader {
    home: TempDir,
    /// The port of the server that was started last.
    port: Option<String>,
    background: Vec<Child>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        for child in &mut self.background {
            // The whole group: a shell and what it started.
            if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            }
            let _ = child.wait();
        }
    }
}

impl Reader {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        symlink(Path::new(ROOT).join("examples"), home.path().join("examples")).unwrap();
        Self { home, port: None, background: Vec::new() }
    }

    /// A shell in the user's home, with the programs on its path.
    fn shell(&self, text: &str) -> Command {
        let text = match &self.port {
            Some(port) => text.replace(DEFAULT_PORT, port),
            None => text.to_owned(),
        };
        let programs = Path::new(env!("CARGO_BIN_EXE_sojourn")).parent().unwrap();
        let python = Path::new(ROOT).join(".cache/python/bin");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        command
            .args(["-euc", &text])
            .current_dir(self.home.path())
            .env("HOME", self.home.path())
            .env("PATH", format!("{}:{}:{path}", programs.display(), python.display()))
            .env("SOJOURN_METADATA", "none")
            .env("SOJOURN_GPUS", "none")
            .env("SOJOURN_LOG", "info")
            .stdin(Stdio::null());
        let of_users = ["XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"];
        let of_sojourn =
            ["SERVER", "TOKEN", "ENROL_TOKEN", "DATA", "CA", "LISTEN", "LIMITS", "TRAINER"];
        for variable in of_users {
            command.env_remove(variable);
        }
        for variable in of_sojourn {
            command.env_remove(format!("SOJOURN_{variable}"));
        }
        if let Some(port) = &self.port {
            command.env("SOJOURN_SERVER", format!("http://127.0.0.1{port}"));
        }
        command
    }

    fn run(&self, text: &str) -> Output {
        self.shell(text).output().unwrap()
    }

    /// Starts commands that go on, and waits until they are ready.
    fn start(&mut self, text: &str) -> Result<(), String> {
        let serves = text.contains("sojourn serve");
        let text = if serves { text.replace(DEFAULT_PORT, ":0") } else { text.to_owned() };
        let log = self.home.path().join(format!("background-{}.log", self.background.len()));
        let mut shell = self.shell(&text);
        if serves {
            shell.env("SOJOURN_LISTEN", "127.0.0.1:0");
        }
        let mut child = shell
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        self.background.push(child);
        if serves {
            let port = port(out).ok_or_else(|| fs::read_to_string(&log).unwrap_or_default())?;
            self.port = Some(port);
        } else if text.contains("sojourn client") {
            self.wait_for_client(&log)?;
        }
        Ok(())
    }

    /// A client is ready once its owner can speak with it.
    fn wait_for_client(&mut self, log: &Path) -> Result<(), String> {
        while !self.run("sojourn client ctl status").status.success() {
            if self.background.last_mut().unwrap().try_wait().unwrap().is_some() {
                return Err(fs::read_to_string(log).unwrap_or_default());
            }
        }
        Ok(())
    }

    /// Starts the programs, and runs the job, that a block counts on.
    fn prepare(&mut self, need: &str) -> Result<(), String> {
        let needs = ["with-a-server", "with-a-client", "with-a-job"];
        let rank = needs.iter().position(|known| *known == need);
        let rank = rank.ok_or_else(|| format!("unknown: `run={need}`"))?;
        let started = self.background.len();
        for command in ["sojourn serve", "sojourn client"].iter().take(rank + 1).skip(started) {
            self.start(command)?;
        }
        if need == "with-a-job" && started < 2 {
            let output = self.run("sojourn submit examples/digits/job.toml --wait");
            if !output.status.success() {
                return Err(said(&output));
            }
        }
        Ok(())
    }
}

/// The port that a server says on its first line, with its colon. What it says later is read and dropped.
fn port(mut out: BufReader<impl std::io::Read + Send + 'static>) -> Option<String> {
    let mut line = String::new();
    out.read_line(&mut line).ok()?;
    let port = line.trim().rsplit(':').next()?.to_owned();
    std::thread::spawn(move || out.read_to_string(&mut String::new()));
    port.parse::<u16>().ok().map(|port| format!(":{port}"))
}

fn said(output: &Output) -> String {
    let mut text = format!("{:?}\n", output.status.code());
    for bytes in [&output.stdout, &output.stderr] {
        let _ = writeln!(text, "{}", String::from_utf8_lossy(bytes));
    }
    text
}

/// Runs a page's blocks; the first that fails ends it.
fn run_page(page: &Page) {
    let mut reader = Reader::new();
    for block in page.blocks() {
        let place = page.at(block.line);
        let fail = |what: String| -> ! { panic!("{place}:\n{}{what}", block.text) };
        if let Some(name) = block.value("file") {
            fs::write(reader.home.path().join(name), &block.text).unwrap();
        }
        if !is_shell(&block) || block.value("not-run").is_some() {
            continue;
        }
        if let Some(need) = block.value("run")
            && let Err(what) = reader.prepare(need)
        {
            fail(what);
        }
        if block.has("background") {
            if let Err(what) = reader.start(&block.text) {
                fail(what);
            }
            continue;
        }
        let output = reader.run(&block.text);
        if !output.status.success() {
            fail(said(&output));
        }
    }
}

/// Pages with commands that are run, each with a test of its own: they take a while, and run side by side.
macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        const RUN: &[&str] = &[$($path),*];
        $(#[test]
        fn $name() {
            run_page(&Page::read($path));
        })*
    };
}

pages! {
    readme: "README.md",
    getting_started: "docs/getting-started.md",
    simulate: "docs/simulate.md",
    job_file: "docs/job-file.md",
    models: "docs/models.md",
    web_page: "docs/page.md",
    export: "docs/export.md",
    logs: "docs/operate/logs.md",
    report: "docs/report.md",
    api: "docs/api.md",
    install: "docs/hosts/install.md",
    control: "docs/hosts/control.md",
    tls_and_proxies: "docs/operate/tls-and-proxies.md",
    assimilators: "docs/operate/assimilators.md",
    storage: "docs/operate/storage.md",
    metrics: "docs/operate/metrics.md",
    users: "docs/operate/users.md",
    webhooks: "docs/operate/webhooks.md",
}

#[test]
fn no_page_with_commands_is_left_out() {
    let runs = |page: &Page| {
        let blocks = page.blocks();
        let mut shell = blocks.iter().filter(|block| is_shell(block));
        shell.any(|block| block.has("run") || block.value("run").is_some())
    };
    let with: Vec<PathBuf> = pages().into_iter().filter(runs).map(|page| page.path).collect();
    let mut known: Vec<PathBuf> = RUN.iter().map(PathBuf::from).collect();
    let mut with_commands = with;
    known.sort();
    with_commands.sort();
    assert_eq!(with_commands, known);
}

/// A job without what the fragment brings.
fn job_with(fragment: &str) -> String {
    let tables = [
        ("[data]", "train = \"t.csv\"\nlabel = \"y\""),
        ("[[model]]", "arch = \"mlp\"\nhidden = [4]"),
        ("[training]", "epochs = 1"),
    ];
    let mut job = "name = \"job\"\n".to_owned();
    for (table, keys) in tables.into_iter().filter(|(table, _)| !fragment.contains(table)) {
        let _ = writeln!(job, "{table}\n{keys}");
    }
    job + fragment
}

#[test]
fn fragments_of_job_files_are_valid() {
    let mut seen = 0;
    for page in pages() {
        for block in page.blocks().iter().filter(|block| block.has("fragment")) {
            seen += 1;
            if let Err(error) = jobfile::parse(&job_with(&block.text)) {
                panic!("{}: {error}", page.at(block.line));
            }
        }
    }
    assert!(seen >= 4, "{seen}");
}
