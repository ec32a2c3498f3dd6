//! The GPUs that the driver's own program lists and `CUDA_VISIBLE_DEVICES` doesn't hide.

use super::{
    GpuError,
    child::{Silence, said},
};
use tokio::process::Command;

const QUERY: [&str; 2] =
    ["--query-gpu=index,uuid,memory.total,name", "--format=csv,noheader,nounits"];
/// Characters of what it says that are shown.
const MAX_NAME: usize = 100;
/// Bytes in the driver's unit of memory.
const MEBIBYTE: u64 = 1 << 20;

/// A GPU, as the driver lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gpu {
    /// The GPU's number in the order of the bus, by which people name it. CUDA may count otherwise.
    pub(super) index: u32,
    /// The GPU's name for CUDA, independent of the order.
    pub(super) uuid: String,
    /// Bytes of its memory, where the driver says it.
    pub(super) memory: Option<u64>,
    pub(super) name: String,
}

/// The program's list of the GPUs.
pub(super) async fn list(program: &mut Command) -> Result<String, GpuError> {
    let output = said(program.args(QUERY)).await.map_err(|why| match why {
        Silence::Missing => GpuError::NoDriver,
        Silence::Other(why) => GpuError::Driver(why),
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let line = text.lines().next().unwrap_or_default();
        return Err(GpuError::Driver(format!("says `{}` ({})", shown(line), output.status)));
    }
    Ok(text.into_owned())
}

/// Reads that.
pub(super) fn parse(listing: &str) -> Result<Vec<Gpu>, GpuError> {
    let lines = listing.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| {
            let mut fields = line.splitn(4, ',').map(str::trim);
            let index = fields.next()?.parse().ok()?;
            let uuid = fields.next()?.to_owned();
            // `[N/A]` where it shares the machine's memory.
            let memory = fields.next()?.parse::<u64>().ok();
            let memory = memory.map(|memory| memory.saturating_mul(MEBIBYTE));
            Some(Gpu { index, uuid, memory, name: fields.next()?.to_owned() })
        })
        .collect::<Option<Vec<Gpu>>>()
        .ok_or_else(|| GpuError::Driver(format!("says `{}`", shown(listing.trim()))))
}

/// A program's output for a terminal: its beginning, without control characters.
fn shown(text: &str) -> String {
    text.escape_debug().take(MAX_NAME).collect()
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

    #[tokio::test]
    async fn the_output_of_the_driver_is_read_or_reported() {
        assert_eq!(parse("").unwrap(), []);
        let gpus = parse("7, GPU-0a, 81559, NVIDIA A100, 80GB\n8, GPU-0b, [N/A], GB10\n").unwrap();
        let a100 = Gpu {
            index: 7,
            uuid: "GPU-0a".into(),
            memory: Some(81_559 << 20),
            name: "NVIDIA A100, 80GB".into(),
        };
        let gb10 = Gpu { index: 8, uuid: "GPU-0b".into(), memory: None, name: "GB10".into() };
        assert_eq!(gpus, [a100, gb10]);
        let odd = parse("No devices were found").unwrap_err().to_string();
        assert!(odd.ends_with("says `No devices were found`"), "{odd}");
        let absent = list(&mut Command::new("/nowhere/nvidia-smi")).await.unwrap_err();
        assert!(matches!(absent, GpuError::NoDriver), "{absent}");
        let wild = parse(&"\u{1b}[2J".repeat(1000)).unwrap_err().to_string();
        assert!(wild.len() < 200 && !wild.contains('\u{1b}'), "{wild}");
    }

    #[test]
    fn entries_are_read_up_to_the_first_that_names_no_gpu() {
        let gpus = parse("0, GPU-aa, 1, L4\n1, GPU-ab, 1, L4\n2, GPU-c, 1, L4\n").unwrap();
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
