//! Which GPUs the daemon gives its slots: what the driver lists, what the owner allows, and the part of
//! libtorch that can use them.
//!
//! The trainer is built with the CPU's part of libtorch alone. A machine with GPUs lends it the rest,
//! `libtorch_cuda.so`, from a full installation of PyTorch of the same version.

use sojourn_slot::Device;
use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    str::FromStr,
};

/// The version of PyTorch whose libraries the trainer can load.
const TORCH_VERSION: &str = "2.11.0";
/// Names the folder of `libtorch_cuda.so`.
const TORCH_VARIABLE: &str = "SOJOURN_TORCH";
/// Prints where Python's `torch` is, without loading it.
const WHERE_IS_TORCH: &str = "import importlib.util as u; s = u.find_spec('torch'); \
                              print(s.submodule_search_locations[0] if s else '')";

/// Which GPUs the owner lends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum GpuChoice {
    /// All that can be used, or the CPU where none can.
    #[default]
    Auto,
    /// None: the CPU trains.
    Off,
    /// Exactly these, by number; the daemon doesn't start without them.
    These(Vec<u32>),
}

impl FromStr for GpuChoice {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || "`auto`, `none`, or numbers such as `0,1` are wanted".to_owned();
        match text {
            "auto" => Ok(GpuChoice::Auto),
            "none" => Ok(GpuChoice::Off),
            _ => {
                let numbers: Result<Vec<u32>, _> =
                    text.split(',').map(|number| number.trim().parse()).collect();
                let mut numbers = numbers.map_err(|_| wanted())?;
                let count = numbers.len();
                numbers.sort_unstable();
                numbers.dedup();
                if numbers.len() < count {
                    return Err("a GPU is named twice".to_owned());
                }
                Ok(GpuChoice::These(numbers))
            }
        }
    }
}

/// Why the GPUs that were asked for can't be used.
#[derive(Debug, thiserror::Error)]
pub enum GpuError {
    /// The driver's own program didn't list them.
    #[error("the GPUs can't be listed: `nvidia-smi` {0}")]
    Driver(String),
    /// A number that the driver doesn't list.
    #[error("there is no GPU {index}; `nvidia-smi` lists {found}")]
    Unknown {
        /// The number.
        index: u32,
        /// How many there are.
        found: usize,
    },
    /// GPUs whose arithmetic differs.
    #[error(
        "GPU {first} ({first_name}) and GPU {other} ({other_name}) are not of one kind; run a client for \
         each kind, with a `--data` folder of its own"
    )]
    Mixed {
        /// One of them.
        first: u32,
        /// Its name.
        first_name: String,
        /// Another.
        other: u32,
        /// Its name.
        other_name: String,
    },
    /// No `libtorch_cuda.so`.
    #[error(
        "no PyTorch {TORCH_VERSION} with CUDA was found: install it for `python3`, or name the folder of its \
         `libtorch_cuda.so` in {TORCH_VARIABLE}"
    )]
    NoLibrary,
    /// Another version.
    #[error("`{}` is of PyTorch {found}; {TORCH_VERSION} is wanted", folder.display())]
    Version {
        /// The folder of the library.
        folder: PathBuf,
        /// Its version.
        found: String,
    },
}

/// A GPU, as the driver lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Gpu {
    index: u32,
    name: String,
}

/// The GPUs that slots get, all of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gpus {
    indices: Vec<u32>,
    /// The kind, as the driver names it.
    pub(crate) name: String,
    library: PathBuf,
}

impl Gpus {
    /// How many there are, at least 1.
    pub(crate) fn count(&self) -> usize {
        self.indices.len()
    }

    /// The device of slot number `slot`: each GPU gets as many slots as the next, to within one.
    pub(crate) fn device(&self, slot: u32) -> Device {
        let turn = usize::try_from(slot).unwrap_or(0).checked_rem(self.indices.len());
        let index = turn.and_then(|turn| self.indices.get(turn)).copied().unwrap_or(0);
        Device::Cuda { index, library: self.library.clone() }
    }
}

/// The GPUs to use; none where the CPU is to train. Runs `nvidia-smi` and `python3`: blocks for a moment.
///
/// # Errors
/// Where GPUs were asked for by number and can't be used.
pub(crate) fn find(choice: &GpuChoice) -> Result<Option<Gpus>, GpuError> {
    let listed = || parse(&listing(Command::new("nvidia-smi").args(QUERY).output())?);
    let library = || library_in(torch_folder().ok_or(GpuError::NoLibrary)?);
    match choice {
        GpuChoice::Off => Ok(None),
        GpuChoice::These(wanted) => choose(wanted, &listed()?, library).map(Some),
        GpuChoice::Auto => {
            // Most machines have no such GPU, and no such program: nothing to speak of.
            let Ok(gpus) = listed() else { return Ok(None) };
            Ok(choose_any(&gpus, library))
        }
    }
}

const QUERY: [&str; 2] = ["--query-gpu=index,name", "--format=csv,noheader"];

