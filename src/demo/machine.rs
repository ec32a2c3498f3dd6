//! The processes of a demo: a server and clients, started from this very program.

use crate::cli::terminal::exit::Failure;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    ffi::OsString,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::process::{Child, Command};

/// How long a process may take to do what it is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The user's settings that a demo takes over: what runs on this machine. All else names a deployment, which a demo must not
/// touch.
const KEPT_VARIABLES: [&str; 4] =
    ["SOJOURN_TRAINER", "SOJOURN_GPUS", "SOJOURN_PYTHON", "SOJOURN_METADATA"];

/// This very program, without the settings of its user's own deployment.
///
/// # Errors
/// Where the system doesn't say where the program is.
pub(super) fn sojourn() -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    without_deployment(&mut command, std::env::vars_os().map(|(name, _)| name));
    Ok(command)
}

fn without_deployment(command: &mut Command, variables: impl Iterator<Item = OsString>) {
    for variable in variables {
        let name = variable.to_string_lossy();
        if name.starts_with("SOJOURN_") && !KEPT_VARIABLES.contains(&name.as_ref()) {
            command.env_remove(&variable);
        }
    }
}

/// A process with its log; killed when dropped.
pub(crate) struct Machine {
    name: String,
    log: PathBuf,
    child: Child,
}

impl Machine {
    /// Starts `sojourn ARGS...`; its output goes to `NAME.log` in `folder`, after what is there. The enrolment
    /// token goes by the environment: everybody on the machine can read arguments.
    pub(crate) fn start(
        folder: &Path,
        name: &str,
        args: &[&str],
        token: Option<&str>,
    ) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::work(format!("can't start {name}: {error}"));
        let log = folder.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&log).map_err(failed)?;
        let mut command = sojourn().map_err(failed)?;
        if let Some(token) = token {
            command.env("SOJOURN_ENROL_TOKEN", token);
        }
        let child = command
            .args(args)
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(failed)?)
            .stderr(file)
            .env("SOJOURN_LOG", "info")
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        Ok(Self { name: name.into(), log, child })
    }

    /// Waits until `path` is there, with text in it; fails where the process ends before.
    pub(crate) async fn wait_for(&mut self, path: &Path) -> Result<String, Failure> {
        let since = Instant::now();
        loop {
            if let Ok(text) = fs::read_to_string(path)
                && !text.trim().is_empty()
            {
                return Ok(text.trim().to_owned());
            }
            self.must_live()?;
            if since.elapsed() > PATIENCE {
                return Err(self.failure("is not ready"));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Fails where the process has ended by itself.
    pub(crate) fn must_live(&mut self) -> Result<(), Failure> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.failure(&format!("ended ({status})"))),
            Err(error) => Err(self.failure(&error.to_string())),
        }
    }

    /// `SIGSTOP`: it does nothing more until it goes on or is killed.
    pub(crate) fn stop(&self) -> Result<(), Failure> {
        self.signal(Signal::STOP)
    }

    /// `SIGCONT`.
    pub(crate) fn go_on(&self) -> Result<(), Failure> {
        self.signal(Signal::CONT)
    }

    /// `SIGKILL`, and waits for its end.
    pub(crate) async fn kill(&mut self) -> Result<(), Failure> {
        self.child.kill().await.map_err(|error| self.failure(&error.to_string()))
    }

    /// `SIGTERM`, and waits for its end; `SIGKILL` where that takes too long.
    pub(crate) async fn end(&mut self) -> Result<(), Failure> {
        if self.child.id().is_some() {
            self.signal(Signal::TERM)?;
        }
        if tokio::time::timeout(PATIENCE, self.child.wait()).await.is_err() {
            self.kill().await?;
        }
        Ok(())
    }

    fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let pid = self.child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| self.failure("has ended"))?;
        kill_process(pid, signal).map_err(|error| self.failure(&error.to_string()))
    }

    /// The message for people, with the end of the log.
    fn failure(&self, what: &str) -> Failure {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines.get(lines.len().saturating_sub(12)..).unwrap_or_default().join("\n");
        Failure::work(format!("{} {what}; the end of its log:\n{tail}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demo_leaves_its_users_deployment_alone() {
        let mut command = Command::new("sojourn");
        let set = ["SOJOURN_JOURNAL", "SOJOURN_TOKEN_FILE", "SOJOURN_TRAINER", "PATH", "HOME"];
        without_deployment(&mut command, set.into_iter().map(OsString::from));
        let removed: Vec<_> = command.as_std().get_envs().collect();
        assert_eq!(
            removed,
            [("SOJOURN_JOURNAL".as_ref(), None), ("SOJOURN_TOKEN_FILE".as_ref(), None)]
        );
    }
}
