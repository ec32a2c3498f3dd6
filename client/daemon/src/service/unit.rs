//! The unit that systemd reads.

use crate::service::paths::{STATE, ServicePaths};
use std::path::Path;

/// The whole unit. Training comes last on the machine: after what its owner does, and first to go where memory
/// runs out.
pub(super) fn text(paths: &ServicePaths, program: &Path) -> String {
    let program = quoted(program);
    // A path and no word: it needs no quotes.
    let settings = paths.settings().display().to_string().replace('%', "%%");
    let (target, data, sandbox) = if paths.is_user() {
        ("default.target", String::new(), "")
    } else {
        ("multi-user.target", format!(" --data %S/{STATE}"), SYSTEM_SANDBOX)
    };
    format!(
        "[Unit]
Description=Sojourn client: trains models for a Sojourn server
After=network-online.target
Wants=network-online.target

[Service]
ExecStart={program} client{data}
EnvironmentFile={settings}
# 0 says that it is meant to end: a notice of the cloud, or somebody's wish.
Restart=on-failure
RestartSec=10
# The client hears first, and sends what is trained.
KillMode=mixed
TimeoutStopSec=90
# A trainer that takes too much memory is started again by the client.
OOMPolicy=continue
# The client keeps its trainers in groups of their own, where the owner's limits hold.
Delegate=cpu memory
OOMScoreAdjust=500
Nice=10
IOSchedulingClass=idle
{SANDBOX}{sandbox}
[Install]
WantedBy={target}
"
    )
}

/// The restrictions that a user's own manager can set too. Forbidding memory that is written and run is not among them: libtorch
/// makes its own code.
const SANDBOX: &str = "NoNewPrivileges=yes
LockPersonality=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
UMask=0077
";

/// The restrictions that need the system's manager. Devices stay: GPUs are among them. So do control groups: the unit's own,
/// which it is given, are the only ones that it has the right to change.
const SYSTEM_SANDBOX: &str = "DynamicUser=yes
StateDirectory=sojourn-client
StateDirectoryMode=0700
CapabilityBoundingSet=
PrivateTmp=yes
ProtectClock=yes
ProtectHome=read-only
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectSystem=strict
";

/// A path as a unit's word: its `%` and quotes mean themselves.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let escaped = path.replace('%', "%%").replace('\\', "\\\\").replace('"', "\\\"");
    if escaped.contains(char::is_whitespace) || escaped.contains('"') {
        format!("\"{escaped}\"")
    } else {
        escaped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::paths::Scope;

    #[test]
    fn the_unit_that_is_packed_is_the_one_that_is_installed() {
        let packed = include_str!("../../../../deploy/systemd/sojourn-client.service");
        let paths = ServicePaths::of(Scope::System).unwrap();
        assert_eq!(text(&paths, Path::new("/opt/sojourn/sojourn")), packed);
    }
}
