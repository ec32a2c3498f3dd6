//! The resources that a running unit takes of the machine, each second.

use rustix::time::{ClockId, clock_gettime};
use sojourn_protocol::{
    quantity::{Bytes, Micros},
    trainer::UsageSample,
};
use std::{
    fs,
    time::{Duration, Instant},
};

/// The shortest time between two samples.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// Measures this process since the last sample.
#[derive(Debug)]
pub(crate) struct UsageMeter {
    since: Instant,
    /// Of that, the unit stood still for so long at pace 0.
    paused: Duration,
    busy: Duration,
    disk: [u64; 2],
}

impl UsageMeter {
    /// From now on.
    pub(crate) fn new() -> Self {
        Self {
            since: Instant::now(),
            paused: Duration::ZERO,
            busy: processor_time(),
            disk: disk_bytes(),
        }
    }

    /// Is it time for a sample?
    pub(crate) fn is_due(&self) -> bool {
        self.since.elapsed() >= SAMPLE_EVERY
    }

    /// The unit has stood still for so long.
    pub(crate) fn paused(&mut self, time: Duration) {
        self.paused += time;
    }

    /// A sample of the resources taken since the last one; `loss` is the mean over the batches since then.
    pub(crate) fn sample(&mut self, loss: Option<f64>) -> UsageSample {
        let now = Self::new();
        let span = now.since.saturating_duration_since(self.since).saturating_sub(self.paused);
        let [read, written] = [0, 1].map(|way| {
            let bytes = |meter: &Self| meter.disk.get(way).copied().unwrap_or_default();
            Bytes(bytes(&now).saturating_sub(bytes(self)))
        });
        let busy = Micros::from(now.busy.saturating_sub(self.busy));
        *self = now;
        UsageSample { span: span.into(), busy, loss, memory: resident_bytes(), read, written }
    }
}

/// Of all threads, since the process began.
fn processor_time() -> Duration {
    // Since the process began: neither is negative.
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Memory that is really in use; 0 where the system doesn't say.
fn resident_bytes() -> Bytes {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    Bytes(number(&status, "VmRSS:").saturating_mul(1024))
}

/// Bytes read from and written to disks; 0 where the system doesn't say.
fn disk_bytes() -> [u64; 2] {
    let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
    ["read_bytes:", "write_bytes:"].map(|name| number(&io, name))
}

/// The number of a line `NAME 123` or `NAME 123 kB`.
fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    let word = line.split_whitespace().next().unwrap_or_default();
    word.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_measured_and_pauses_are_left_out() {
        let mut meter = UsageMeter::new();
        let begun = processor_time();
        while processor_time() - begun < Duration::from_millis(20) {
            std::hint::black_box(begun);
        }
        let passed = meter.since.elapsed();
        meter.paused(passed);
        let sample = meter.sample(Some(0.5));
        assert!(sample.busy >= Micros::from_millis(20), "{sample:?}");
        assert!(sample.span <= Micros::from(meter.since.elapsed() + passed), "{sample:?}");
        assert!(sample.memory > Bytes(1 << 20), "{sample:?}");
        assert_eq!(sample.loss, Some(0.5));
        assert_eq!(meter.paused, Duration::ZERO, "it begins anew");
    }

    #[test]
    fn a_line_has_a_name_and_a_number() {
        let text = "VmPeak:\t  10 kB\nVmRSS:\t    1234 kB\n";
        assert_eq!((number(text, "VmRSS:"), number(text, "VmSwap:")), (1234, 0));
    }
}
