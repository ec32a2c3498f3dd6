//! `owner.json`: the owner's commands that outlive the daemon. A pause is kept by the wall clock, and by the clock of the machine's
//! present start, which nobody sets. Whichever clock jumps, a pause never ends early.

use crate::storage::folder::write_lasting_secret;
use serde::{Deserialize, Serialize};
use sojourn_files::if_exists;
use sojourn_protocol::{
    quantity::SaturatingFrom as _,
    time::{Millis, UnixMillis},
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// The format of the file.
const FORMAT: u32 = 1;
/// The longest pause by hand that has an end.
const MAX_PAUSE: Duration = Duration::from_secs(366 * 86_400);
/// The kernel's id of the machine's present start.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A moment, by both clocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moment {
    /// By the wall clock.
    wall: UnixMillis,
    /// By the clock of the machine's present start; none where the kernel doesn't name the start.
    since_boot: Option<SinceBoot>,
}

/// A time by the clock of one start of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SinceBoot {
    /// The id of that start.
    boot: String,
    /// The time since then, sleep included.
    millis: Millis,
}

impl Moment {
    pub(super) fn now() -> Self {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let boot = fs::read_to_string(BOOT_ID).ok().map(|id| id.trim().to_owned());
        // `std::time::Instant` stands still while the machine sleeps.
        let since = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let since = Duration::try_from(since).ok();
        let since_boot =
            boot.zip(since).map(|(boot, since)| SinceBoot { boot, millis: millis(since) });
        Self { wall: UnixMillis(millis(wall).0), since_boot }
    }
}

fn millis(length: Duration) -> Millis {
    Millis(u64::saturating_from(length.as_millis()))
}

/// A pause that the owner has asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pause {
    /// When it began.
    since: UnixMillis,
    /// The length; left out where only the owner ends the pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    length: Option<Millis>,
    /// The end by the clock of the machine's start in which the pause began, or was last read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<SinceBoot>,
}

/// The rest of a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// Until the owner says otherwise.
    Open,
    /// For so long.
    For(Duration),
    /// The pause is over.
    Over,
}

impl Pause {
    fn begin(now: &Moment, length: Option<Duration>) -> Self {
        let length = length.map(|length| millis(length.min(MAX_PAUSE)));
        let mut pause = Self { since: now.wall, length, end: None };
        pause.set_end(now, length);
        pause
    }

    fn set_end(&mut self, now: &Moment, rest: Option<Millis>) {
        let end = |rest: Millis, now: &SinceBoot| SinceBoot {
            boot: now.boot.clone(),
            millis: Millis(now.millis.0.saturating_add(rest.0)),
        };
        self.end = rest.zip(now.since_boot.as_ref()).map(|(rest, now)| end(rest, now));
    }

    /// The rest at a moment. The clock of the machine's start decides, as long as the machine is the same start. After that the wall
    /// clock does: one that stands before the pause's beginning says nothing, and the whole length begins anew.
    fn rest(&self, now: &Moment) -> Rest {
        let Some(length) = self.length else { return Rest::Open };
        let left = match (&self.end, &now.since_boot) {
            (Some(end), Some(now)) if end.boot == now.boot => {
                end.millis.0.saturating_sub(now.millis.0)
            }
            _ => {
                let end = self.since + length;
                end.0.saturating_sub(now.wall.0).min(length.0)
            }
        };
        if left == 0 { Rest::Over } else { Rest::For(Duration::from_millis(left)) }
    }
}

/// The file's content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    format: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pause: Option<Pause>,
    /// Is the client to end once what runs has ended?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    drain: bool,
}

/// The owner's commands that hold until they are taken back or carried out.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    /// Nowhere for a client without a data folder.
    path: Option<PathBuf>,
    contents: Contents,
    /// The file couldn't be read: the owner may have paused the machine, which counts as a pause without an end.
    is_unreadable: bool,
}

