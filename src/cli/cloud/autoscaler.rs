//! The program `sojourn-autoscaler`: where it is, and becoming it.

use crate::cli::terminal::exit::Failure;
use std::{
    env,
    ffi::{OsStr, OsString},
    io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Command,
};

const PROGRAM: &str = "sojourn-autoscaler";
/// Names another program.
const VARIABLE: &str = "SOJOURN_AUTOSCALER";

/// Becomes the program: its output, its exit code and the signals are then its own. Returns only where that fails.
pub(super) fn become_it(words: &[&OsStr]) -> Failure {
    let program = find(env::var_os(VARIABLE), env::current_exe().ok().as_deref());
    let error = Command::new(&program).args(words).exec();
    if error.kind() == io::ErrorKind::NotFound {
        return Failure::call(format!(
            "there is no `{}`: it lies beside this program where `make dist` packed both, and \
             `cargo build --release -p {PROGRAM}` builds it; `{VARIABLE}` names it elsewhere",
            program.display()
        ));
    }
    Failure::work(format!("`{}` can't be run: {error}", program.display()))
}

/// The one that the variable names; the one beside this program; else the one on PATH.
fn find(named: Option<OsString>, own: Option<&Path>) -> PathBuf {
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        return named.into();
    }
    let beside = own.and_then(Path::parent).map(|folder| folder.join(PROGRAM));
    beside.filter(|program| program.is_file()).unwrap_or_else(|| PROGRAM.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_named_or_beside_this_one_or_on_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("sojourn");
        assert_eq!(
            find(None, Some(&own)),
            Path::new(PROGRAM),
            "a word without a folder is looked for on PATH"
        );
        let beside = folder.path().join(PROGRAM);
        std::fs::write(&beside, "").unwrap();
        assert_eq!(find(None, Some(&own)), beside);
        assert_eq!(find(Some(OsString::new()), Some(&own)), beside);
        assert_eq!(find(Some("/opt/it".into()), Some(&own)), Path::new("/opt/it"));
    }
}
