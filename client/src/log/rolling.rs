//! The log's files: `000017.2026-11-21.jsonl` and the like, numbered in the order in which they were begun,
//! whatever the clock says. A new one is begun each day (UTC), and where one is full; only the last few stay.
//!
//! Of a crate's rolling files none is bounded by day, number and size at once and silent about its own trouble:
//! a line that can't be written is lost, and the next is tried anew.

use super::Line;
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// Files that there are at most.
const MAX_FILES: usize = 8;
/// Bytes that a file has at most.
const MAX_FILE_BYTES: u64 = 4 << 20;
const ENDING: &str = ".jsonl";

/// Writes lines.
#[derive(Debug)]
pub(super) struct Rolling {
    folder: PathBuf,
    /// None until the first line, and after trouble.
    open: Option<Open>,
    largest: u64,
}

#[derive(Debug)]
struct Open {
    file: File,
    day: Date,
    bytes: u64,
}

/// The name of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    number: u64,
    day: Date,
}

impl Name {
    fn of(text: &str) -> Option<Self> {
        let (number, day) = text.strip_suffix(ENDING)?.split_once('.')?;
        Some(Self { number: number.parse().ok()?, day: day.parse().ok()? })
    }

    fn path(self, folder: &Path) -> PathBuf {
        folder.join(format!("{:06}.{}{ENDING}", self.number, self.day))
    }
}

impl Rolling {
    /// Nothing is made before there is a line.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, open: None, largest: MAX_FILE_BYTES }
    }

    /// Writes a line, if it can.
    pub(super) fn write(&mut self, now: Timestamp, line: &Line) {
        let Ok(mut text) = serde_json::to_vec(line) else { return };
        text.push(b'\n');
        let day = now.to_zoned(TimeZone::UTC).date();
        // A full disk, a folder that was deleted or closed: it may pass.
        if self.try_write(day, &text).is_err() {
            self.open = None;
        }
    }

    fn try_write(&mut self, day: Date, text: &[u8]) -> io::Result<()> {
        let length = text.len() as u64;
        let fits = |open: &Open| {
            open.day == day && open.bytes.saturating_add(length) <= self.largest && open.is_there()
        };
        let mut open = match self.open.take().filter(fits) {
            Some(open) => open,
            None => self.begin(day, length)?,
        };
        if let Err(error) = open.file.write_all(text) {
            // Half a line would spoil the next.
            let _ = open.file.set_len(open.bytes);
            return Err(error);
        }
        open.bytes += length;
        self.open = Some(open);
        Ok(())
    }

    /// Goes on with today's last file where it has room, or begins another.
    fn begin(&self, day: Date, length: u64) -> io::Result<Open> {
        // Not what it is in: who has deleted all of it wants nothing left.
        match fs::create_dir(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let mut names = names(&self.folder)?;
        let last = names.last().copied().filter(|last| last.day == day);
        if let Some(last) = last {
            let open = Open::at(&last.path(&self.folder), day)?;
            if open.bytes.saturating_add(length) <= self.largest {
                return Ok(open);
            }
        }
        let number = names.last().map_or(0, |last| last.number.saturating_add(1));
        let name = Name { number, day };
        let open = Open::at(&name.path(&self.folder), day)?;
        names.push(name);
        for name in names.iter().take(names.len().saturating_sub(MAX_FILES)) {
            let _ = fs::remove_file(name.path(&self.folder));
        }
        Ok(open)
    }
}

impl Open {
    fn at(path: &Path, day: Date) -> io::Result<Self> {
        let mut options = File::options();
        let mut file = options.read(true).append(true).create(true).mode(0o600).open(path)?;
        let mut bytes = file.metadata()?.len();
        if bytes > 0 {
            // A program that was killed may have left half a line.
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
                bytes += 1;
            }
        }
        Ok(Self { file, day, bytes })
    }

    /// Can it be found by its name yet?
    fn is_there(&self) -> bool {
        self.file.metadata().is_ok_and(|meta| meta.nlink() > 0)
    }
}

/// The names of the files, the oldest first.
fn names(folder: &Path) -> io::Result<Vec<Name>> {
    let entries = fs::read_dir(folder)?.filter_map(Result::ok);
    let mut names: Vec<Name> =
        entries.filter_map(|entry| Name::of(entry.file_name().to_str()?)).collect();
    names.sort_unstable();
    Ok(names)
}

