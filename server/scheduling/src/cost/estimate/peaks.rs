//! The memory that workloads take, as hosts have reported.

use super::{party_votes::Reporter, votes::Votes};
use sojourn_protocol::inventory::{CPU, Workload};
use std::collections::BTreeMap;

/// Workloads of which reports are kept: a host that makes some up must not fill the memory.
const MAX_WORKLOADS: usize = 10_000;
/// Hosts whose report of one workload is kept: those with the smallest.
const MAX_REPORTERS: usize = 10;
/// A peak of more bytes isn't believed.
const MAX_PEAK: u64 = 1 << 44;
/// A peak that hosts of one party alone have reported is believed up to so many times the bytes of a checkpoint. Where
/// [`MAX_ALONE`] is more, it is believed up to that.
const MAX_CHECKPOINTS: u64 = 1024;
/// See [`MAX_CHECKPOINTS`].
const MAX_ALONE: u64 = 1 << 30;

/// Reported peaks by workload, in bytes: on processors, and on accelerators.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Peaks {
    by_kind: BTreeMap<bool, BTreeMap<Workload, Votes<Reporter>>>,
}

impl Peaks {
    /// A host reports a peak.
    pub(super) fn reported(
        &mut self,
        host: Reporter,
        device: &str,
        workload: &Workload,
        peak: u64,
    ) {
        if !(1..=MAX_PEAK).contains(&peak) {
            return;
        }
        let of_kind = self.by_kind.entry(device == CPU).or_default();
        if !of_kind.contains_key(workload) && of_kind.len() >= MAX_WORKLOADS {
            return;
        }
        let votes = of_kind.entry(workload.clone()).or_default();
        votes.set(host, peak);
        if votes.len() > MAX_REPORTERS
            && let Some((_, largest)) = votes.largest()
        {
            votes.remove(largest);
        }
    }

    /// The peak that a host counts on which has none of its own: the smallest, so that no report keeps a workload from others
    /// with whom it fits. Where one is too small, a device runs out of memory once, and isn't given the workload again.
    pub(super) fn expected(
        &self,
        device: &str,
        workload: &Workload,
        checkpoint: u64,
    ) -> Option<u64> {
        let votes = self.by_kind.get(&(device == CPU))?.get(workload)?;
        let peak = votes.smallest()?;
        let alone = checkpoint.saturating_mul(MAX_CHECKPOINTS).max(MAX_ALONE);
        let mut parties = votes.voters().map(|voter| voter.party);
        let first = parties.next();
        let several = parties.any(|party| Some(party) != first);
        Some(if several { peak } else { peak.min(alone) })
    }

    /// Forgets a host's reports.
    pub(super) fn forget(&mut self, host: Reporter) {
        for of_kind in self.by_kind.values_mut() {
            of_kind.retain(|_, votes| !votes.remove(host) || votes.len() > 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::party_votes::PartyKey, *};
    use sojourn_protocol::{
        ids::HostId,
        spec::{Architecture, OptimizerName, Precision},
    };

    fn of(host: u64) -> Reporter {
        Reporter { host: HostId(host), party: PartyKey::Host(HostId(host)) }
    }

    #[test]
    fn no_host_keeps_a_workload_from_others_by_what_it_reports() {
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
            peaks.reported(of(host), CPU, &workload, peak);
        }
        assert_eq!(expected(&peaks), None, "no such peaks can be");
        peaks.reported(of(1), CPU, &workload, MAX_PEAK);
        assert_eq!(expected(&peaks), Some(1 << 31), "one party's word");
        let owner = Reporter { host: HostId(8), party: of(1).party };
        peaks.reported(owner, CPU, &workload, MAX_PEAK);
        assert_eq!(expected(&peaks), Some(1 << 31), "another host of the same party");
        peaks.reported(of(2), CPU, &workload, 6 << 30);
        assert_eq!(expected(&peaks), Some(6 << 30));
        (10..40).for_each(|host| peaks.reported(of(host), CPU, &workload, MAX_PEAK));
        peaks.reported(of(3), CPU, &workload, 5 << 30);
        assert_eq!(expected(&peaks), Some(5 << 30), "however many report more");
        peaks.forget(of(3));
        assert_eq!(expected(&peaks), Some(6 << 30));
    }
}
