//! Which Python runs a user's code.

use std::{
    env,
    path::{Path, PathBuf},
};

/// Names the Python for all jobs.
pub(crate) const VARIABLE: &str = "SOJOURN_PYTHON";

/// The Python that the command line or the environment names; else that of a virtual environment: the active one, or `.venv`
/// in the job's folder or one above it; else `python3`.
pub(super) fn find(named: Option<&Path>, folder: &Path) -> PathBuf {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let of_environment = |folder: &Path| folder.join("bin").join("python");
    let active = set("VIRTUAL_ENV").map(|folder| of_environment(&folder));
    let absolute = std::path::absolute(folder).unwrap_or_default();
    let beside = absolute.ancestors().map(|above| of_environment(&above.join(".venv")));
    named
        .map(Path::to_owned)
        .or_else(|| set(VARIABLE))
        .or_else(|| active.into_iter().chain(beside).find(|python| python.is_file()))
        .unwrap_or_else(|| "python3".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_environment_beside_a_job_is_found_from_folders_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let jobs = folder.path().join("jobs");
        let bin = folder.path().join(".venv/bin");
        fs::create_dir_all(&jobs).unwrap();
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join("python"), "").unwrap();
        if env::var_os("VIRTUAL_ENV").is_none() && env::var_os(VARIABLE).is_none() {
            assert_eq!(find(None, &jobs), bin.join("python"));
        }
        assert_eq!(find(Some(Path::new("other")), &jobs), Path::new("other"));
    }
}
