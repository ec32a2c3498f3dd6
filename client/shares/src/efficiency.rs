//! Growth efficiency: how fast a trial's loss falls for the processor time that it takes.

use crate::{
    history::{History, seconds},
    member::Estimate,
    policy::{Efficiency, FlowCon},
};

/// A trial that has computed less than this part of a window says nothing of its efficiency.
const LEAST_BUSY: f64 = 0.01;

/// The growth efficiency of a trial; `None` while a window has no report, or it hardly computed. `capacity`: the cores that trials may use.
pub(crate) fn efficiency(
    policy: &FlowCon,
    history: &History,
    estimate: Estimate,
    capacity: f64,
) -> Option<f64> {
    let fall = history.fall()?;
    let highest = history.highest().filter(|highest| *highest > 0.0)?;
    let busy = fall.busy / capacity;
    if busy.is_nan() || busy < LEAST_BUSY {
        return None;
    }
    let fallen = fall.per_second / highest;
    let per_second = if policy.absolute { fallen.abs() } else { fallen.max(0.0) } / busy;
    match policy.efficiency {
        Efficiency::PerSecond => Some(per_second),
        Efficiency::PerTrial => Some(per_second * seconds(estimate.whole?)),
    }
}