impl Commands {
    /// Reads the file. One that can't be read counts as a pause.
    pub(crate) fn open(path: PathBuf) -> Self {
        let now = Moment::now();
        let (contents, is_unreadable) = match read(&path) {
            Ok(contents) => (contents, false),
            Err(error) => {
                let file = path.display();
                tracing::error!(%error, %file, "the file with the owner's commands can't be read: paused until `ctl resume`");
                let pause = Some(Pause::begin(&now, None));
                (Contents { pause, ..Contents::default() }, true)
            }
        };
        let mut commands = Self { path: Some(path), contents, is_unreadable };
        commands.go_on(&now);
        commands
    }

    /// Has a kept pause go on by the clock of the machine's present start.
    fn go_on(&mut self, now: &Moment) {
        let Some(pause) = &mut self.contents.pause else { return };
        let before = pause.clone();
        match pause.rest(now) {
            Rest::Open => {}
            Rest::For(left) => pause.set_end(now, Some(millis(left))),
            Rest::Over => self.contents.pause = None,
        }
        if self.contents.pause.as_ref() != Some(&before)
            && let Err(error) = self.write()
        {
            tracing::warn!(%error, "the file with the owner's commands can't be written");
        }
    }

    /// The rest of the pause by hand, if there is one. One that is over is forgotten.
    pub(super) fn pause(&mut self, now: &Moment) -> Option<Rest> {
        match self.contents.pause.as_ref()?.rest(now) {
            Rest::Over => {
                self.contents.pause = None;
                // Otherwise it would begin anew where a clock is set back.
                if let Err(error) = self.write() {
                    tracing::warn!(%error, "the file with the owner's commands can't be written");
                }
                None
            }
            rest => Some(rest),
        }
    }

    /// May the owner have paused the machine, which can't be read?
    pub(super) const fn is_unreadable(&self) -> bool {
        self.is_unreadable
    }

    /// Pauses, for so long or until [`Commands::resume`].
    pub(super) fn begin_pause(&mut self, length: Option<Duration>) -> io::Result<()> {
        self.contents.pause = Some(Pause::begin(&Moment::now(), length));
        self.is_unreadable = false;
        self.write()
    }

    /// Ends a pause by hand.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        self.contents.pause = None;
        self.is_unreadable = false;
        self.write()
    }

    /// Is the client to end once what runs has ended?
    pub(super) const fn drains(&self) -> bool {
        self.contents.drain
    }

    /// The client is to end once what runs has ended; or has done so.
    pub(super) fn set_drain(&mut self, drain: bool) -> io::Result<()> {
        if self.contents.drain == drain {
            return Ok(());
        }
        self.contents.drain = drain;
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let contents = Contents { format: FORMAT, ..self.contents.clone() };
        write_lasting_secret(path, &serde_json::to_vec_pretty(&contents)?)
    }
}

