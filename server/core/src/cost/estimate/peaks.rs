//! The memory that workloads take, as hosts have reported.

use super::votes::Votes;
use sojourn_protocol::{
    ids::HostId,
    inventory::{CPU, Workload},
};
use std::collections::BTreeMap;

/// Workloads of which reports are kept: a host that makes some up must not fill the memory.
const MAX_WORKLOADS: usize = 10_000;
/// Hosts whose report of one workload is kept.
const MAX_REPORTERS: usize = 10;
/// A peak of more bytes isn't believed.
const MAX_PEAK: u64 = 1 << 44;
/// What one host alone has reported is believed up to so many times the bytes of a checkpoint, or up to
/// [`MAX_ALONE`] where that is more.
const MAX_CHECKPOINTS: u64 = 1024;
/// See [`MAX_CHECKPOINTS`].
const MAX_ALONE: u64 = 1 << 30;

/// Reported peaks by workload, in bytes: on processors, and on accelerators.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Peaks {
    by_kind: BTreeMap<bool, BTreeMap<Workload, Votes<HostId>>>,
}

impl Peaks {
    /// A host reports a peak.
    pub(super) fn reported(&mut self, host: HostId, device: &str, workload: &Workload, peak: u64) {
        if !(1..=MAX_PEAK).contains(&peak) {
            return;
        }
        let of_kind = self.by_kind.entry(device == CPU).or_default();
        if !of_kind.contains_key(workload) && of_kind.len() >= MAX_WORKLOADS {
            return;
        }
        let votes = of_kind.entry(workload.clone()).or_default();
        if votes.len() < MAX_REPORTERS {
            votes.set(host, peak);
        }
    }

    /// The peak that a host counts on which has none of its own: the median, so that no single host's report keeps a
    /// workload from all others.
    pub(super) fn expected(
        &self,
        device: &str,
        workload: &Workload,
        checkpoint: u64,
    ) -> Option<u64> {
        let votes = self.by_kind.get(&(device == CPU))?.get(workload)?;
        let peak = votes.lower_median()?;
        let alone = checkpoint.saturating_mul(MAX_CHECKPOINTS).max(MAX_ALONE);
        Some(if votes.len() > 1 { peak } else { peak.min(alone) })
    }

    /// Forgets a host's reports.
    pub(super) fn forget(&mut self, host: HostId) {
        for of_kind in self.by_kind.values_mut() {
            of_kind.retain(|_, votes| !votes.remove(host) || votes.len() > 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::spec::{Architecture, OptimizerName, Precision};

    #[test]
    fn no_single_host_says_what_memory_a_workload_takes() {
        let workload = Workload {
            model: Architecture::mlp([4]),
            shape: vec![4],
            outputs: 2,
            batch_size: 8,
            precision: Precision::F32,
            optimizer: OptimizerName::Sgd,
        };
        let mut peaks = Peaks::default();
        let expected = |peaks: &Peaks| peaks.expected(CPU, &workload, 1 << 21);
        for (host, peak) in [(1, 0), (2, u64::MAX)] {
            peaks.reported(HostId(host), CPU, &workload, peak);
        }
        assert_eq!(expected(&peaks), None, "no such peaks can be");
        peaks.reported(HostId(1), CPU, &workload, MAX_PEAK);
        assert_eq!(expected(&peaks), Some(1 << 31), "one host's word");
        peaks.reported(HostId(2), CPU, &workload, 5 << 30);
        peaks.reported(HostId(3), CPU, &workload, 6 << 30);
        assert_eq!(expected(&peaks), Some(6 << 30));
        peaks.reported(HostId(4), CPU, &workload, 1);
        assert_eq!(expected(&peaks), Some(5 << 30));
        peaks.forget(HostId(4));
        peaks.forget(HostId(1));
        assert_eq!(expected(&peaks), Some(5 << 30));
    }
}
