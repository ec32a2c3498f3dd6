//! What the driver's own program lists, and what `CUDA_VISIBLE_DEVICES` leaves of it.

use super::GpuError;
use std::process::Command;

const QUERY: [&str; 2] = ["--query-gpu=index,uuid,name", "--format=csv,noheader"];

/// A GPU, as the driver lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gpu {
    /// Its number in the order of the bus, which is what people name it by. CUDA may count otherwise.
    pub(super) index: u32,
    /// What names it to CUDA, whatever the order.
    pub(super) uuid: String,
    pub(super) name: String,
}

/// What the program says of the GPUs.
pub(super) fn list(program: &mut Command) -> Result<String, GpuError> {
    let output = program.args(QUERY).output();
    let output = output.map_err(|error| GpuError::Driver(format!("can't be run: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout);
        let said = said.lines().next().unwrap_or_default();
        return Err(GpuError::Driver(format!("says `{said}` ({})", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Reads that.
pub(super) fn parse(listing: &str) -> Result<Vec<Gpu>, GpuError> {
    let lines = listing.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| {
            let mut fields = line.splitn(3, ',').map(str::trim);
            let index = fields.next()?.parse().ok()?;
            let (uuid, name) = (fields.next()?.to_owned(), fields.next()?.to_owned());
            Some(Gpu { index, uuid, name })
        })
        .collect::<Option<Vec<Gpu>>>()
        .ok_or_else(|| GpuError::Driver(format!("says `{}`", listing.trim())))
}

/// The GPUs that `CUDA_VISIBLE_DEVICES` names, read as CUDA reads it: numbers (here the driver's) and
/// beginnings of UUIDs, up to the first that names none. All, where it isn't set.
pub(super) fn allowed<'a>(gpus: &'a [Gpu], visible: Option<&str>) -> Vec<&'a Gpu> {
    let Some(visible) = visible else { return gpus.iter().collect() };
    let named = |entry: &str| match entry.trim().parse::<u32>() {
        Ok(index) => gpus.iter().find(|gpu| gpu.index == index),
        Err(_) if entry.trim().starts_with("GPU-") => {
            let mut alike = gpus.iter().filter(|gpu| gpu.uuid.starts_with(entry.trim()));
            alike.next().filter(|_| alike.next().is_none())
        }
        Err(_) => None,
    };
    let named: Vec<&Gpu> = visible.split(',').map_while(named).collect();
    gpus.iter().filter(|gpu| named.contains(gpu)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_says_is_read_or_told() {
        assert_eq!(parse("").unwrap(), []);
        let gpus = parse("7, GPU-0a, NVIDIA A100, 80GB\n").unwrap();
        let name = "NVIDIA A100, 80GB".to_owned();
        assert_eq!(gpus, [Gpu { index: 7, uuid: "GPU-0a".into(), name }]);
        let odd = parse("No devices were found").unwrap_err().to_string();
        assert!(odd.ends_with("says `No devices were found`"), "{odd}");
        let absent = list(&mut Command::new("/nowhere/nvidia-smi")).unwrap_err();
        assert!(absent.to_string().contains("can't be run"), "{absent}");
    }

    #[test]
    fn entries_are_read_up_to_the_first_that_names_no_gpu() {
        let gpus = parse("0, GPU-aa, L4\n1, GPU-ab, L4\n2, GPU-c, L4\n").unwrap();
        let allowed =
            |visible| -> Vec<u32> { allowed(&gpus, visible).iter().map(|gpu| gpu.index).collect() };
        assert_eq!(allowed(None), [0, 1, 2]);
        assert_eq!(allowed(Some("2, 0")), [0, 2]);
        assert_eq!(allowed(Some("0,-1,1")), [0]);
        assert_eq!(allowed(Some("GPU-c,GPU-ab")), [1, 2]);
        assert_eq!(allowed(Some("GPU-a")), [0; 0], "two begin so");
        assert_eq!(allowed(Some("3")), [0; 0]);
    }
}
