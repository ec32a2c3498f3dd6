//! A server's process, and how slowly its fsyncs go.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;

/// Slows a process's fsyncs down and counts them (`slow_sync.c`).
pub(crate) struct Syncs {
    folder: TempDir,
    added: Duration,
}

impl Syncs {
    pub(crate) fn new(added: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/slow_sync.c");
        let syncs = Self { folder, added };
        let mut compiler = Command::new(std::env::var_os("CC").unwrap_or("cc".into()));
        compiler.args(["-O2", "-shared", "-fPIC", "-o"]).arg(syncs.library()).arg(source);
        assert!(compiler.arg("-ldl").status().unwrap().success(), "`slow_sync.c` compiles");
        syncs
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("slow_sync.so")
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("count")
    }

    fn slow(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", self.library())
            .env("SOJOURN_SYNC_COUNT", self.file())
            .env("SOJOURN_SYNC_MICROS", self.added.as_micros().to_string());
    }

    /// How many there have been.
    pub(crate) fn count(&self) -> u64 {
        let bytes = fs::read(self.file()).unwrap();
        u64::from_le_bytes(bytes.try_into().unwrap())
    }
}

/// A running server; killed when dropped.
pub(crate) struct Program {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Program {
    /// `sojourn serve` on a data folder. When this returns, it answers.
    pub(crate) fn serve(data: &Path, syncs: &Syncs) -> Self {
        Self::serve_with(data, syncs, &[])
    }

    /// The same with these arguments.
    pub(crate) fn serve_with(data: &Path, syncs: &Syncs, more: &[String]) -> Self {
        let program = Self::stand_by(data, syncs, more);
        super::connection::Connection::open(program.address, "").call("GET", "/v1/health", "", b"");
        program
    }

    /// The same, where it needn't be the active one.
    pub(crate) fn stand_by(data: &Path, syncs: &Syncs, more: &[String]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sojourn"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data).args(more);
        Self::start(&mut command, syncs)
    }

    /// Is it there, and active?
    pub(crate) fn is_healthy(&self) -> bool {
        let asked = TcpStream::connect(self.address).and_then(|mut stream| {
            let request = "GET /v1/health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
            stream.write_all(request.as_bytes())?;
            let mut head = [0; 12];
            stream.read_exact(&mut head)?;
            Ok(head)
        });
        asked.is_ok_and(|head| head == *b"HTTP/1.1 200")
    }

    /// The plain program.
    pub(crate) fn plain(folder: &Path, syncs: &Syncs) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        Self::start(command.arg(super::plain::FLAG).arg(folder), syncs)
    }

    fn start(command: &mut Command, syncs: &Syncs) -> Self {
        syncs.slow(command);
        command.env("SOJOURN_LOG", "warn");
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let address = line.split_once("http://").unwrap().1.parse().unwrap();
        Self { child, address }
    }

    /// Bytes of its memory that are resident.
    pub(crate) fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() * 1024
    }

    /// Ends it with SIGKILL.
    pub(crate) fn kill(self) {
        drop(self);
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
