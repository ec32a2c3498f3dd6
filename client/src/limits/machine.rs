//! The facts, from Linux. What can't be read is unknown; what a limit needs and isn't known is said once.

use super::{Facts, Limits, Programs};
use sojourn_files::if_exists;
use sojourn_protocol::quantity::SaturatingFrom as _;
use std::{
    collections::BTreeSet,
    fs, io,
    num::NonZero,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime},
};

/// The machine that this program runs on.
#[derive(Debug)]
pub(crate) struct Machine {
    /// `/`, but for tests.
    root: PathBuf,
    used: Option<Used>,
    /// Limits whose facts are unknown, which has been said.
    reported: BTreeSet<&'static str>,
}

/// When somebody last used the machine, by signs that change when it is used. By a clock that never jumps.
#[derive(Debug)]
struct Used {
    signs: Signs,
    at: Instant,
}

/// Traces of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Signs {
    /// The last access to a terminal, in nanoseconds of the clock.
    terminals: Option<i128>,
    /// Interrupts of the keyboard's and the mouse's controller.
    interrupts: Option<u64>,
}

/// The cores that this process may use.
pub(crate) fn cores() -> u32 {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    u32::saturating_from(cores)
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self::at(Path::new("/"))
    }

    fn at(root: &Path) -> Self {
        Self { root: root.to_owned(), used: None, reported: BTreeSet::new() }
    }

    /// Does it depend on the machine what these limits say?
    pub(crate) fn is_asked(limits: &Limits) -> bool {
        limits.hours.is_some()
            || limits.idle_minutes.is_some()
            || limits.not_on_battery == Some(true)
            || limits.pause_while.is_some()
    }

    /// Finds out what these limits depend on, and nothing else. Blocks for a moment.
    pub(crate) fn look(&mut self, limits: &Limits) -> Facts {
        let mut facts = Facts::default();
        if limits.hours.is_some() {
            facts.local = Some(jiff::Zoned::now().datetime());
        }
        if limits.idle_minutes.is_some() {
            facts.idle = self.idle(Instant::now(), SystemTime::now());
            self.tell("idle_minutes", facts.idle.is_none());
        }
        if limits.not_on_battery == Some(true) {
            facts.on_battery = self.on_battery().ok();
            self.tell("not_on_battery", facts.on_battery.is_none());
        }
        if let Some(programs) = &limits.pause_while {
            let found = self.program(programs);
            self.tell("pause_while", found.is_err());
            facts.program = found.ok().flatten();
        }
        facts
    }

    /// Says once that a limit can't be kept, and again once it could be meanwhile.
    fn tell(&mut self, limit: &'static str, unknown: bool) {
        if !unknown {
            self.reported.remove(limit);
        } else if self.reported.insert(limit) {
            tracing::warn!(
                limit,
                "this machine doesn't tell what the limit depends on; it isn't kept"
            );
        }
    }

    /// A battery that is being used up, and no other supply. Mice and keyboards have batteries too.
    fn on_battery(&self) -> io::Result<bool> {
        let folder = self.root.join("sys/class/power_supply");
        // A machine without any is a desktop or a server.
        let Some(supplies) = if_exists(fs::read_dir(folder))? else { return Ok(false) };
        let mut discharging = false;
        for supply in supplies {
            let supply = supply?.path();
            let says = |file: &str| fs::read_to_string(supply.join(file)).unwrap_or_default();
            if says("scope").trim() == "Device" {
                continue;
            }
            match says("type").trim() {
                "Battery" => discharging |= says("status").trim() == "Discharging",
                // The mains, or a USB port that charges.
                _ if says("online").trim() == "1" => return Ok(false),
                _ => {}
            }
        }
        Ok(discharging)
    }

    /// A running program that is one of these.
    fn program(&self, programs: &Programs) -> io::Result<Option<String>> {
        for process in fs::read_dir(self.root.join("proc"))? {
            let process = process?;
            if !process.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit) {
                continue;
            }
            // It may have ended meanwhile.
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            let name = name.trim_end();
            if programs.names(name) {
                return Ok(Some(name.to_owned()));
            }
        }
        Ok(None)
    }

    /// For how long nobody has used terminals, keyboard or mouse.
    fn idle(&mut self, now: Instant, clock: SystemTime) -> Option<Duration> {
        let signs = Signs { terminals: self.terminals(), interrupts: self.interrupts() };
        if signs == (Signs { terminals: None, interrupts: None }) {
            self.used = None;
            return None;
        }
        match &mut self.used {
            Some(used) if used.signs == signs => {}
            Some(used) => *used = Used { signs, at: now },
            None => {
                // Use before this program started is known of terminals, unless the clock has jumped back.
                let last = signs.terminals.and_then(|nanos| u64::try_from(nanos).ok());
                let last = last.map(|nanos| SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos));
                let idle = last.and_then(|last| clock.duration_since(last).ok());
                let at = idle.and_then(|idle| now.checked_sub(idle)).unwrap_or(now);
                self.used = Some(Used { signs, at });
            }
        }
        self.used.as_ref().map(|used| now.saturating_duration_since(used.at))
    }

    /// The last access to any terminal: each key that is read is one.
    fn terminals(&self) -> Option<i128> {
        let dev = self.root.join("dev");
        let console = files(&dev, |name| {
            name.strip_prefix("tty")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        });
        let pseudo = files(&dev.join("pts"), |name| name.bytes().all(|byte| byte.is_ascii_digit()));
        let times = console.into_iter().chain(pseudo).filter_map(|path| fs::metadata(path).ok());
        times
            .map(|meta| i128::from(meta.atime()) * 1_000_000_000 + i128::from(meta.atime_nsec()))
            .max()
    }

    fn interrupts(&self) -> Option<u64> {
        let text = fs::read_to_string(self.root.join("proc/interrupts")).ok()?;
        let lines = text.lines().filter(|line| line.contains("i8042"));
        let counts = lines.map(|line| {
            let counts =
                line.split_whitespace().skip(1).map_while(|count| count.parse::<u64>().ok());
            counts.fold(0, u64::wrapping_add)
        });
        counts.reduce(u64::wrapping_add)
    }
}

