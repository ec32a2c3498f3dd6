//! Which GPUs the daemon gives its slots: what the driver lists, what the owner allows, and the part of
//! libtorch that can use them.
//!
//! The trainer is built with the CPU's part of libtorch alone. A machine with GPUs lends it the rest,
//! `libtorch_cuda.so`, from a full installation of PyTorch of the same version.
//!
//! | file | holds |
//! |---|---|
//! | `child.rs` | programs that may hang |
//! | `driver.rs` | what `nvidia-smi` and `CUDA_VISIBLE_DEVICES` say |
//! | `library.rs` | where `libtorch_cuda.so` is |
//! | `ready.rs` | GPUs that a trainer has been seen to work on |

mod child;
mod driver;
mod library;
mod ready;

pub use ready::gpu_slot;
pub(crate) use ready::{Ready, ready};

use driver::Gpu;
use library::{TORCH_VARIABLE, TORCH_VERSION};
use sojourn_protocol::quantity::to_usize;
use sojourn_slot::Device;
use std::{env, path::PathBuf, str::FromStr};
use tokio::process::Command;

/// Which GPUs the owner lends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum GpuChoice {
    /// All that can be used, of whatever kinds; or the CPU where none can.
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
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum GpuError {
    #[error("the GPUs can't be listed: there is no program `nvidia-smi`")]
    NoDriver,
    #[error("the GPUs can't be listed: `nvidia-smi` {0}")]
    Driver(String),
    #[error("there is no GPU {index}; `nvidia-smi` lists {found}")]
    Unknown { index: u32, found: usize },
    #[error("GPU {0} is not among those of CUDA_VISIBLE_DEVICES")]
    Hidden(u32),
    /// No `libtorch_cuda.so`.
    #[error(
        "no PyTorch {TORCH_VERSION} with CUDA was found: install it for `python3`, or name the folder of its \
         `libtorch_cuda.so` in {TORCH_VARIABLE}"
    )]
    NoLibrary,
    #[error("`{}` is of PyTorch {found}; {TORCH_VERSION} is wanted", folder.display())]
    Version { folder: PathBuf, found: String },
}

/// The GPUs that slots get, in the driver's order; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gpus {
    gpus: Vec<Gpu>,
    library: PathBuf,
}

