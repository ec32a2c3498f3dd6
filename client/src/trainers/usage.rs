//! What running units take of the machine, as their trainers say each second.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    ids::LeaseId,
    quantity::{Bytes, Micros},
    trainer::UsageSample,
};
use std::{collections::BTreeMap, sync::Arc};

/// What a running unit takes of the machine, over the last second or two.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct UnitUsage {
    /// Cores that it keeps busy.
    pub cores: f64,
    /// Bytes of memory in use.
    pub memory: u64,
    /// Bytes read from disks in a second.
    pub read_per_second: f64,
    /// Bytes written to disks in a second.
    pub written_per_second: f64,
    /// The mean loss, of a unit that trains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
}

impl UnitUsage {
    /// Of a sample; `None` where no time passed in it.
    fn of(sample: &UsageSample) -> Option<Self> {
        let seconds = seconds(sample.span);
        let per_second = |bytes: Bytes| float(bytes.0) / seconds;
        (seconds > 0.0).then(|| Self {
            cores: self::seconds(sample.busy) / seconds,
            memory: sample.memory.0,
            read_per_second: per_second(sample.read),
            written_per_second: per_second(sample.written),
            loss: sample.loss,
        })
    }
}

fn seconds(time: Micros) -> f64 {
    float(time.0) / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
const fn float(number: u64) -> f64 {
    number as f64
}

/// The last sample of each running unit.
#[derive(Debug, Default)]
pub(crate) struct Usages(Arc<Mutex<BTreeMap<LeaseId, UnitUsage>>>);

impl Usages {
    /// A unit begins; what it takes is known until the answer is dropped.
    pub(crate) fn begin(&self, lease: LeaseId) -> RunningUnit {
        RunningUnit { usages: Arc::clone(&self.0), lease }
    }

    /// What a running unit takes, if its trainer has said so.
    pub(crate) fn get(&self, lease: LeaseId) -> Option<UnitUsage> {
        self.0.lock().get(&lease).copied()
    }
}

/// A unit that runs.
#[derive(Debug)]
pub(crate) struct RunningUnit {
    usages: Arc<Mutex<BTreeMap<LeaseId, UnitUsage>>>,
    lease: LeaseId,
}

impl RunningUnit {
    /// Its trainer has said what it took.
    pub(crate) fn took(&self, sample: &UsageSample) {
        if let Some(usage) = UnitUsage::of(sample) {
            self.usages.lock().insert(self.lease, usage);
        }
    }
}

impl Drop for RunningUnit {
    fn drop(&mut self) {
        self.usages.lock().remove(&self.lease);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_unit_takes_is_known_while_it_runs() {
        let usages = Usages::default();
        let lease = LeaseId(7);
        let unit = usages.begin(lease);
        let nothing = UsageSample {
            span: Micros::ZERO,
            busy: Micros::ZERO,
            loss: None,
            memory: Bytes(0),
            read: Bytes(0),
            written: Bytes(0),
        };
        unit.took(&nothing);
        assert_eq!(usages.get(lease), None, "no time passed");
        unit.took(&UsageSample {
            span: Micros::from_secs(2),
            busy: Micros::from_secs(3),
            loss: Some(0.5),
            memory: Bytes(100),
            read: Bytes(10),
            written: Bytes(0),
        });
        let usage = UnitUsage {
            cores: 1.5,
            memory: 100,
            read_per_second: 5.0,
            written_per_second: 0.0,
            loss: Some(0.5),
        };
        assert_eq!(usages.get(lease), Some(usage));
        drop(unit);
        assert_eq!(usages.get(lease), None);
    }
}
