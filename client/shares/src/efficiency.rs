//! Growth efficiency: how fast a trial's loss falls for the processor time that it takes.

use crate::{
    history::{History, seconds},
    member::Estimate,
};
use sojourn_protocol::spec::{FlowCon, Threshold};

/// A trial that has computed less than this part of a window says nothing of its efficiency.
const LEAST_BUSY: f64 = 0.01;

/// The growth efficiency of a trial: the part of its highest loss that it sheds in a second that has the whole processor. `None` while a
/// window has no report, or it hardly computed. `capacity`: the cores that trials may use.
pub(crate) fn efficiency(policy: &FlowCon, history: &History, capacity: f64) -> Option<f64> {
    let fall = history.fall()?;
    let highest = history.highest().filter(|highest| *highest > 0.0)?;
    let busy = fall.busy / capacity;
    if busy.is_nan() || busy < LEAST_BUSY {
        return None;
    }
    let fallen = fall.per_second / highest;
    Some(if policy.absolute { fallen.abs() } else { fallen.max(0.0) } / busy)
}

/// Is a growth efficiency enough to count as learning? `None` where that depends on what isn't known of the trial.
pub(crate) fn learns(policy: &FlowCon, efficiency: f64, estimate: Estimate) -> Option<bool> {
    let growth = match policy.threshold {
        Threshold::PerSecond => efficiency,
        Threshold::PerTrial => efficiency * seconds(estimate.whole?),
    };
    Some(growth >= policy.alpha)
}
