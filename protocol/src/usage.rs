//! A running unit's use of its machine, as its host has measured it.
//!
//! Owners and users are shown it, and nothing is decided by it.

use crate::figures;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The most [`UnitUsage::cores`].
pub const MAX_CORES: f64 = 1e6;
/// The most bytes that a unit reads or writes in a second.
pub const MAX_DISK_RATE: f64 = 1e15;

/// Slower reading and writing isn't worth a word.
const SHOWN_RATE: f64 = 1e5;

/// A running unit's use of the machine, over the last second or two.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnitUsage {
    /// Cores that it keeps busy, by the processor time of all its threads.
    pub cores: f64,
    /// Bytes of memory in use.
    pub memory: u64,
    /// Bytes read from disks in a second.
    pub read_per_second: f64,
    /// Bytes written to disks in a second.
    pub written_per_second: f64,
    /// Bytes of its blobs that have come over the network so far: those that were in the cache or were fetched ahead don't count. A blob
    /// that several units need counts for the first of them. None where a client of before doesn't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// The mean loss, of a unit that trains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
}

/// `1.9 cores, 312 MB of memory, reads 1.2 MB/s, 5.0 MB received, loss 0.4312`.
impl fmt::Display for UnitUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} cores, {} of memory", self.cores, figures::bytes(self.memory))?;
        let disk = [("reads", self.read_per_second), ("writes", self.written_per_second)];
        for (what, rate) in disk.into_iter().filter(|(_, rate)| *rate >= SHOWN_RATE) {
            write!(f, ", {what} {}", figures::bytes_per_second(rate))?;
        }
        if let Some(received) = self.received.filter(|received| *received > 0) {
            write!(f, ", {} received", figures::bytes(received))?;
        }
        match self.loss {
            Some(loss) => write!(f, ", loss {loss:.4}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::{Bounded, MAX_AMOUNT};

    const USAGE: UnitUsage = UnitUsage {
        cores: 1.94,
        memory: 312_000_000,
        read_per_second: 1.2e6,
        written_per_second: 99_999.0,
        received: Some(5_000_000),
        loss: Some(0.431_21),
    };

    #[test]
    fn a_usage_is_said_in_a_few_words() {
        assert_eq!(
            USAGE.to_string(),
            "1.9 cores, 312 MB of memory, reads 1.2 MB/s, 5.0 MB received, loss 0.4312"
        );
        let evaluates = UnitUsage { read_per_second: 0.0, received: Some(0), loss: None, ..USAGE };
        assert_eq!(evaluates.to_string(), "1.9 cores, 312 MB of memory");
    }

    #[test]
    fn what_no_machine_takes_is_refused() {
        let most = UnitUsage {
            cores: MAX_CORES,
            memory: MAX_AMOUNT,
            read_per_second: MAX_DISK_RATE,
            written_per_second: MAX_DISK_RATE,
            received: Some(MAX_AMOUNT),
            loss: Some(-1e300),
        };
        assert!(Bounded::new(most).is_ok());
        for past in [
            UnitUsage { cores: 2.0 * MAX_CORES, ..USAGE },
            UnitUsage { cores: -1.0, ..USAGE },
            UnitUsage { memory: MAX_AMOUNT + 1, ..USAGE },
            UnitUsage { received: Some(MAX_AMOUNT + 1), ..USAGE },
            UnitUsage { read_per_second: 2.0 * MAX_DISK_RATE, ..USAGE },
            UnitUsage { written_per_second: -1.0, ..USAGE },
        ] {
            assert!(Bounded::new(past).is_err(), "{past:?}");
        }
    }

    #[test]
    fn a_field_of_a_newer_client_is_left_out() {
        let newer =
            r#"{"cores":1.0,"memory":2,"read_per_second":0.0,"written_per_second":0.0,"gpu":0.5}"#;
        let usage: UnitUsage = serde_json::from_str(newer).unwrap();
        assert_eq!((usage.cores, usage.memory, usage.loss), (1.0, 2, None));
    }
}
