//! A time that is measured again and again: its smoothed mean and deviation.

/// A smoothed time with its smoothed deviation, in nanoseconds per row.
///
/// As TCP estimates round trips (Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988, appendix A),
/// with a gain of a quarter for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SmoothedTime {
    pub mean: u64,
    /// Mean distance of a single time from the mean.
    pub deviation: u64,
    pub samples: u32,
}

impl SmoothedTime {
    /// The estimate after one measured time. Its deviation is taken to be half of that time.
    pub(crate) fn first(nanos: u64) -> Self {
        Self { mean: nanos, deviation: nanos / 2, samples: 1 }
    }

    /// Takes another time in.
    pub(crate) fn take(&mut self, nanos: u64) {
        let off = self.mean.abs_diff(nanos);
        self.mean = quarter(self.mean, nanos);
        self.deviation = quarter(self.deviation, off);
        self.samples = self.samples.saturating_add(1);
    }
}

/// A quarter of the way from `old` to `new`.
pub(super) fn quarter(old: u64, new: u64) -> u64 {
    old.saturating_mul(3).saturating_add(new) / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_narrows_where_times_agree() {
        let mut figure = SmoothedTime::first(1000);
        assert_eq!(figure.deviation, 500);
        for _ in 0..12 {
            figure.take(1000);
        }
        assert_eq!((figure.mean, figure.samples), (1000, 13));
        assert!(figure.deviation < 20, "{figure:?}");
        for n in 0..20 {
            figure.take(if n % 2 == 0 { 600 } else { 1400 });
        }
        assert!((800..1200).contains(&figure.mean), "{figure:?}");
        assert!((300..600).contains(&figure.deviation), "{figure:?}");
    }
}
