//! Control groups on made-up trees.

use super::*;
use std::cell::RefCell;
use tempfile::TempDir;

const ONE: &str = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
    35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
const TWO: &str = "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
/// The daemon's process id.
const PID: u32 = 7;

/// A machine whose process 7 is alone in such groups. Folders that are made don't get the kernel's files: those
/// that must be there are made before.
fn machine(mounts: &str, groups: &str, files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let known = [
        ("proc/self/mountinfo", mounts),
        ("proc/self/cgroup", groups),
        ("proc/7/stat", "7 (sojourn) S 1"),
    ];
    for (path, text) in known.iter().chain(files) {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

/// A machine of the first version, and the groups of a daemon with so many slots on it.
pub(in crate::limits) fn divided(slots: u32) -> (TempDir, Group) {
    let root = machine(ONE, "1:cpu:/\n", &[("sys/fs/cgroup/cpu/sojourn-7/cpu.cfs_quota_us", "-1")]);
    let mut group = Group::make_in(root.path(), PID).unwrap();
    group.divide(slots).unwrap();
    (root, group)
}

/// The quota of a slot of [`divided`], in microseconds of a tenth of a second.
pub(in crate::limits) fn quota_of(root: &TempDir, slot: u32) -> String {
    read(root, &format!("sys/fs/cgroup/cpu/sojourn-7/slot-{slot}/cpu.cfs_quota_us"))
}

fn read(root: &TempDir, path: &str) -> String {
    fs::read_to_string(root.path().join(path)).unwrap_or_else(|error| format!("{path}: {error}"))
}

#[test]
fn version_one_has_a_group_for_each_controller() {
    let files = [
        ("sys/fs/cgroup/cpu/sojourn-7/cpu.cfs_quota_us", "-1"),
        ("sys/fs/cgroup/memory/a/cgroup.procs", "7"),
    ];
    let root = machine(ONE, "4:memory:/a\n1:cpu:/\n", &files);
    let group = Group::make_in(root.path(), PID).unwrap();
    assert_eq!(group.to_string(), "version 1: cpu, memory");
    let at = |path: &str| root.path().join("sys/fs/cgroup").join(path);
    let memory = at("memory/a/sojourn-7");
    let places = Places {
        at_start: vec![memory.join("cgroup.procs")],
        at_work: vec![at("cpu/sojourn-7/cgroup.procs")],
        kills: Some(memory.join("memory.oom_control")),
    };
    assert_eq!(*group.places(), places);
    let quota = || read(&root, "sys/fs/cgroup/cpu/sojourn-7/cpu.cfs_quota_us");
    for (hundredths, micros) in [(50, "50000"), (400, "400000"), (0, "1000")] {
        group.limit_cpu(Some(Quota(hundredths))).unwrap();
        assert_eq!(quota(), micros);
    }
    assert_eq!(read(&root, "sys/fs/cgroup/cpu/sojourn-7/cpu.cfs_period_us"), "100000");
    group.limit_cpu(None).unwrap();
    assert_eq!(quota(), "-1");
    let limit = || read(&root, "sys/fs/cgroup/memory/a/sojourn-7/memory.limit_in_bytes");
    group.limit_memory(Some(1 << 30)).unwrap();
    assert_eq!(limit(), "1073741824");
    group.limit_memory(None).unwrap();
    assert_eq!(limit(), "-1");
}

#[test]
fn version_two_counts_memory_from_the_start_and_processor_time_from_the_hello() {
    let files = [
        ("sys/fs/cgroup/unit/cgroup.controllers", "cpuset cpu memory pids"),
        ("sys/fs/cgroup/unit/cgroup.subtree_control", "memory"),
        ("sys/fs/cgroup/unit/cgroup.procs", "7\n"),
    ];
    let root = machine(TWO, "0::/unit\n", &files);
    let group = Group::make_in(root.path(), PID).unwrap();
    assert_eq!(group.to_string(), "version 2: cpu, memory");
    let own = root.path().join("sys/fs/cgroup/unit/sojourn-7");
    let places = Places {
        at_start: vec![own.join("starting/cgroup.procs")],
        at_work: vec![own.join("working/cgroup.procs")],
        kills: Some(own.join("memory.events")),
    };
    assert_eq!(*group.places(), places);
    let at = |path: &str| read(&root, &format!("sys/fs/cgroup/unit/{path}"));
    assert_eq!(at("cgroup.subtree_control"), "+cpu", "the other is there");
    assert_eq!(at("sojourn-7/cgroup.subtree_control"), "+cpu");
    group.limit_cpu(Some(Quota(150))).unwrap();
    assert_eq!(at("sojourn-7/working/cpu.max"), "150000 100000");
    group.limit_memory(Some(1 << 20)).unwrap();
    assert_eq!(at("sojourn-7/memory.max"), "1048576");
    group.limit_cpu(None).unwrap();
    group.limit_memory(None).unwrap();
    assert_eq!(at("sojourn-7/working/cpu.max"), "max 100000");
    assert_eq!(at("sojourn-7/memory.max"), "max");
}

#[test]
fn each_controller_is_used_in_the_version_that_has_it() {
    let mounts = format!("{}{}", ONE.lines().next().unwrap_or_default(), "\n")
        + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    let files = [
        ("sys/fs/cgroup/cpu/sojourn-7/cpu.cfs_quota_us", "-1"),
        ("sys/fs/cgroup/unified/cgroup.controllers", "cpu memory"),
        ("sys/fs/cgroup/unified/cgroup.subtree_control", ""),
    ];
    let root = machine(&mounts, "1:cpu:/\n0::/\n", &files);
    let group = Group::make_in(root.path(), PID).unwrap();
    assert_eq!(group.to_string(), "version 1: cpu; version 2: memory");
}

#[test]
fn a_daemon_that_is_alone_in_its_group_makes_way_and_another_is_told() {
    let home = tempfile::tempdir().unwrap();
    let (home, control) = (home.path(), home.path().join("cgroup.subtree_control"));
    let asked = RefCell::new(Vec::new());
    // As the kernel has it: no group below one with processes.
    let kernel = |path: &Path, text: &str| {
        asked.borrow_mut().push(text.to_owned());
        let left = home.join("sojourn-7-daemon/cgroup.procs").exists();
        if path == control && !left {
            let source = io::ErrorKind::ResourceBusy.into();
            return Err(CgroupError::Refused { path: path.to_owned(), source });
        }
        Ok(())
    };
    let hand_down = |tree: &mut Tree| version2::hand_down(home, PID, &["cpu"], tree, kernel);
    fs::write(home.join("cgroup.procs"), "1\n7\n").unwrap();
    let error = hand_down(&mut Tree::default()).unwrap_err();
    assert!(error.to_string().contains("--user --scope -p Delegate=yes"), "{error}");
    fs::write(home.join("cgroup.procs"), "7\n").unwrap();
    let mut tree = Tree::default();
    hand_down(&mut tree).unwrap();
    assert_eq!(*asked.borrow(), ["+cpu", "+cpu", "+cpu"]);
    let daemon = home.join("sojourn-7-daemon");
    assert_eq!(fs::read_to_string(daemon.join("cgroup.procs")).unwrap(), "7");
    fs::write(home.join("cgroup.procs"), "").unwrap();
    // The kernel's files don't keep a folder.
    fs::remove_file(daemon.join("cgroup.procs")).unwrap();
    tree.remove().unwrap();
    assert_eq!(fs::read_to_string(home.join("cgroup.procs")).unwrap(), "7");
    assert!(!daemon.exists());
}

#[test]
fn only_groups_of_killed_daemons_are_removed() {
    let root = machine(
        ONE,
        "1:cpu:/\n",
        &[("proc/8/stat", "8 (a) b) R 1"), ("proc/9/stat", "9 (sojourn) Z 1")],
    );
    let home = root.path().join("sys/fs/cgroup/cpu");
    for folder in
        ["sojourn-8/working", "sojourn-9/starting", "sojourn-10-daemon", "sojourn-x", "other"]
    {
        fs::create_dir_all(home.join(folder)).unwrap();
    }
    assert!(Group::make_in(root.path(), PID).is_err(), "it has no quotas");
    let names = fs::read_dir(&home).unwrap().map(|file| file.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["other", "sojourn-8", "sojourn-x"], "and what was begun is gone too");
}

#[test]
fn a_machine_without_controllers_has_no_groups() {
    for (mounts, groups) in [("", ""), (TWO, "0::/unit\n"), (ONE, "1:cpu:/\n")] {
        let root = machine(mounts, groups, &[]);
        let error = Group::make_in(root.path(), PID).unwrap_err();
        assert!(matches!(error, CgroupError::None | CgroupError::Refused { .. }), "{error}");
    }
}

/// On the machine that this runs on, where it allows it: most let only root do so. Nobody enters: a child that
/// is being started holds for a moment what other tests have locked.
#[tokio::test]
async fn the_kernel_takes_the_limits_and_the_groups_go_again() {
    let Ok(group) = Group::make() else { return };
    let doors = group.places().clone();
    if group.has_cpu() {
        group.limit_cpu(Some(Quota(50))).unwrap();
        group.limit_cpu(None).unwrap();
    }
    if group.has_memory() {
        group.limit_memory(Some(64 << 20)).unwrap();
        let kills = fs::read_to_string(doors.kills.as_ref().unwrap()).unwrap();
        assert!(kills.lines().any(|line| line == "oom_kill 0"), "{kills}");
    }
    let doors: Vec<_> = doors.at_start.iter().chain(&doors.at_work).collect();
    assert!(doors.iter().all(|door| door.exists()), "{doors:?}");
    group.close().await;
    for door in doors {
        assert!(!door.parent().unwrap().exists(), "{door:?} is left");
    }
}

#[test]
fn each_slot_has_a_group_of_its_own_below_the_one_of_the_quota() {
    let files = [
        ("sys/fs/cgroup/cpu/sojourn-7/cpu.cfs_quota_us", "-1"),
        ("sys/fs/cgroup/memory/a/cgroup.procs", "7"),
    ];
    let root = machine(ONE, "4:memory:/a\n1:cpu:/\n", &files);
    let mut group = Group::make_in(root.path(), PID).unwrap();
    assert_eq!(group.place_of(0), None);
    assert!(group.give(0, 1.0, None).is_err());
    group.divide(2).unwrap();
    let own = root.path().join("sys/fs/cgroup/cpu/sojourn-7/slot-1");
    assert_eq!(group.place_of(1), Some(own.join("cgroup.procs")));
    assert_eq!(group.place_of(2), None);
    let file = |name: &str| read(&root, &format!("sys/fs/cgroup/cpu/sojourn-7/slot-1/{name}"));
    for (weight, shares) in [(1.0, "1024"), (0.25, "256"), (1e-9, "2"), (1e9, "262144")] {
        group.give(1, weight, None).unwrap();
        assert_eq!(file("cpu.shares"), shares);
    }
    assert!(!own.join("cpu.cfs_quota_us").exists(), "it has none");
    group.give(1, 1.0, Some(Quota(50))).unwrap();
    assert_eq!(file("cpu.cfs_quota_us"), "50000");
    // Before the quota of all is changed those below it are lifted.
    group.limit_cpu(Some(Quota(40))).unwrap();
    assert_eq!(file("cpu.cfs_quota_us"), "-1");
    group.give(1, 0.5, Some(Quota(20))).unwrap();
    assert_eq!((file("cpu.shares"), file("cpu.cfs_quota_us")), ("512".into(), "20000".into()));
    group.level().unwrap();
    assert_eq!((file("cpu.shares"), file("cpu.cfs_quota_us")), ("1024".into(), "-1".into()));
}

#[test]
fn slots_of_version_two_have_weights_once_the_group_above_hands_them_down() {
    let files = [
        ("sys/fs/cgroup/unit/cgroup.controllers", "cpu memory"),
        ("sys/fs/cgroup/unit/cgroup.procs", "7\n"),
    ];
    let root = machine(TWO, "0::/unit\n", &files);
    let mut group = Group::make_in(root.path(), PID).unwrap();
    group.divide(3).unwrap();
    let file = |name: &str| read(&root, &format!("sys/fs/cgroup/unit/sojourn-7/working/{name}"));
    assert_eq!(file("cgroup.subtree_control"), "+cpu");
    group.give(2, 0.02, Some(Quota(150))).unwrap();
    assert_eq!(
        (file("slot-2/cpu.weight"), file("slot-2/cpu.max")),
        ("2".into(), "150000 100000".into())
    );
}
