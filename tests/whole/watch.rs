//! `sojourn client ctl --watch` on a terminal and on none: what it shows, and how it leaves it.

use crate::{
    ctl::{NAME, Owned},
    http::poll,
    site::program,
};
use rustix::{
    fs::OFlags,
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Termios, Winsize, tcgetattr, tcsetwinsize},
};
use serde_json::Value;
use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    os::unix::fs::OpenOptionsExt,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
};

/// A terminal of 80 columns, with a program on it.
struct Terminal {
    keys: File,
    program: Child,
    /// The program's side, which stays open.
    side: File,
    before: Termios,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn with(mut command: Command) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap().into_string().unwrap();
        let no_control = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
        let mut options = File::options();
        let side = options.read(true).write(true).custom_flags(no_control).open(name).unwrap();
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&side, size).unwrap();
        let before = tcgetattr(&side).unwrap();
        let copy = || Stdio::from(side.try_clone().unwrap());
        command.stdin(copy()).stdout(copy()).stderr(copy()).env("TERM", "xterm-256color");
        let program = command.spawn().unwrap();
        let keys = File::from(keys);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut from, to) = (keys.try_clone().unwrap(), Arc::clone(&shown));
        // It ends with the program's side.
        thread::spawn(move || {
            let mut some = [0; 4096];
            while let Ok(read) = from.read(&mut some) {
                to.lock().unwrap().extend_from_slice(&some[..read]);
            }
        });
        Self { keys, program, side, before, shown }
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// Waits until it shows a text, which may have no blank: these aren't sent.
    fn until(&self, text: &str) {
        let shown = poll(|| self.shown().contains(text).then_some(()));
        assert!(shown.is_some(), "no `{text}` in:\n{}", self.shown());
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the program's end, and looks at what it has left.
    fn ends_clean(mut self) {
        assert_eq!(self.program.wait().unwrap().code(), Some(0), "{}", self.shown());
        let after = tcgetattr(&self.side).unwrap();
        assert_eq!(after.local_modes, self.before.local_modes);
        assert_eq!(after.input_modes, self.before.input_modes);
        assert_eq!(after.output_modes, self.before.output_modes);
        // The other screen is left.
        self.until("\u{1b}[?1049l");
        let shown = self.shown();
        assert!(shown.rfind("\u{1b}[?25h") > shown.rfind("\u{1b}[?25l"), "no cursor: {shown:?}");
    }
}

fn ctl(owned: &Owned, args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(["client", "ctl", "--data"]).arg(owned.data()).args(args);
    command
}

#[test]
fn a_terminal_is_left_as_it_was() {
    let mut owned = Owned::start();
    let watch = |args| Terminal::with(ctl(&owned, args));

    let mut terminal = watch(&["status", "--watch"]);
    terminal.until("computing");
    terminal.press("p");
    terminal.until("paused:");
    // Both at once: what was asked for before the end is done.
    terminal.press("rq");
    terminal.ends_clean();
    assert!(owned.json(&["status"])["paused"].is_null());

    let mut terminal = watch(&["--watch"]);
    terminal.until("cache");
    terminal.press("\u{3}");
    terminal.ends_clean();

    let terminal = watch(&["--watch"]);
    terminal.until("limits");
    kill_process(Pid::from_child(&terminal.program), Signal::TERM).unwrap();
    terminal.ends_clean();

    // None of these is a terminal: a line a second.
    let lines = |args: &[&str]| {
        let mut command = ctl(&owned, args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        // Later lines are of a client that ends.
        let mut text = String::new();
        said.read_line(&mut text).unwrap();
        (child, said, text)
    };
    let (plain, json) = (lines(&["--watch"]), lines(&["status", "--watch", "--json"]));
    let mut terminal = watch(&["--watch"]);
    terminal.until("drain");
    terminal.press("d");
    terminal.until("finish");
    terminal.press("y");
    assert_eq!(owned.client.wait(), Some(0), "{}", owned.site.log(NAME));
    terminal.until("the client has ended");
    terminal.ends_clean();
    let [plain, json] = [plain, json].map(|(child, mut said, mut text)| {
        said.read_to_string(&mut text).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "the client has ended\n");
        text
    });
    assert!(plain.starts_with("1 slot on cpu, computing; unit "), "{plain}");
    let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(first["slots"], 1);
    let other = ctl(&owned, &["--watch", "pause"]).output().unwrap();
    assert_eq!(other.status.code(), Some(2));
}