/// The last lines of a folder, the oldest first; as many as can be read.
pub(super) fn end(folder: &Path, most: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for name in names(folder).unwrap_or_default().into_iter().rev() {
        let Ok(text) = fs::read(name.path(folder)) else { continue };
        let parsed = text.rsplit(|byte| *byte == b'\n').filter_map(Line::parse);
        lines.extend(parsed.take(most - lines.len()));
        if lines.len() == most {
            break;
        }
    }
    lines.reverse();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn line(what: &str) -> Line {
        Line::parse(format!("{{\"fields\":{{\"message\":\"{what}\"}}}}").as_bytes()).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn files(folder: &Path) -> Vec<String> {
        let names = names(folder).unwrap().into_iter();
        names
            .map(|name| name.path(folder).file_name().unwrap().to_str().unwrap().to_owned())
            .collect()
    }

    fn messages(folder: &Path) -> Vec<String> {
        end(folder, usize::MAX).iter().map(|line| line.message().to_owned()).collect()
    }

    #[test]
    fn each_day_has_a_file_and_only_the_last_stay() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("log");
        let mut log = Rolling::new(folder.clone());
        assert!(!folder.exists());
        log.write(at("2026-11-21T23:59:59Z"), &line("a"));
        log.write(at("2026-11-22T00:00:00Z"), &line("b"));
        // Started again, and the clock set back.
        let mut log = Rolling::new(folder.clone());
        log.write(at("2026-11-22T12:00:00Z"), &line("c"));
        log.write(at("2026-11-20T12:00:00Z"), &line("d"));
        assert_eq!(
            files(&folder),
            ["000000.2026-11-21.jsonl", "000001.2026-11-22.jsonl", "000002.2026-11-20.jsonl"]
        );
        assert_eq!(messages(&folder), ["a", "b", "c", "d"]);
        assert_eq!(end(&folder, 3).len(), 3);
        // Not ours.
        fs::write(folder.join("notes.txt"), "x").unwrap();
        for day in 1..=9 {
            log.write(at(&format!("2026-12-0{day}T12:00:00Z")), &line("later"));
        }
        assert_eq!(files(&folder).len(), MAX_FILES);
        assert_eq!(files(&folder).last().unwrap(), "000011.2026-12-09.jsonl");
        assert!(folder.join("notes.txt").exists());
        let mode = fs::metadata(folder.join("000011.2026-12-09.jsonl")).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
    }

    #[test]
    fn a_day_of_much_noise_takes_no_more_room_than_a_quiet_one() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut log = Rolling { largest: 1000, ..Rolling::new(folder.to_owned()) };
        for number in 0..1000 {
            log.write(at("2026-11-21T12:00:00Z"), &line(&number.to_string()));
        }
        assert_eq!(files(folder).len(), MAX_FILES);
        for file in files(folder) {
            assert!(fs::metadata(folder.join(file)).unwrap().len() <= 1000);
        }
        assert_eq!(messages(folder).last().unwrap(), "999");
    }

    #[test]
    fn no_trouble_of_the_folder_is_the_programs() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("log");
        let now = at("2026-11-21T12:00:00Z");
        let mut log = Rolling::new(folder.clone());
        log.write(now, &line("a"));
        fs::remove_dir_all(&folder).unwrap();
        log.write(now, &line("b"));
        assert_eq!(messages(&folder), ["b"]);
        // A file in its place: nothing can be written, until it is gone.
        fs::remove_dir_all(&folder).unwrap();
        fs::write(&folder, "").unwrap();
        log.write(now, &line("c"));
        assert_eq!(messages(&folder), [""; 0]);
        fs::remove_file(&folder).unwrap();
        log.write(now, &line("d"));
        assert_eq!(messages(&folder), ["d"]);
        fs::remove_dir_all(data.path()).unwrap();
        log.write(now, &line("e"));
        assert!(!data.path().exists());
    }

    #[test]
    fn half_a_line_spoils_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::write(folder.join("000003.2026-11-21.jsonl"), "{\"fields\":{\"mess").unwrap();
        let mut log = Rolling::new(folder.to_owned());
        log.write(at("2026-11-21T12:00:00Z"), &line("a"));
        assert_eq!(messages(folder), ["a"]);
        // A disk without room: what is half-written is taken back.
        log.open.as_mut().unwrap().file = File::options().read(true).open("/dev/null").unwrap();
        log.write(at("2026-11-21T12:00:00Z"), &line("lost"));
        log.write(at("2026-11-21T12:00:00Z"), &line("b"));
        assert_eq!(messages(folder), ["a", "b"]);
    }
}
