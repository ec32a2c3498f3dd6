//! The watch over the trainers' memory where the kernel doesn't keep it: a look now and then, and an end of the
//! trainer that takes most where all of them take too much together.

use super::Limits;
use crate::{context::Context, trainers::runner::UnitRunner};
use sojourn_slot::TrainerGroup;
use std::{convert::Infallible, fs, path::Path, time::Duration};
use tokio::time::sleep;

/// How often it looks: a trainer can take a gigabyte more in a second.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// Watches for as long as the daemon runs.
pub(crate) async fn watch<R: UnitRunner>(context: &Context<R>) -> Infallible {
    let mut changes = context.owner.subscribe();
    loop {
        changes.mark_unchanged();
        let limits = context.owner.limits();
        if limits.memory.is_none() {
            // The sender lives as long as `context`.
            let _ = changes.changed().await;
            continue;
        }
        if !context.trainers.enforcement.keep_memory() {
            look(context.trainers.enforcement.trainer_group(), &limits);
        }
        tokio::select! {
            () = sleep(LOOK_INTERVAL) => {}
            _ = changes.changed() => {}
        }
    }
}

fn look(trainer_group: &TrainerGroup, limits: &Limits) {
    let Some(limit) = limits.memory else { return };
    let taken = |pid: u32| Some((pid, resident(Path::new("/proc"), pid)?));
    let taken: Vec<(u32, u64)> = trainer_group.pids().into_iter().filter_map(taken).collect();
    let Some(excess) = excess(&taken, limit.bytes()) else { return };
    let Excess { pid, bytes, all } = excess;
    let [own, all] = [bytes, all].map(|bytes| bytes / 1_000_000);
    tracing::warn!(pid, megabytes = own, all, limit = %limit, "the trainers take too much memory; ending one");
    let why = format!(
        "the trainers took {all} MB of memory, over the limit of {limit} that the machine's owner has set, and \
         this one took most of it, {own} MB"
    );
    if !trainer_group.condemn(pid, why) {
        return;
    }
    if let Err(error) = trainer_group.kill(pid) {
        tracing::debug!(%error, "a trainer has ended by itself");
    }
}

/// Too much memory, and who takes most of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Excess {
    pid: u32,
    /// Bytes that it takes.
    bytes: u64,
    /// Bytes that all of them take.
    all: u64,
}

/// The process that must end, of those that take so many bytes each.
fn excess(taken: &[(u32, u64)], limit: u64) -> Option<Excess> {
    let all =
        taken.iter().map(|(_, bytes)| bytes).fold(0, |all: u64, one| all.saturating_add(*one));
    let (pid, bytes) = *taken.iter().max_by_key(|(_, bytes)| bytes)?;
    (all > limit).then_some(Excess { pid, bytes, all })
}

/// The bytes of a process that are in memory, those that it shares with others included; none where it has ended.
fn resident(proc: &Path, pid: u32) -> Option<u64> {
    let status = fs::read_to_string(proc.join(pid.to_string()).join("status")).ok()?;
    let kibibytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let number = kibibytes.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    Some(number.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trainer_with_the_most_memory_is_ended_when_memory_is_short() {
        let excess = |taken: &[(u32, u64)]| excess(taken, 100).map(|excess| excess.pid);
        assert_eq!(excess(&[]), None);
        assert_eq!(excess(&[(1, 60), (2, 40)]), None);
        assert_eq!(excess(&[(1, 60), (2, 41)]), Some(1));
        assert_eq!(excess(&[(1, 1), (2, u64::MAX)]), Some(2));
    }

    #[test]
    fn the_memory_of_a_process_is_read_from_the_kernel() {
        let proc = tempfile::tempdir().unwrap();
        fs::create_dir(proc.path().join("5")).unwrap();
        let status = "Name:\ttrainer\nVmHWM:\t  900 kB\nVmRSS:\t  145000 kB\nThreads:\t3\n";
        fs::write(proc.path().join("5/status"), status).unwrap();
        assert_eq!(resident(proc.path(), 5), Some(145_000 * 1024));
        assert_eq!(resident(proc.path(), 6), None);
        let own = resident(Path::new("/proc"), std::process::id()).unwrap();
        assert!(own > 1 << 20, "{own}");
    }
}
