//! The resources that running units take of the machine, as their trainers say each second.

use parking_lot::Mutex;
use sojourn_protocol::{
    bounds::MAX_AMOUNT,
    ids::LeaseId,
    quantity::Micros,
    trainer::UsageSample,
    usage::{MAX_CORES, MAX_DISK_RATE, UnitUsage},
};
use std::{collections::BTreeMap, sync::Arc};

/// The rates of a sample; `None` where no time passed in it.
fn rates(sample: &UsageSample) -> Option<UnitUsage> {
    let seconds = seconds(sample.span);
    // A trainer of another make may say anything, and a server takes no heartbeat with more.
    let rate = |count: f64, most: f64| (count / seconds).min(most);
    (seconds > 0.0).then(|| UnitUsage {
        cores: rate(self::seconds(sample.busy), MAX_CORES),
        memory: sample.memory.0.min(MAX_AMOUNT),
        read_per_second: rate(float(sample.read.0), MAX_DISK_RATE),
        written_per_second: rate(float(sample.written.0), MAX_DISK_RATE),
        received: None,
        loss: sample.loss,
    })
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

    /// The resources that a running unit takes, if its trainer has said so.
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
    /// Notes a sample of the unit's trainer.
    pub(crate) fn took(&self, sample: &UsageSample) {
        if let Some(usage) = rates(sample) {
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
    use sojourn_protocol::{bounds::Bounded, quantity::Bytes};

    #[test]
    fn no_sample_is_more_than_a_server_takes() {
        let everything = UsageSample {
            span: Micros(1),
            busy: Micros(u64::MAX),
            loss: Some(f64::MIN),
            memory: Bytes(u64::MAX),
            read: Bytes(u64::MAX),
            written: Bytes(u64::MAX),
        };
        let usage = rates(&everything).unwrap();
        assert!(Bounded::new(usage).is_ok(), "{usage:?}");
    }

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
            received: None,
            loss: Some(0.5),
        };
        assert_eq!(usages.get(lease), Some(usage));
        drop(unit);
        assert_eq!(usages.get(lease), None);
    }
}
