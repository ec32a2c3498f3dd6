//! Which GPUs the daemon gives its slots: what the driver lists, what the owner allows, and the part of
//! libtorch that can use them.
//!
//! The trainer is built with the CPU's part of libtorch alone. A machine with GPUs lends it the rest,
//! `libtorch_cuda.so`, from a full installation of PyTorch of the same version.
//!
//! | file | holds |
//! |---|---|
//! | `driver.rs` | what `nvidia-smi` and `CUDA_VISIBLE_DEVICES` say |
//! | `library.rs` | where `libtorch_cuda.so` is |
//! | `ready.rs` | GPUs that a trainer has been seen to work on |

mod driver;
mod library;
mod ready;

pub use ready::gpu_slot;
pub(crate) use ready::ready;

use driver::Gpu;
use library::{TORCH_VARIABLE, TORCH_VERSION};
use sojourn_slot::Device;
use std::{env, path::PathBuf, process::Command, str::FromStr};

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
    /// A number that this process isn't allowed.
    #[error("GPU {0} is not among those of CUDA_VISIBLE_DEVICES")]
    Hidden(u32),
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

/// The GPUs that slots get, all of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gpus {
    uuids: Vec<String>,
    /// The kind, as the driver names it.
    pub(crate) name: String,
    library: PathBuf,
}

impl Gpus {
    /// How many there are, at least 1.
    pub(crate) fn count(&self) -> usize {
        self.uuids.len()
    }

    /// The device of slot number `slot`: each GPU gets as many slots as the next, to within one.
    pub(crate) fn device(&self, slot: u32) -> Device {
        let turn = usize::try_from(slot).unwrap_or(0).checked_rem(self.uuids.len());
        let uuid = turn.and_then(|turn| self.uuids.get(turn)).cloned().unwrap_or_default();
        Device::Cuda { uuid, library: self.library.clone() }
    }

    fn of(gpus: &[&Gpu], name: &str, library: PathBuf) -> Self {
        let uuids = gpus.iter().map(|gpu| gpu.uuid.clone()).collect();
        Self { uuids, name: name.to_owned(), library }
    }
}

/// Where GPUs are looked for.
#[derive(Debug)]
struct Surroundings {
    /// The driver's program.
    driver: PathBuf,
    /// `CUDA_VISIBLE_DEVICES`: the GPUs that this process may use; all where it isn't set.
    visible: Option<String>,
    /// The folder of a full PyTorch's libraries; `python3` is asked where none is named.
    torch: Option<PathBuf>,
}

impl Surroundings {
    fn of_this_process() -> Self {
        let named = |name: &str| env::var_os(name).filter(|folder| !folder.is_empty());
        Self {
            driver: PathBuf::from("nvidia-smi"),
            // Empty says something: none.
            visible: env::var_os("CUDA_VISIBLE_DEVICES")
                .map(|text| text.to_string_lossy().into_owned()),
            torch: named(TORCH_VARIABLE).map(PathBuf::from),
        }
    }
}

/// The GPUs to use; none where the CPU is to train. Runs `nvidia-smi` and `python3`: blocks for a moment.
///
/// # Errors
/// Where GPUs were asked for by number and can't be used.
fn find(choice: &GpuChoice, around: &Surroundings) -> Result<Option<Gpus>, GpuError> {
    let listed = || driver::parse(&driver::list(&mut Command::new(&around.driver))?);
    let visible = around.visible.as_deref();
    let library = || library::find(around.torch.clone());
    match choice {
        GpuChoice::Off => Ok(None),
        GpuChoice::These(wanted) => choose(wanted, &listed()?, visible, library).map(Some),
        GpuChoice::Auto => {
            // Most machines have no such GPU, and no such program: nothing to speak of.
            let Ok(gpus) = listed() else { return Ok(None) };
            Ok(choose_any(&gpus, visible, library))
        }
    }
}