impl Gpus {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.gpus.len()
    }

    /// The GPU of slot number `slot`: each gets as many slots as the next, to within one.
    fn of_slot(&self, slot: u32) -> Option<&Gpu> {
        let turn = to_usize(slot).checked_rem(self.gpus.len())?;
        self.gpus.get(turn)
    }

    /// Leaves out those of a kind.
    fn without(&mut self, name: &str) {
        self.gpus.retain(|gpu| gpu.name != name);
    }

    fn device(&self, gpu: &Gpu) -> Device {
        Device::Cuda { uuid: gpu.uuid.clone(), library: self.library.clone() }
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

/// The GPUs to use; none where the CPU is to train.
///
/// # Errors
/// Where GPUs were asked for by number and can't be used.
async fn find(choice: &GpuChoice, around: &Surroundings) -> Result<Option<Gpus>, GpuError> {
    if *choice == GpuChoice::Off {
        return Ok(None);
    }
    let listing = driver::list(&mut Command::new(&around.driver)).await;
    let listed = listing.and_then(|listing| driver::parse(&listing));
    let visible = around.visible.as_deref();
    let GpuChoice::These(wanted) = choice else {
        let gpus = match listed {
            Ok(gpus) => choose_any(&gpus, visible),
            // Most machines have no such GPU, and no such program: nothing to speak of.
            Err(GpuError::NoDriver) => Vec::new(),
            Err(error) => {
                let reason = error.to_string();
                tracing::warn!(reason, "training on the CPU");
                Vec::new()
            }
        };
        if gpus.is_empty() {
            return Ok(None);
        }
        return Ok(match library::find(around.torch.as_deref()).await {
            Ok(library) => Some(Gpus { gpus, library }),
            Err(error) => {
                let reason = error.to_string();
                tracing::warn!(gpus = gpus.len(), reason, "training on the CPU");
                None
            }
        });
    };
    let gpus = choose(wanted, &listed?, visible)?;
    let library = library::find(around.torch.as_deref()).await?;
    Ok(Some(Gpus { gpus, library }))
}

/// Exactly the wanted ones.
fn choose(wanted: &[u32], gpus: &[Gpu], visible: Option<&str>) -> Result<Vec<Gpu>, GpuError> {
    let allowed = driver::allowed(gpus, visible);
    let known = |index: &u32| {
        if !gpus.iter().any(|gpu| gpu.index == *index) {
            return Err(GpuError::Unknown { index: *index, found: gpus.len() });
        }
        let gpu = allowed.iter().find(|gpu| gpu.index == *index);
        gpu.map(|gpu| (*gpu).clone()).ok_or(GpuError::Hidden(*index))
    };
    wanted.iter().map(known).collect()
}

/// All that this process may use.
fn choose_any(gpus: &[Gpu], visible: Option<&str>) -> Vec<Gpu> {
    let allowed = driver::allowed(gpus, visible);
    if allowed.is_empty() && !gpus.is_empty() {
        let hidden = gpus.len();
        tracing::info!(hidden, "CUDA_VISIBLE_DEVICES names no GPU: training on the CPU");
    }
    allowed.into_iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt, path::Path};

    const TWO_KINDS: &str = "0, GPU-0a, 143771, NVIDIA H200\n1, GPU-1b, 23034, NVIDIA L4\n\
                             2, GPU-2c, 23034, NVIDIA L4\n3, GPU-3d, 23034, NVIDIA L4\n";

    fn uuids(gpus: &[Gpu]) -> Vec<&str> {
        gpus.iter().map(|gpu| gpu.uuid.as_str()).collect()
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
        let chosen = choose(&[0, 3], &gpus, None).unwrap();
        assert_eq!(uuids(&chosen), ["GPU-0a", "GPU-3d"], "of two kinds");
        let gpus_of = Gpus { gpus: chosen, library: PathBuf::new() };
        let of_slot = |slot| gpus_of.of_slot(slot).unwrap().uuid.clone();
        assert_eq!([0, 1, 2, 3].map(of_slot), ["GPU-0a", "GPU-3d", "GPU-0a", "GPU-3d"]);
        let refusal = choose(&[0, 4], &gpus, None).unwrap_err().to_string();
        assert_eq!(refusal, "there is no GPU 4; `nvidia-smi` lists 4");
    }

    #[test]
    fn gpus_hidden_from_this_process_are_not_used() {
        let gpus = driver::parse(TWO_KINDS).unwrap();
        assert_eq!(choose_any(&gpus, None), gpus);
        for (visible, mine) in [
            ("0,2", vec!["GPU-0a", "GPU-2c"]),
            ("GPU-2,GPU-0a,3", vec!["GPU-0a", "GPU-2c", "GPU-3d"]),
        ] {
            assert_eq!(uuids(&choose_any(&gpus, Some(visible))), mine, "{visible}");
        }
        for none in ["", "-1", "NoDevFiles", "GPU-", "MIG-2c"] {
            assert_eq!(choose_any(&gpus, Some(none)), [], "{none}");
        }
        let error = choose(&[2, 3], &gpus, Some("2")).unwrap_err().to_string();
        assert_eq!(error, "GPU 3 is not among those of CUDA_VISIBLE_DEVICES");
        assert_eq!(uuids(&choose(&[2], &gpus, Some("2")).unwrap()), ["GPU-2c"]);
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

    #[tokio::test]
    async fn the_drivers_own_program_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        let query = "--query-gpu=index,uuid,memory.total,name --format=csv,noheader,nounits";
        let lists = format!(
            "test \"$*\" = '{query}' || exit 2\n\
             echo '0, GPU-0a, 23034, NVIDIA L4'; echo '1, GPU-1b, 143771, NVIDIA H200'"
        );
        let around = machine(folder.path(), &lists);
        let gpus = find(&GpuChoice::Auto, &around).await.unwrap().unwrap();
        assert_eq!(uuids(&gpus.gpus), ["GPU-0a", "GPU-1b"]);
        assert_eq!(gpus.library, folder.path().join("libtorch_cuda.so"));
        let second = find(&GpuChoice::These(vec![1]), &around).await.unwrap().unwrap();
        assert_eq!(uuids(&second.gpus), ["GPU-1b"]);
        let hidden = Surroundings { visible: Some("1".into()), ..around };
        let visible = find(&GpuChoice::Auto, &hidden).await.unwrap().unwrap();
        assert_eq!(uuids(&visible.gpus), ["GPU-1b"]);
        assert_eq!(find(&GpuChoice::Off, &hidden).await.unwrap(), None);

        let none = Surroundings { torch: Some(folder.path().join("none")), ..hidden };
        assert_eq!(find(&GpuChoice::Auto, &none).await.unwrap(), None);
        let error = find(&GpuChoice::These(vec![1]), &none).await.unwrap_err().to_string();
        assert!(error.contains("SOJOURN_TORCH"), "{error}");

        let fails = machine(folder.path(), "echo 'no devices were found'; exit 6");
        assert_eq!(find(&GpuChoice::Auto, &fails).await.unwrap(), None);
        let error = find(&GpuChoice::These(vec![0]), &fails).await.unwrap_err().to_string();
        assert!(error.contains("says `no devices were found` (exit status: 6)"), "{error}");
    }
}
