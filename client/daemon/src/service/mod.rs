//! `sojourn service`: the client as a service of systemd, for one person or for the machine. `uninstall` removes all that
//! was installed: unit, settings, and the client's data.

mod paths;
mod unit;

use paths::{NAME, Scope, ServicePaths};
use sojourn_files::if_exists;
use sojourn_programs::{exit::Failure, output::remark, secrets::secret};
use std::{
    env, fs,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

/// The arguments of `sojourn service`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Have systemd run the client from now on: while you are logged in, or, with --system, while the machine is on.
    Install(Install),
    /// End the service and delete its unit, its settings and the client's data.
    Uninstall(Uninstall),
    /// Print the unit that `install` would write.
    Show(Show),
}

#[derive(Debug, clap::Args)]
struct Install {
    /// The server's address.
    #[arg(long, env = "SOJOURN_SERVER", value_name = "URL")]
    server: String,
    /// The enrolment token.
    #[arg(long, env = "SOJOURN_ENROL_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
    /// A file with the enrolment token, which others can't read as they can a command line.
    #[arg(long, env = "SOJOURN_ENROL_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// For the machine instead of for you; wants root.
    #[arg(long)]
    system: bool,
    /// Write the files, and leave it to you to start the service.
    #[arg(long)]
    no_start: bool,
}

#[derive(Debug, clap::Args)]
struct Uninstall {
    /// The machine's service instead of yours; wants root.
    #[arg(long)]
    system: bool,
    /// Leave the client's data: its identity, its cache, and results that the server doesn't have yet.
    #[arg(long)]
    keep_data: bool,
}

#[derive(Debug, clap::Args)]
struct Show {
    /// The machine's service instead of yours.
    #[arg(long)]
    system: bool,
}

/// Installs, removes or shows the service; none of it needs a server.
///
/// # Errors
/// Where a file can't be written or deleted, or `systemctl` fails.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.action {
        Action::Install(args) => install(args),
        Action::Uninstall(args) => uninstall(args),
        Action::Show(args) => {
            let paths = ServicePaths::of(scope(args.system))?;
            let text = unit::text(&paths, &program()?);
            io::stdout()
                .write_all(text.as_bytes())
                .map_err(|error| Failure::work(error.to_string()))
        }
    }
}

fn scope(system: bool) -> Scope {
    if system { Scope::System } else { Scope::User }
}

fn install(args: &Install) -> Result<(), Failure> {
    let token = secret("--token", args.token.as_deref(), args.token_file.as_deref())?;
    let token = token.unwrap_or_default();
    for (flag, value) in [("--server", &args.server), ("--token", &token)] {
        if value.is_empty()
            || value.contains(|letter: char| letter.is_whitespace() || "\"'\\".contains(letter))
        {
            return Err(Failure::call(format!(
                "`{flag}` is empty, or has a letter that it can't have"
            )));
        }
    }
    let paths = ServicePaths::of(scope(args.system))?;
    let unit = unit::text(&paths, &program()?);
    let settings = format!("SOJOURN_SERVER={}\nSOJOURN_ENROL_TOKEN={token}\n", args.server);
    write(&paths.settings(), &settings, 0o600)?;
    write(&paths.unit(), &unit, 0o644)?;
    remark(&format!("wrote `{}` and `{}`", paths.unit().display(), paths.settings().display()));
    let start = [&["daemon-reload"][..], &["enable", "--now", NAME]];
    if args.no_start {
        remark(&format!("start it with: {}", paths.command(start[1])));
        return Ok(());
    }
    for call in start {
        systemctl(&paths, call).map_err(|failure| {
            let rest =
                "the files stay, the token among them; `sojourn service uninstall` removes them";
            Failure::work(format!("{}: {rest}", failure.messages().join("; ")))
        })?;
    }
    remark(&format!("started; its log: {}", paths.log_command()));
    if paths.is_user() {
        remark(
            "it ends when you have logged out, unless `loginctl enable-linger` has been called once",
        );
    }
    Ok(())
}

fn uninstall(args: &Uninstall) -> Result<(), Failure> {
    let paths = ServicePaths::of(scope(args.system))?;
    let installed = paths.unit().exists();
    // It ends as on SIGTERM: what is trained is sent first. Where systemd can't be told, the token and all else goes all the same.
    let ended = match installed {
        true => systemctl(&paths, &["disable", "--now", NAME]),
        false => Ok(()),
    };
    for link in paths.links() {
        remove(&link)?;
    }
    remove(&paths.unit())?;
    remove(&paths.settings())?;
    if !args.keep_data {
        for folder in paths.data() {
            remove(&folder)?;
        }
    }
    for folder in paths.folders() {
        // Only where nothing else is in it.
        fs::remove_dir(folder).ok();
    }
    remark(if args.keep_data { "removed all but the client's data" } else { "removed" });
    if installed {
        ended.and_then(|()| systemctl(&paths, &["daemon-reload"])).map_err(|failure| {
            let rest = "the files are gone; a client that still runs ends once its data folder is gone, or with `sojourn client ctl drain`";
            Failure::work(format!("{}: {rest}", failure.messages().join("; ")))
        })?;
    }
    Ok(())
}

/// This program, which the unit starts.
fn program() -> Result<std::path::PathBuf, Failure> {
    env::current_exe()
        .and_then(|program| program.canonicalize())
        .map_err(|error| Failure::work(format!("this program can't be found: {error}")))
}

fn systemctl(paths: &ServicePaths, args: &[&str]) -> Result<(), Failure> {
    let text = paths.command(args);
    let status = Command::new("systemctl").args(paths.scope_args()).args(args).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::work(format!("`{text}` failed ({status})"))),
        Err(error) => Err(Failure::work(format!("`{text}` can't be run: {error}"))),
    }
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
        // The mode counts for new files alone.
        remove_if_exists(path)?;
        let mut options = fs::File::options();
        options.write(true).create_new(true).mode(mode).open(path)?.write_all(text.as_bytes())
    });
    written
        .map_err(|error| Failure::work(format!("`{}` can't be written: {error}", path.display())))
}

fn remove(path: &Path) -> Result<(), Failure> {
    remove_if_exists(path)
        .map_err(|error| Failure::work(format!("`{}` can't be deleted: {error}", path.display())))
}

fn remove_if_exists(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    if_exists(removed).map(|_| ())
}
