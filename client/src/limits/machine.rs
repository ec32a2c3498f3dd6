//! The facts, from Linux. A fact that can't be read is unknown.

use super::{Facts, Limits, Program, Programs, ZoneName, zone};
use parking_lot::Mutex;
use sojourn_files::if_exists;
use sojourn_protocol::quantity::SaturatingFrom as _;
use std::{
    fs, io,
    num::NonZero,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime},
};

/// How long a number of cores is remembered.
const COUNT_INTERVAL: Duration = Duration::from_secs(5);

/// The machine that this program runs on.
#[derive(Debug)]
pub(crate) struct Machine {
    /// `/`, but for tests.
    root: PathBuf,
    used: Option<Used>,
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

/// The cores that this process may use. They change with its control group; counting them reads several files, so they are remembered
/// for a while.
pub(crate) fn cores() -> u32 {
    static KNOWN: Mutex<Option<(Instant, u32)>> = Mutex::new(None);
    let (now, mut known) = (Instant::now(), KNOWN.lock());
    match *known {
        Some((at, cores)) if now.duration_since(at) < COUNT_INTERVAL => cores,
        _ => {
            let cores = thread::available_parallelism().map_or(1, NonZero::get);
            let cores = u32::saturating_from(cores);
            *known = Some((now, cores));
            cores
        }
    }
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self::at(Path::new("/"))
    }

    fn at(root: &Path) -> Self {
        Self { root: root.to_owned(), used: None }
    }

    /// Does it depend on the machine what these limits say?
    pub(crate) fn is_asked(limits: &Limits) -> bool {
        limits.depends_on_hour()
            || limits.idle_minutes.is_some()
            || limits.not_on_battery == Some(true)
            || limits.pause_while.is_some()
    }

    /// Finds out the facts that these limits depend on, and nothing else. Blocks for a moment.
    pub(crate) fn look(&mut self, limits: &Limits, zone: Option<&ZoneName>) -> Facts {
        let mut facts = Facts::default();
        if limits.depends_on_hour() {
            facts.local = zone::local(zone);
        }
        if limits.idle_minutes.is_some() {
            facts.idle = self.idle(Instant::now(), SystemTime::now());
        }
        if limits.not_on_battery == Some(true) {
            facts.on_battery = self.on_battery();
        }
        if let Some(programs) = &limits.pause_while {
            facts.program = self.program(programs).unwrap_or_default();
        }
        facts
    }

    /// A battery that is being used up, and no other supply; none where that isn't known. Mice and keyboards have batteries too.
    fn on_battery(&self) -> Option<bool> {
        let devices = self.root.join("sys/class");
        let supplies = if_exists(fs::read_dir(devices.join("power_supply"))).ok()?;
        // A machine without any is a desktop or a server. Where no device is shown at all, it may be anything.
        let Some(supplies) = supplies else { return devices.is_dir().then_some(false) };
        let (mut discharging, mut unknown) = (false, false);
        for supply in supplies {
            let supply = supply.ok()?.path();
            let says = |file: &str| fs::read_to_string(supply.join(file)).unwrap_or_default();
            if says("scope").trim() == "Device" {
                continue;
            }
            match says("type").trim() {
                "Battery" => match says("status").trim() {
                    "Discharging" => discharging = true,
                    "" | "Unknown" => unknown = true,
                    _ => {}
                },
                // The mains, or a USB port that charges.
                _ if says("online").trim() == "1" => return Some(false),
                _ => {}
            }
        }
        (discharging || !unknown).then_some(discharging)
    }

    /// A running program that is one of these.
    fn program(&self, programs: &Programs) -> io::Result<Program> {
        let processes = self.root.join("proc");
        for process in fs::read_dir(&processes)? {
            let process = process?;
            if !process.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit) {
                continue;
            }
            // It may have ended meanwhile.
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            let name = name.trim_end();
            if programs.names(name) {
                return Ok(Program::Runs(name.to_owned()));
            }
        }
        // Mounted with `hidepid`, it doesn't show other users' processes, of which the first always runs.
        fs::read_to_string(processes.join("1/comm"))?;
        Ok(Program::None)
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
        assert_eq!(machine.on_battery(), None, "no devices at all");
        write(at, "sys/class/net/lo", "");
        assert_eq!(machine.on_battery(), Some(false), "no supplies");
        let supply = |name: &str, file: &str, text: &str| {
            write(at, &format!("sys/class/power_supply/{name}/{file}"), text);
        };
        supply("hid-mouse", "type", "Battery\n");
        supply("hid-mouse", "scope", "Device\n");
        supply("hid-mouse", "status", "Discharging\n");
        assert_eq!(machine.on_battery(), Some(false), "the mouse's");
        supply("BAT0", "type", "Battery\n");
        supply("BAT0", "status", "Discharging\n");
        supply("AC", "type", "Mains\n");
        supply("AC", "online", "0\n");
        assert_eq!(machine.on_battery(), Some(true));
        supply("AC", "online", "1\n");
        assert_eq!(machine.on_battery(), Some(false));
        supply("AC", "online", "0\n");
        supply("BAT0", "status", "Full\n");
        assert_eq!(machine.on_battery(), Some(false));
        supply("BAT0", "status", "Unknown\n");
        assert_eq!(machine.on_battery(), None);
        supply("BAT1", "type", "Battery\n");
        supply("BAT1", "status", "Discharging\n");
        assert_eq!(machine.on_battery(), Some(true), "one of them is used up");
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
        assert!(machine.program(&programs).is_err(), "other users' processes aren't shown");
        write(root.path(), "proc/1/comm", "systemd\n");
        assert_eq!(machine.program(&programs).unwrap(), Program::None);
        write(root.path(), "proc/88/comm", "steam\n");
        assert_eq!(machine.program(&programs).unwrap(), Program::Runs("steam".to_owned()));
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
        let limits: Limits = toml::from_str("cpu = 50").unwrap();
        assert!(!Machine::is_asked(&limits));
        assert_eq!(machine.look(&limits, None), Facts::default());
        let hours = Limits { hours: "22:00-06:00".parse().ok(), idle_minutes: Some(5), ..limits };
        let utc: ZoneName = "UTC".parse().unwrap();
        let facts = machine.look(&hours, Some(&utc));
        assert!(Machine::is_asked(&hours) && facts.local.is_some() && facts.idle.is_none());
        let ratios: Limits = toml::from_str("cpu = { '09:00-17:00' = 50, else = 100 }").unwrap();
        assert!(Machine::is_asked(&ratios) && machine.look(&ratios, Some(&utc)).local.is_some());
    }
}
