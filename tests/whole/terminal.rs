//! A terminal with a program on it: its keys, and what it shows.

use crate::http::poll;
use rustix::{
    fs::OFlags,
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Termios, Winsize, tcgetattr, tcsetwinsize},
};
use std::{
    fs::File,
    io::{Read, Write},
    os::unix::fs::OpenOptionsExt,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
};

/// A terminal with a program on it.
pub(crate) struct Terminal {
    keys: File,
    program: Child,
    /// The program's side, which stays open.
    side: File,
    before: Termios,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    /// A terminal of 80 columns.
    pub(crate) fn with(command: Command) -> Self {
        Self::sized(command, 24, 80)
    }

    /// A terminal of so many lines and columns. With 0 it doesn't say them.
    pub(crate) fn sized(mut command: Command, lines: u16, columns: u16) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap().into_string().unwrap();
        let no_control = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
        let mut options = File::options();
        let side = options.read(true).write(true).custom_flags(no_control).open(name).unwrap();
        let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
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

    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// Waits until it shows a text, which may have no blank: these aren't sent.
    pub(crate) fn until(&self, text: &str) {
        let shown = poll(|| self.shown().contains(text).then_some(()));
        assert!(shown.is_some(), "no `{text}` in:\n{}", self.shown());
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.program), signal).unwrap();
    }

    /// Waits for the end, with this code, of a program that prints lines; these lines, without styles.
    pub(crate) fn prints(mut self, code: i32) -> Vec<String> {
        assert_eq!(self.program.wait().unwrap().code(), Some(code), "{}", self.shown());
        // All that was written before is read before this.
        self.side.write_all(b"\n<end>").unwrap();
        self.until("<end>");
        let shown = self.shown();
        let lines = shown.split("<end>").next().unwrap().trim_end().lines();
        lines.map(|line| without_styles(line.trim_end_matches('\r'))).collect()
    }

    /// Waits for the program's end with this code, and looks at what it has left; all that it has shown.
    pub(crate) fn ends_clean(mut self, code: i32) -> String {
        assert_eq!(self.program.wait().unwrap().code(), Some(code), "{}", self.shown());
        let after = tcgetattr(&self.side).unwrap();
        assert_eq!(after.local_modes, self.before.local_modes);
        assert_eq!(after.input_modes, self.before.input_modes);
        assert_eq!(after.output_modes, self.before.output_modes);
        // The other screen is left.
        self.until("\u{1b}[?1049l");
        let shown = self.shown();
        assert!(shown.rfind("\u{1b}[?25h") > shown.rfind("\u{1b}[?25l"), "no cursor: {shown:?}");
        shown
    }
}

/// A line without what only sets colours and weights.
fn without_styles(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |line, part| line + part.split_once('m').map_or(part, |(_, text)| text))
}