/// Exactly the wanted ones.
fn choose(
    wanted: &[u32],
    gpus: &[Gpu],
    visible: Option<&str>,
    library: impl FnOnce() -> Result<PathBuf, GpuError>,
) -> Result<Gpus, GpuError> {
    let allowed = driver::allowed(gpus, visible);
    let known = |index: &u32| {
        if !gpus.iter().any(|gpu| gpu.index == *index) {
            return Err(GpuError::Unknown { index: *index, found: gpus.len() });
        }
        let gpu = allowed.iter().find(|gpu| gpu.index == *index);
        gpu.copied().ok_or(GpuError::Hidden(*index))
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
    Ok(Gpus::of(&mine, &first.name, library()?))
}

/// All of the kind that there is most of; says what it leaves out, and why.
fn choose_any(
    gpus: &[Gpu],
    visible: Option<&str>,
    library: impl FnOnce() -> Result<PathBuf, GpuError>,
) -> Option<Gpus> {
    let allowed = driver::allowed(gpus, visible);
    if allowed.is_empty() && !gpus.is_empty() {
        let hidden = gpus.len();
        tracing::info!(hidden, "CUDA_VISIBLE_DEVICES names no GPU: training on the CPU");
    }
    let count = |name: &str| allowed.iter().filter(|gpu| gpu.name == name).count();
    // Of equally many, the kind that is listed first.
    let most = allowed.iter().rev().max_by_key(|gpu| count(&gpu.name))?;
    for left in allowed.iter().filter(|gpu| gpu.name != most.name) {
        let (index, name, used) = (left.index, left.name.as_str(), most.name.as_str());
        tracing::warn!(
            index,
            name,
            used,
            "a GPU of another kind is left out: one client, one kind"
        );
    }
    let mine: Vec<&Gpu> = allowed.iter().copied().filter(|gpu| gpu.name == most.name).collect();
    match library() {
        Ok(library) => Some(Gpus::of(&mine, &most.name, library)),
        Err(error) => {
            let reason = error.to_string();
            tracing::warn!(gpus = mine.len(), reason, "training on the CPU");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt, path::Path};

    const TWO_KINDS: &str = "0, GPU-0a, NVIDIA H200\n1, GPU-1b, NVIDIA L4\n2, GPU-2c, NVIDIA L4\n\
                             3, GPU-3d, NVIDIA L4\n";

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
        let gpus = driver::parse(TWO_KINDS).unwrap();
        let chosen = choose(&[1, 3], &gpus, None, found).unwrap();
        assert_eq!((chosen.count(), chosen.name.as_str()), (2, "NVIDIA L4"));
        let uuid = |slot| match chosen.device(slot) {
            Device::Cuda { uuid, .. } => uuid,
            Device::Cpu => panic!("a slot of a GPU is on the CPU"),
        };
        assert_eq!([0, 1, 2, 3].map(uuid), ["GPU-1b", "GPU-3d", "GPU-1b", "GPU-3d"]);
        let refusal = |wanted: &[u32]| choose(wanted, &gpus, None, found).unwrap_err().to_string();
        assert_eq!(refusal(&[0, 4]), "there is no GPU 4; `nvidia-smi` lists 4");
        assert!(refusal(&[0, 1]).starts_with("GPU 0 (NVIDIA H200) and GPU 1 (NVIDIA L4) are not"));
        let none = choose(&[0], &gpus, None, || Err(GpuError::NoLibrary)).unwrap_err();
        assert!(none.to_string().contains("SOJOURN_TORCH"), "{none}");
    }

    #[test]
    fn by_itself_it_takes_the_commonest_kind_and_else_the_cpu() {
        let gpus = driver::parse(TWO_KINDS).unwrap();
        let uuids = |gpus: &[Gpu]| choose_any(gpus, None, found).unwrap().uuids;
        assert_eq!(uuids(&gpus), ["GPU-1b", "GPU-2c", "GPU-3d"]);
        let (even, _) = gpus.split_at(2);
        assert_eq!(uuids(even), ["GPU-0a"]);
        assert_eq!(choose_any(&gpus, None, || Err(GpuError::NoLibrary)), None);
        assert_eq!(choose_any(&[], None, found), None);
    }

    #[test]
    fn what_this_process_may_not_use_is_left_alone() {
        let gpus = driver::parse(TWO_KINDS).unwrap();
        let chosen = |visible| choose_any(&gpus, Some(visible), found).map(|gpus| gpus.uuids);
        assert_eq!(chosen("0,2").unwrap(), ["GPU-0a"]);
        assert_eq!(chosen("GPU-2,GPU-0a,3").unwrap(), ["GPU-2c", "GPU-3d"]);
        for none in ["", "-1", "NoDevFiles", "GPU-", "MIG-2c"] {
            assert_eq!(chosen(none), None, "{none}");
        }
        let error = choose(&[2, 3], &gpus, Some("2"), found).unwrap_err().to_string();
        assert_eq!(error, "GPU 3 is not among those of CUDA_VISIBLE_DEVICES");
        assert_eq!(choose(&[2], &gpus, Some("2"), found).unwrap().uuids, ["GPU-2c"]);
    }

    /// A machine whose `nvidia-smi` is this script.
    fn machine(folder: &Path, script: &str) -> Surroundings {
        let (text, driver) = (folder.join("text"), folder.join("nvidia-smi"));
        fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&text, fs::Permissions::from_mode(0o755)).unwrap();
        // By another process: a child of another test may hold what this one has open for writing.
        let copied = std::process::Command::new("cp").arg("-p").args([&text, &driver]).status();
        assert!(copied.unwrap().success());
        fs::write(folder.join("libtorch_cuda.so"), "").unwrap();
        Surroundings { driver, visible: None, torch: Some(folder.to_owned()) }
    }

    #[test]
    fn the_drivers_own_program_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        let lists = "test \"$*\" = '--query-gpu=index,uuid,name --format=csv,noheader' || exit 2\n\
                     echo '0, GPU-0a, NVIDIA L4'; echo '1, GPU-1b, NVIDIA L4'";
        let around = machine(folder.path(), lists);
        let gpus = find(&GpuChoice::Auto, &around).unwrap().unwrap();
        assert_eq!((gpus.count(), gpus.name.as_str()), (2, "NVIDIA L4"));
        assert_eq!(gpus.library, folder.path().join("libtorch_cuda.so"));
        let second = find(&GpuChoice::These(vec![1]), &around).unwrap().unwrap();
        assert_eq!(second.uuids, ["GPU-1b"]);
        let hidden = Surroundings { visible: Some("1".into()), ..around };
        assert_eq!(find(&GpuChoice::Auto, &hidden).unwrap().unwrap().uuids, ["GPU-1b"]);
        assert_eq!(find(&GpuChoice::Off, &hidden).unwrap(), None);

        let fails = machine(folder.path(), "echo 'no devices were found'; exit 6");
        assert_eq!(find(&GpuChoice::Auto, &fails).unwrap(), None);
        let error = find(&GpuChoice::These(vec![0]), &fails).unwrap_err().to_string();
        assert!(error.contains("says `no devices were found` (exit status: 6)"), "{error}");
    }
}