/// Files of a folder with such names; none of one that can't be read.
fn files(folder: &Path, named: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files
        .filter(|file| file.file_name().to_str().is_some_and(&named))
        .map(|file| file.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, FileTimes};

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_machine_is_on_its_battery_while_that_is_used_up_and_nothing_else_supplies_it() {
        let root = tempfile::tempdir().unwrap();
        let (at, machine) = (root.path(), Machine::at(root.path()));
        assert!(!machine.on_battery().unwrap(), "no supplies");
        let supply = |name: &str, file: &str, text: &str| {
            write(at, &format!("sys/class/power_supply/{name}/{file}"), text);
        };
        supply("hid-mouse", "type", "Battery\n");
        supply("hid-mouse", "scope", "Device\n");
        supply("hid-mouse", "status", "Discharging\n");
        assert!(!machine.on_battery().unwrap(), "the mouse's");
        supply("BAT0", "type", "Battery\n");
        supply("BAT0", "status", "Discharging\n");
        supply("AC", "type", "Mains\n");
        supply("AC", "online", "0\n");
        assert!(machine.on_battery().unwrap());
        supply("AC", "online", "1\n");
        assert!(!machine.on_battery().unwrap());
        supply("AC", "online", "0\n");
        supply("BAT0", "status", "Full\n");
        assert!(!machine.on_battery().unwrap());
    }

    #[test]
    fn running_programs_are_found_by_their_names() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::at(root.path());
        let programs: Programs = "blender, steam".parse().unwrap();
        assert!(machine.program(&programs).is_err(), "no /proc");
        write(root.path(), "proc/7/comm", "bash\n");
        write(root.path(), "proc/interrupts", "");
        write(root.path(), "proc/self/comm", "steam\n");
        assert_eq!(machine.program(&programs).unwrap(), None);
        write(root.path(), "proc/88/comm", "steam\n");
        assert_eq!(machine.program(&programs).unwrap().as_deref(), Some("steam"));
    }

    #[test]
    fn use_is_seen_by_terminals_and_interrupts_whatever_the_clock_does() {
        let root = tempfile::tempdir().unwrap();
        let mut machine = Machine::at(root.path());
        let (start, clock) =
            (Instant::now(), SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000));
        let seconds = Duration::from_secs;
        assert_eq!(machine.idle(start, clock), None, "nothing tells");
        write(root.path(), "dev/pts/3", "");
        write(root.path(), "dev/ttyS", "");
        let touch = |at: SystemTime| {
            let file = File::options().write(true).open(root.path().join("dev/pts/3")).unwrap();
            file.set_times(FileTimes::new().set_accessed(at)).unwrap();
        };
        touch(clock - seconds(50));
        assert_eq!(machine.idle(start, clock), Some(seconds(50)), "known from before");
        // The clock jumps a day ahead, and back: nobody has used anything.
        assert_eq!(machine.idle(start + seconds(10), clock + seconds(86_400)), Some(seconds(60)));
        assert_eq!(machine.idle(start + seconds(20), clock - seconds(86_400)), Some(seconds(70)));
        touch(clock);
        assert_eq!(machine.idle(start + seconds(30), clock), Some(seconds(0)));
        assert_eq!(machine.idle(start + seconds(40), clock), Some(seconds(10)));
        write(
            root.path(),
            "proc/interrupts",
            "  1:  5  7  IO-APIC 1-edge i8042\n  9:  2  3 acpi\n",
        );
        assert_eq!(machine.idle(start + seconds(50), clock), Some(seconds(0)));
        write(
            root.path(),
            "proc/interrupts",
            "  1:  5  7  IO-APIC 1-edge i8042\n  9:  4  3 acpi\n",
        );
        assert_eq!(machine.idle(start + seconds(60), clock), Some(seconds(10)));
        // A program that starts under a clock that was set back takes the machine for used.
        touch(clock + seconds(500));
        assert_eq!(Machine::at(root.path()).idle(start, clock), Some(seconds(0)));
    }

    #[test]
    fn only_what_limits_depend_on_is_looked_up() {
        let root = tempfile::tempdir().unwrap();
        let mut machine = Machine::at(root.path());
        let limits = Limits { cpu: "50".parse().ok(), ..Limits::default() };
        assert!(!Machine::is_asked(&limits));
        assert_eq!(machine.look(&limits), Facts::default());
        let hours = Limits { hours: "22:00-06:00".parse().ok(), idle_minutes: Some(5), ..limits };
        let facts = machine.look(&hours);
        assert!(Machine::is_asked(&hours) && facts.local.is_some() && facts.idle.is_none());
        assert!(machine.reported.contains("idle_minutes"));
    }
}
