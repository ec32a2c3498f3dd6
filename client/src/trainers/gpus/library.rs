//! Where `libtorch_cuda.so` is, and whether it goes with the trainer.

use super::{GpuError, child::said};
use std::{
    env, fs,
    path::{Path, PathBuf},
};
use tokio::process::Command;

/// The version of PyTorch whose libraries the trainer can load.
pub(super) const TORCH_VERSION: &str = "2.11.0";
/// Names the folder of `libtorch_cuda.so`.
pub(super) const TORCH_VARIABLE: &str = "SOJOURN_TORCH";
/// Prints where Python's `torch` is, without loading it.
const WHERE_IS_TORCH: &str = "import importlib.util as u; s = u.find_spec('torch'); \
                              print(s.submodule_search_locations[0] if s else '')";

/// The library in the named folder, or else in that of Python's PyTorch.
pub(super) async fn find(named: Option<&Path>) -> Result<PathBuf, GpuError> {
    let folder = match named {
        Some(folder) => Some(folder.to_owned()),
        None => torch_folder().await,
    };
    library_in(folder.ok_or(GpuError::NoLibrary)?)
}

/// Where Python's PyTorch keeps its libraries, if it has a full one. The Python beside this program is asked first: a wheel is
/// installed into an environment with one.
async fn torch_folder() -> Option<PathBuf> {
    let program = env::current_exe().ok();
    let beside = program.as_deref().and_then(Path::parent).map(|folder| folder.join("python3"));
    for python in beside.into_iter().chain([PathBuf::from("python3")]) {
        if let Some(folder) = torch_of(&python).await {
            return Some(folder);
        }
    }
    None
}

/// Where this Python's PyTorch keeps its libraries, if there is one.
async fn torch_of(python: &Path) -> Option<PathBuf> {
    let mut python = Command::new(python);
    let output = said(python.args(["-c", WHERE_IS_TORCH])).await;
    let output = output.ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    let folder = text.trim();
    (!folder.is_empty()).then(|| Path::new(folder).join("lib"))
}

/// The library in that folder (or in the `lib` below it), if its version is the trainer's.
fn library_in(folder: PathBuf) -> Result<PathBuf, GpuError> {
    let places = [folder.clone(), folder.join("lib")];
    let library = places.iter().map(|place| place.join("libtorch_cuda.so"));
    let library = library.into_iter().find(|path| path.is_file()).ok_or(GpuError::NoLibrary)?;
    // `torch/lib/libtorch_cuda.so` lies beside `torch/version.py`; a folder of libraries alone is
    // taken at its owner's word.
    let version = library.ancestors().nth(2).map(|torch| torch.join("version.py"));
    let version = version.and_then(|path| fs::read_to_string(path).ok());
    match version.as_deref().and_then(version_in) {
        Some(found) if found.split('+').next() != Some(TORCH_VERSION) => {
            Err(GpuError::Version { folder, found: found.to_owned() })
        }
        _ => Ok(library),
    }
}

/// The version in the text of `torch/version.py`.
fn version_in(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| line.starts_with("__version__"))?;
    line.split('\'').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_library_of_the_same_version_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let lib = dir.path().join("torch/lib");
        fs::create_dir_all(&lib).unwrap();
        assert!(matches!(library_in(lib.clone()), Err(GpuError::NoLibrary)));
        let library = lib.join("libtorch_cuda.so");
        fs::write(&library, "").unwrap();
        assert_eq!(library_in(lib.clone()).unwrap(), library);
        assert_eq!(library_in(dir.path().join("torch")).unwrap(), library);
        let version = dir.path().join("torch/version.py");
        fs::write(&version, "__version__ = '2.11.0+cu130'\n").unwrap();
        assert_eq!(library_in(lib.clone()).unwrap(), library);
        fs::write(&version, "from x import y\n__version__ = '2.9.1'\n").unwrap();
        let error = library_in(lib).unwrap_err().to_string();
        assert!(error.ends_with("is of PyTorch 2.9.1; 2.11.0 is wanted"), "{error}");
    }
}
