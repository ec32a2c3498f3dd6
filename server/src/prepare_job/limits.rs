//! The limits of a reader's process, which the kernel keeps: hostile files may make a decoder ask for any memory, and for any time.

use rustix::{
    io::Errno,
    param::page_size,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};
use serde::{Deserialize, Serialize};
use std::fs;

/// Bytes of memory that reading one job's data may take, where the operator says nothing else.
pub const DEFAULT_MAX_DATA_MEMORY: u64 = 4 << 30;
/// Bytes of memory that reading any data takes: the buffers of its threads and of the formats.
pub const MIN_MAX_DATA_MEMORY: u64 = 256 << 20;
/// Seconds of processor time that any data may take.
const BASE_SECONDS: u64 = 600;
/// Bytes that are read in a second of processor time at least, over all passes. Slow formats on slow machines reach ten times as much.
const BYTES_PER_SECOND: u64 = 1_000_000;
/// Seconds between the signal that says that the time is over and the one that can't be caught.
const GRACE_SECONDS: u64 = 5;

/// The limits of one reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderLimits {
    /// Bytes of memory of its own that it may have besides those of the program's start.
    pub memory: u64,
    /// Seconds of processor time, of all its threads together.
    pub seconds: u64,
    /// Bytes of a file that it writes.
    pub file: u64,
}

impl ReaderLimits {
    /// The limits for so many bytes of data, which become files of at most `file` bytes.
    #[must_use]
    pub const fn for_data(bytes: u64, file: u64, memory: u64) -> Self {
        let seconds = BASE_SECONDS.saturating_add(bytes / BYTES_PER_SECOND);
        Self { memory, seconds, file }
    }

    /// Sets the limits of this process, for good.
    ///
    /// # Errors
    /// The system's.
    pub fn keep(&self) -> Result<(), Errno> {
        let memory = own_memory().saturating_add(self.memory);
        limit(Resource::Data, memory, memory)?;
        limit(Resource::Cpu, self.seconds, self.seconds.saturating_add(GRACE_SECONDS))?;
        limit(Resource::Fsize, self.file, self.file)?;
        // Strangers' bytes are left in no file for debuggers.
        limit(Resource::Core, 0, 0)
    }
}

/// Limits a resource, though never beyond the limit that there is.
fn limit(resource: Resource, soft: u64, hard: u64) -> Result<(), Errno> {
    let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let rlimit = Rlimit { current: Some(soft.min(most)), maximum: Some(hard.min(most)) };
    setrlimit(resource, rlimit)
}

/// Bytes of memory of its own that the process has now, as the limit counts them: what is only reserved doesn't. 0 where the system doesn't
/// say.
fn own_memory() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(5)?.parse::<u64>().ok());
    pages.unwrap_or(0).saturating_mul(u64::try_from(page_size()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_grows_with_the_data_and_memory_does_not() {
        let (few, many) =
            (ReaderLimits::for_data(5, 10, 7), ReaderLimits::for_data(64 << 30, 10, 7));
        assert_eq!((few.seconds, few.memory, few.file), (600, 7, 10));
        assert_eq!((many.seconds, many.memory), (69_319, 7));
        assert_eq!(ReaderLimits::for_data(u64::MAX, 0, 0).seconds, 600 + u64::MAX / 1_000_000);
    }
}
