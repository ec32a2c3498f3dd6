//! One host: the trials on it, and how fast each goes.

use sojourn_protocol::quantity::Micros;
use sojourn_shares::{
    Apply, Carried, CpuShare, CpuSharePolicy, Demand, Estimate, FlowCon, Planner, Sample,
    SetCpuShare, TrialKey, divide,
};
use std::collections::BTreeMap;

/// A trial on a host.
#[derive(Debug)]
pub(super) struct Running {
    carried: Carried,
    cpu_share: CpuShare,
    /// Since the last sample, in seconds.
    span: f64,
    busy: f64,
    /// Of capacity.
    pub(super) rate: f64,
}

/// A host of capacity 1.
#[derive(Debug)]
pub(super) struct Host {
    policy: CpuSharePolicy,
    planner: Planner,
    pub(super) running: BTreeMap<TrialKey, Running>,
    /// How much slower each goes for every other on the host.
    interference: f64,
}

impl Host {
    pub(super) fn new(policy: CpuSharePolicy, interference: f64) -> Self {
        Self { policy, planner: Planner::new(policy, 1.0), running: BTreeMap::new(), interference }
    }

    /// When shares are planned next, in seconds.
    pub(super) fn due(&self) -> Option<f64> {
        self.planner.due().map(seconds)
    }

    pub(super) fn enter(&mut self, now: f64, trial: TrialKey, carried: Carried) {
        let running =
            Running { carried, cpu_share: CpuShare::FULL, span: 0.0, busy: 0.0, rate: 0.0 };
        self.running.insert(trial, running);
        self.changed(now);
    }

    /// Gives what goes with the trial.
    pub(super) fn leave(&mut self, now: f64, trial: TrialKey) -> Carried {
        let carried = self.planner.carried(trial).unwrap_or_default();
        self.running.remove(&trial);
        self.changed(now);
        carried
    }

    fn changed(&mut self, now: f64) {
        let members: Vec<(TrialKey, Carried)> =
            self.running.iter().map(|(trial, running)| (*trial, running.carried)).collect();
        let set = self.planner.set_members(micros(now), &members);
        self.apply(&set);
    }

    pub(super) fn plan(&mut self, now: f64) {
        let set = self.planner.run(micros(now));
        self.apply(&set);
    }

    fn apply(&mut self, set: &[SetCpuShare]) {
        for SetCpuShare { trial, cpu_share } in set {
            if let Some(running) = self.running.get_mut(trial) {
                running.cpu_share = *cpu_share;
            }
        }
        let caps =
            matches!(self.policy, CpuSharePolicy::FlowCon(FlowCon { apply: Apply::Cap, .. }));
        let demands = self.running.values().map(|running| match running.cpu_share.get() {
            cpu_share if caps => Demand { weight: 1.0, most: cpu_share },
            cpu_share => Demand { weight: cpu_share, most: 1.0 },
        });
        let rates = divide(1.0, &demands.collect::<Vec<_>>());
        for (running, rate) in self.running.values_mut().zip(rates) {
            running.rate = rate;
        }
    }

    /// How much of a trial's work is done in a second in which it has the processor.
    pub(super) fn efficiency(&self) -> f64 {
        let others = u32::try_from(self.running.len()).unwrap_or(u32::MAX).saturating_sub(1);
        1.0 / (1.0 + self.interference * f64::from(others))
    }

    pub(super) fn advance(&mut self, seconds: f64) {
        for running in self.running.values_mut() {
            running.span += seconds;
            running.busy += seconds * running.rate;
        }
    }

    /// The trial reports a loss, and how long it takes is known.
    pub(super) fn sample(&mut self, trial: TrialKey, loss: f64, estimate: Estimate) {
        let Some(running) = self.running.get_mut(&trial) else { return };
        let (span, busy) = (micros(running.span), micros(running.busy));
        (running.span, running.busy) = (0.0, 0.0);
        self.planner.record(trial, Sample { span, busy, loss: Some(loss) });
        self.planner.estimate(trial, estimate);
    }
}

#[expect(clippy::cast_precision_loss, reason = "virtual times are far below 2^53 microseconds")]
const fn seconds(time: Micros) -> f64 {
    time.0 as f64 / 1e6
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "virtual times are not negative, and far below 2^63 microseconds"
)]
pub(super) fn micros(seconds: f64) -> Micros {
    Micros(libm::round(seconds * 1e6) as u64)
}
