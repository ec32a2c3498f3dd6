//! Two networks and a cable between them that can be cut: namespaces of the kernel's, which are gone when nobody is in
//! them any more. Their addresses are among those that are set aside for documents (RFC 5737).
//!
//! ```text
//! home, 192.0.2.1 --- cable --- far, 192.0.2.2
//! ```

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    os::fd::AsFd as _,
    panic,
    process::{Child, Command, Stdio},
    thread,
};

pub(crate) const HOME: &str = "192.0.2.1";
pub(crate) const FAR: &str = "192.0.2.2";

/// Makes whoever is not root root in what comes after it, and in nothing else.
const AS_ROOT: [&str; 2] = ["--user", "--map-root-user"];
/// Set for a process that is in the namespaces that its test wants.
const INSIDE: &str = "SOJOURN_TEST_NAMESPACE";
/// The rights that a test needs.
const PROBE: [&str; 6] = ["--net", "ip", "link", "set", "lo", "up"];

/// Runs a test that wants networks: here where that is allowed, else the test of this full name again, in a user
/// namespace of its own.
pub(crate) fn with_networks(name: &str, test: impl FnOnce(&Networks)) {
    if allowed(&PROBE) {
        return test(&Networks::make());
    }
    assert!(
        allowed(&[&AS_ROOT[..], &PROBE].concat()),
        "no test may make a network here: run it as root (in a container with CAP_SYS_ADMIN and CAP_NET_ADMIN), or where \
         user namespaces are allowed; `ip` comes with: apt-get install iproute2"
    );
    again(name, &[&AS_ROOT[..], &["--net"]].concat());
}

/// Runs a test of this full name in a namespace of its own: its process again, where that is in none.
pub(crate) fn again_in_namespace(name: &str, namespace: &str, test: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return test();
    }
    let as_root = [&AS_ROOT[..], &[namespace]].concat();
    let words = [vec![namespace], as_root];
    let words = words.into_iter().find(|words| allowed(&[&words[..], &["true"]].concat()));
    let words = words.expect(
        "no test may have a namespace of its own here: run it as root (in a container with CAP_SYS_ADMIN), or where user \
         namespaces are allowed",
    );
    again(name, &words);
}

/// Runs a test again, in new namespaces.
fn again(name: &str, namespaces: &[&str]) {
    let mut again = Command::new("unshare");
    again.args(namespaces).arg(std::env::current_exe().unwrap()).env(INSIDE, "1");
    let output = again.args(["--exact", name, "--nocapture"]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("1 passed"), "{told}{complaint}");
}

fn allowed(words: &[&str]) -> bool {
    let tried = Command::new("unshare").args(words).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success())
}

/// Both, and the cable.
pub(crate) struct Networks {
    home: Network,
    far: Network,
}

impl Networks {
    fn make() -> Self {
        let (home, far) = (Network::make(), Network::make());
        let pid = far.holder.id().to_string();
        let cable = "link add cable type veth peer name cable netns".split(' ');
        home.within(|| ip(&cable.chain([pid.as_str()]).collect::<Vec<_>>()));
        for (network, address) in [(&home, HOME), (&far, FAR)] {
            network.within(|| {
                ip(&["address", "add", &format!("{address}/24"), "dev", "cable"]);
                ip(&["link", "set", "cable", "up"]);
            });
        }
        Self { home, far }
    }

    /// Does something, and starts processes, in the one network.
    pub(crate) fn home<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.home.within(work)
    }

    /// The same in the other.
    pub(crate) fn far<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.far.within(work)
    }

    /// Nothing gets from one to the other: who is at home is told so, who is far waits in vain.
    pub(crate) fn cut(&self) {
        self.home(|| ip(&["link", "set", "cable", "down"]));
    }

    /// Everything gets from one to the other again.
    pub(crate) fn mend(&self) {
        self.home(|| ip(&["link", "set", "cable", "up"]));
    }
}

/// A network namespace.
struct Network {
    place: File,
    /// Keeps it. It ends with its input, and so with this process however that ends.
    holder: Child,
}

impl Network {
    fn make() -> Self {
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", "ip link set lo up && echo ready && exec cat"]);
        let mut holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "a network was allowed a moment ago");
        let place = File::open(format!("/proc/{}/ns/net", holder.id())).unwrap();
        Self { place, holder }
    }

    /// In a thread of its own, as a test's thread may have others' tests to run.
    fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let kind = Some(LinkNameSpaceType::Network);
        thread::scope(|threads| {
            let inside = threads.spawn(|| {
                move_into_link_name_space(self.place.as_fd(), kind).unwrap();
                work()
            });
            inside.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked))
        })
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

fn ip(words: &[&str]) {
    let output = Command::new("ip").args(words).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {words:?}: {told}");
}
