//! The groups that this process is in, by what the kernel says of them and where they are mounted.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Folders of the groups that this process was started in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Homes {
    /// Of processor time, in version 1.
    pub(super) cpu: Option<PathBuf>,
    /// Of memory, in version 1.
    pub(super) memory: Option<PathBuf>,
    /// In version 2.
    pub(super) two: Option<PathBuf>,
}

impl Homes {
    /// Reads `proc/self` of the machine whose files lie in `root`. What can't be read isn't there.
    pub(super) fn find(root: &Path) -> Self {
        let read = |file: &str| fs::read_to_string(root.join("proc/self").join(file));
        let (groups, mounts) = (read("cgroup").unwrap_or_default(), read("mountinfo"));
        let mounts = mounts.unwrap_or_default();
        let mut homes = Self::default();
        for line in groups.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
            if controllers.is_empty() {
                homes.two = folder(root, &mounts, "cgroup2", "", path);
                continue;
            }
            for controller in controllers.split(',') {
                let home = match controller {
                    "cpu" => &mut homes.cpu,
                    "memory" => &mut homes.memory,
                    _ => continue,
                };
                *home = folder(root, &mounts, "cgroup", controller, path);
            }
        }
        homes
    }

    /// Which controllers version 2 is to have: those that version 1 hasn't.
    pub(super) fn of_two(&self) -> Vec<&'static str> {
        let one = [("cpu", self.cpu.is_some()), ("memory", self.memory.is_some())];
        one.into_iter().filter(|(_, taken)| !taken).map(|(name, _)| name).collect()
    }
}

/// Where a group is, by the lines of `mountinfo`: `ID PARENT DEVICE ROOT POINT OPTIONS ... - TYPE SOURCE OPTIONS`.
fn folder(
    root: &Path,
    mounts: &str,
    wanted: &str,
    controller: &str,
    path: &str,
) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (top, point) = (mount.next()?, mount.next()?);
        let mut system = system.split(' ');
        let (kind, options) = (system.next()?, system.nth(1)?);
        let has = controller.is_empty() || options.split(',').any(|option| option == controller);
        // A container may be shown a part of the tree; groups outside of it begin with `/..`.
        let below = Path::new(path).strip_prefix(top).ok().filter(|_| !path.starts_with("/.."))?;
        let point = Path::new(point).strip_prefix("/").ok()?;
        (kind == wanted && has).then(|| root.join(point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn homes(cgroup: &str, mounts: &str) -> (tempfile::TempDir, Homes) {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        fs::write(root.path().join("proc/self/cgroup"), cgroup).unwrap();
        fs::write(root.path().join("proc/self/mountinfo"), mounts).unwrap();
        let homes = Homes::find(root.path());
        (root, homes)
    }

    #[test]
    fn groups_of_both_versions_are_found_where_they_are_mounted() {
        let mounts = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
            32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
            35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
            41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n";
        let groups = "4:memory:/a/b\n1:cpu,cpuacct:/\n9:name=systemd:/x\n0::/c\n";
        let (root, found) = homes(groups, mounts);
        let at = |path: &str| Some(root.path().join("sys/fs/cgroup").join(path));
        let expected =
            Homes { cpu: at("cpu,cpuacct/"), memory: at("memory/a/b"), two: at("unified/c") };
        assert_eq!(found, expected);
        assert!(found.of_two().is_empty());
    }

    #[test]
    fn a_container_sees_a_part_of_the_tree() {
        let mounts = "9 8 0:9 /docker/5 /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        let (root, found) = homes("0::/docker/5/daemon\n", mounts);
        assert_eq!(found.two, Some(root.path().join("sys/fs/cgroup/daemon")));
        assert_eq!(found.of_two(), ["cpu", "memory"]);
        let mounts = "9 8 0:9 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        assert_eq!(homes("0::/../other\n", mounts).1, Homes::default());
        assert_eq!(homes("0::/docker/6\n", "").1, Homes::default());
        assert_eq!(homes("", mounts).1, Homes::default());
    }
}