fn listing(output: io::Result<Output>) -> Result<String, GpuError> {
    let output = output.map_err(|error| GpuError::Driver(format!("can't be run: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout);
        let said = said.lines().next().unwrap_or_default();
        return Err(GpuError::Driver(format!("says `{said}` ({})", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn parse(listing: &str) -> Result<Vec<Gpu>, GpuError> {
    let lines = listing.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| {
            let (index, name) = line.split_once(',')?;
            Some(Gpu { index: index.trim().parse().ok()?, name: name.trim().to_owned() })
        })
        .collect::<Option<Vec<Gpu>>>()
        .ok_or_else(|| GpuError::Driver(format!("says `{}`", listing.trim())))
}

/// Exactly the wanted ones.
fn choose(
    wanted: &[u32],
    gpus: &[Gpu],
    library: impl FnOnce() -> Result<PathBuf, GpuError>,
) -> Result<Gpus, GpuError> {
    let known = |index: &u32| {
        let gpu = gpus.iter().find(|gpu| gpu.index == *index);
        gpu.ok_or(GpuError::Unknown { index: *index, found: gpus.len() })
    };
    let mine = wanted.iter().map(known).collect::<Result<Vec<&Gpu>, _>>()?;
    let Some(first) = mine.first() else {
        return Err(GpuError::Driver("was asked for none".to_owned()));
    };
    if let Some(other) = mine.iter().find(|gpu| gpu.name != first.name) {
        return Err(GpuError::Mixed {
            first: first.index,
            first_name: first.name.clone(),
            other: other.index,
            other_name: other.name.clone(),
        });
    }
    let indices = mine.iter().map(|gpu| gpu.index).collect();
    Ok(Gpus { indices, name: first.name.clone(), library: library()? })
}

/// All of the kind that there is most of; says what it leaves out, and why.
fn choose_any(gpus: &[Gpu], library: impl FnOnce() -> Result<PathBuf, GpuError>) -> Option<Gpus> {
    let count = |name: &str| gpus.iter().filter(|gpu| gpu.name == name).count();
    // Of equally many, the kind that is listed first.
    let most = gpus.iter().rev().max_by_key(|gpu| count(&gpu.name))?;
    for left in gpus.iter().filter(|gpu| gpu.name != most.name) {
        let (index, name, used) = (left.index, left.name.as_str(), most.name.as_str());
        tracing::warn!(
            index,
            name,
            used,
            "a GPU of another kind is left out: one client, one kind"
        );
    }
    let mine = gpus.iter().filter(|gpu| gpu.name == most.name);
    match library() {
        Ok(library) => {
            let indices = mine.map(|gpu| gpu.index).collect();
            Some(Gpus { indices, name: most.name.clone(), library })
        }
        Err(error) => {
            let reason = error.to_string();
            tracing::warn!(gpus = mine.count(), reason, "training on the CPU");
            None
        }
    }
}

/// Where a full PyTorch keeps its libraries, if there is one.
fn torch_folder() -> Option<PathBuf> {
    if let Some(folder) = env::var_os(TORCH_VARIABLE).filter(|folder| !folder.is_empty()) {
        return Some(PathBuf::from(folder));
    }
    let mut python = Command::new("python3");
    python.args(["-c", WHERE_IS_TORCH]).stdin(Stdio::null()).stderr(Stdio::null());
    let output = python.output().ok().filter(|output| output.status.success())?;
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

    const TWO_KINDS: &str = "0, NVIDIA H200\n1, NVIDIA L4\n2, NVIDIA L4\n3, NVIDIA L4\n";

    fn found() -> Result<PathBuf, GpuError> {
        Ok(PathBuf::from("/torch/lib/libtorch_cuda.so"))
    }

    #[test]
    fn choices_are_read_or_refused() {
        assert_eq!("auto".parse(), Ok(GpuChoice::Auto));
        assert_eq!("none".parse(), Ok(GpuChoice::Off));
        assert_eq!("3, 1".parse(), Ok(GpuChoice::These(vec![1, 3])));
        for bad in ["", "all", "0,", "-1", "0,0", "0 1"] {
            assert!(bad.parse::<GpuChoice>().is_err(), "{bad}");
        }
    }

    #[test]
    fn exactly_what_is_asked_for_is_used_or_refused() {
        let gpus = parse(TWO_KINDS).unwrap();
        let chosen = choose(&[1, 3], &gpus, found).unwrap();
        assert_eq!((chosen.count(), chosen.name.as_str()), (2, "NVIDIA L4"));
        let index = |slot| match chosen.device(slot) {
            Device::Cuda { index, .. } => index,
            Device::Cpu => panic!("a slot of a GPU is on the CPU"),
        };
        assert_eq!([0, 1, 2, 3].map(index), [1, 3, 1, 3]);
        let refusal = |wanted: &[u32]| choose(wanted, &gpus, found).unwrap_err().to_string();
        assert_eq!(refusal(&[0, 4]), "there is no GPU 4; `nvidia-smi` lists 4");
        assert!(refusal(&[0, 1]).starts_with("GPU 0 (NVIDIA H200) and GPU 1 (NVIDIA L4) are not"));
        let none = choose(&[0], &gpus, || Err(GpuError::NoLibrary)).unwrap_err();
        assert!(none.to_string().contains("SOJOURN_TORCH"), "{none}");
    }

    #[test]
    fn by_itself_it_takes_the_commonest_kind_and_else_the_cpu() {
        let gpus = parse(TWO_KINDS).unwrap();
        assert_eq!(choose_any(&gpus, found).unwrap().indices, [1, 2, 3]);
        let (even, _) = gpus.split_at(2);
        assert_eq!(choose_any(even, found).unwrap().indices, [0]);
        assert_eq!(choose_any(&gpus, || Err(GpuError::NoLibrary)), None);
        assert_eq!(choose_any(&[], found), None);
    }

    #[test]
    fn what_the_driver_says_is_read_or_told() {
        assert_eq!(parse("").unwrap(), []);
        let odd = parse("No devices were found").unwrap_err().to_string();
        assert!(odd.ends_with("says `No devices were found`"), "{odd}");
        let absent = listing(Err(io::Error::from(io::ErrorKind::NotFound))).unwrap_err();
        assert!(absent.to_string().contains("can't be run"), "{absent}");
    }

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