fn read(path: &Path) -> io::Result<Contents> {
    let Some(text) = if_exists(fs::read(path))? else { return Ok(Contents::default()) };
    let contents: Contents = serde_json::from_slice(&text)?;
    if contents.format != FORMAT {
        let message = format!("format {} is not {FORMAT}", contents.format);
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;
    const NOON: u64 = 1_800_000_000_000;

    fn moment(wall: u64, boot: &str, since_boot: u64) -> Moment {
        let since_boot = SinceBoot { boot: boot.to_owned(), millis: Millis(since_boot) };
        Moment { wall: UnixMillis(wall), since_boot: Some(since_boot) }
    }

    /// Two hours from noon on, an hour after the machine's start.
    fn two_hours() -> Pause {
        Pause::begin(&moment(NOON, "a", HOUR), Some(Duration::from_millis(2 * HOUR)))
    }

    fn minutes(pause: &Pause, now: &Moment) -> u64 {
        match pause.rest(now) {
            Rest::For(left) => left.as_secs() / 60,
            Rest::Over => 0,
            Rest::Open => u64::MAX,
        }
    }

    #[test]
    fn a_pause_lasts_as_long_as_said_whichever_way_the_wall_clock_is_set() {
        let pause = two_hours();
        for (wall, since_boot, left) in [
            (NOON, HOUR, 120),
            (NOON + HOUR, 2 * HOUR, 60),
            (NOON + 48 * HOUR, 2 * HOUR, 60),
            (0, 2 * HOUR, 60),
            (NOON + 2 * HOUR, 3 * HOUR, 0),
            (0, 3 * HOUR, 0),
        ] {
            assert_eq!(
                minutes(&pause, &moment(wall, "a", since_boot)),
                left,
                "{wall} {since_boot}"
            );
        }
    }

    #[test]
    fn after_another_start_of_the_machine_the_wall_clock_decides_and_one_from_before_says_nothing()
    {
        let pause = two_hours();
        for (wall, left) in [
            (NOON + HOUR, 60),
            (NOON + 2 * HOUR, 0),
            (NOON + 99 * HOUR, 0),
            // The battery of the machine's clock is empty.
            (0, 120),
            (NOON - 1, 120),
        ] {
            assert_eq!(minutes(&pause, &moment(wall, "b", 5)), left, "{wall}");
        }
        let open = Pause::begin(&moment(NOON, "a", HOUR), None);
        assert_eq!(open.rest(&moment(0, "b", 0)), Rest::Open);
        let without = Moment { wall: UnixMillis(NOON + HOUR), since_boot: None };
        assert_eq!(minutes(&pause, &without), 60);
    }

    #[test]
    fn a_pause_that_began_anew_after_a_start_goes_on_by_the_clock_of_that_start() {
        let folder = tempfile::tempdir().unwrap();
        let mut commands =
            Commands { path: Some(folder.path().join("owner.json")), ..Commands::default() };
        commands.contents.pause = Some(two_hours());
        commands.go_on(&moment(0, "b", 10));
        // The wall clock is right again, and the pause wouldn't last beyond 14:00.
        assert_eq!(
            commands.pause(&moment(NOON + 3 * HOUR, "b", HOUR + 10)),
            Some(Rest::For(Duration::from_millis(HOUR)))
        );
        assert_eq!(commands.pause(&moment(NOON + 3 * HOUR, "b", 2 * HOUR + 10)), None);
        // Forgotten, so that a clock that is set back doesn't begin it anew.
        assert_eq!(commands.pause(&moment(0, "c", 0)), None);
        assert_eq!(read(&folder.path().join("owner.json")).unwrap().pause, None);
    }

    #[test]
    fn commands_outlive_the_daemon_and_a_file_that_cannot_be_read_counts_as_a_pause() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("owner.json");
        let open = || Commands::open(path.clone());
        let mut commands = open();
        assert!(commands.pause(&Moment::now()).is_none() && !commands.is_unreadable());
        commands.begin_pause(Some(Duration::from_secs(7200))).unwrap();
        let Some(Rest::For(left)) = open().pause(&Moment::now()) else { panic!("no pause") };
        assert!(left <= Duration::from_secs(7200) && left > Duration::from_secs(7000), "{left:?}");
        commands.begin_pause(None).unwrap();
        commands.set_drain(true).unwrap();
        assert_eq!((open().pause(&Moment::now()), open().drains()), (Some(Rest::Open), true));
        commands.resume().unwrap();
        commands.set_drain(false).unwrap();
        assert!(open().pause(&Moment::now()).is_none() && !open().drains());
        for bad in ["", "{", r#"{"format":2}"#, r#"{"format":1,"rest":true}"#] {
            fs::write(&path, bad).unwrap();
            assert!(open().is_unreadable(), "{bad}");
        }
        let mut unreadable = open();
        unreadable.set_drain(true).unwrap();
        assert!(unreadable.is_unreadable(), "to drain isn't to resume");
        assert_eq!(open().pause(&Moment::now()), Some(Rest::Open));
        unreadable.resume().unwrap();
        assert!(!unreadable.is_unreadable() && open().pause(&Moment::now()).is_none());
    }
}
