//! The rules once more, written out number by number: what the kernels and the files are held against.

use sojourn_protocol::{
    spec::{Alpha, Outer, RuleSpec},
    unit::Flush,
};
use sojourn_rules::{Arrival, Overlap, products, weight};

/// A model and its rule's state, in memory.
#[derive(Debug, Clone)]
pub(crate) struct Plain {
    pub(crate) rule: RuleSpec,
    pub(crate) w: Vec<f32>,
    pub(crate) sum: Vec<f32>,
    pub(crate) m: Vec<f32>,
    pub(crate) v: Vec<f32>,
    pub(crate) gathered: u32,
}

impl Plain {
    pub(crate) fn new(rule: RuleSpec, w: Vec<f32>) -> Self {
        let [sum, m, v] = [(); 3].map(|()| vec![0.0; w.len()]);
        Self { rule, w, sum, m, v, gathered: 0 }
    }

    /// The returned model's share of what isn't trained.
    pub(crate) fn share(&self, arrival: Arrival) -> f64 {
        match self.rule {
            RuleSpec::VcAsgd { alpha, staleness } => {
                let change = match alpha {
                    Alpha::Constant(alpha) => 1.0 - alpha,
                    Alpha::Epochs => 1.0 / (f64::from(arrival.epoch) + 1.0),
                };
                change * weight(staleness, arrival.staleness)
            }
            RuleSpec::Easgd { moving_rate: Some(rate) } => rate,
            RuleSpec::Easgd { moving_rate: None } => 0.9 * (1.0 / f64::from(arrival.in_flight)),
            _ => 1.0 / f64::from(arrival.in_flight),
        }
    }

    /// A result whose change counts `k` times.
    pub(crate) fn arrive(&mut self, base: &[f32], returned: &[f32], arrival: Arrival, k: f64) {
        let units = arrival.in_flight;
        let changes: Vec<f32> = base.iter().zip(returned).map(|(b, c)| c - b).collect();
        match self.rule {
            RuleSpec::VcAsgd { .. } | RuleSpec::Easgd { .. } => {
                self.w = blend(&self.w, base, returned, self.share(arrival), k)
            }
            RuleSpec::Delta { gain, staleness } => {
                let gain = gain.unwrap_or(1.0 / f64::from(units));
                let gain = gain * weight(staleness, arrival.staleness) * k;
                self.add(&changes, gain);
            }
            RuleSpec::Adasum { .. } if arrival.staleness == 0 => {
                self.w = blend(&self.w, base, returned, 1.0, k);
            }
            RuleSpec::Adasum { staleness } => {
                let Overlap { of_change, of_others } =
                    Overlap::of(products(base, &self.w, returned), k);
                let gain = weight(staleness, arrival.staleness) / (1.0 + of_change.abs());
                let back = (gain * of_others.clamp(0.0, 1.0)) as f32;
                for ((w, b), d) in self.w.iter_mut().zip(base).zip(&changes) {
                    *w = *w + (gain * k) as f32 * d - back * (*w - b);
                }
            }
            RuleSpec::Downpour { rate } => self.add(&changes, rate * k),
            RuleSpec::DcAsgd { lambda, decay } => {
                for (at, change) in changes.iter().enumerate() {
                    let change = k as f32 * change;
                    let square = change * change;
                    let mean = decay as f32 * self.v[at] + (1.0 - decay) as f32 * square;
                    let others = self.w[at] - base[at];
                    let share = match mean.sqrt() {
                        0.0 => 0.0,
                        root if lambda as f32 * square < root => lambda as f32 * square / root,
                        _ => 1.0,
                    };
                    self.v[at] = mean;
                    self.w[at] = self.w[at] + change - share * others;
                }
            }
            RuleSpec::Fedbuff { arrivals, staleness, .. } => {
                let age = arrival.staleness.saturating_sub(u64::from(self.gathered));
                self.gather(&changes, weight(staleness, age) * k);
                if self.gathered >= arrivals.unwrap_or(units.min(10)) {
                    self.flush();
                }
            }
            RuleSpec::DelayedNesterov { period, rate, .. } => {
                let period = period.unwrap_or(units);
                self.gather(&changes, k);
                self.add(&changes, rate * (1.0 / f64::from(period)) * k);
                if self.gathered >= period {
                    self.flush();
                }
            }
        }
        if arrival.flush == Flush::Now {
            self.flush();
        }
    }

    /// Uses up the sum.
    fn flush(&mut self) {
        if self.gathered == 0 {
            return;
        }
        let (rate, momentum, lead) = match self.rule {
            RuleSpec::Fedbuff { outer: Outer::Sgd { rate }, .. } => (rate, None, 0.0),
            RuleSpec::Fedbuff { outer: Outer::Nesterov { rate, momentum }, .. } => {
                (rate, Some(momentum), rate * momentum)
            }
            RuleSpec::DelayedNesterov { rate, momentum, .. } => {
                (0.0, Some(momentum), rate * momentum)
            }
            _ => unreachable!("nothing is gathered"),
        };
        let share = (1.0 / f64::from(self.gathered)) as f32;
        for at in 0..self.w.len() {
            let mean = share * self.sum[at];
            self.w[at] += rate as f32 * mean;
            if let Some(momentum) = momentum {
                self.m[at] = momentum as f32 * self.m[at] + mean;
                self.w[at] += lead as f32 * self.m[at];
            }
            self.sum[at] = 0.0;
        }
        self.gathered = 0;
    }

    fn add(&mut self, changes: &[f32], gain: f64) {
        self.w.iter_mut().zip(changes).for_each(|(w, d)| *w += gain as f32 * d);
    }

    fn gather(&mut self, changes: &[f32], weight: f64) {
        self.sum.iter_mut().zip(changes).for_each(|(sum, d)| *sum += weight as f32 * d);
        self.gathered += 1;
    }
}

/// `(1 - take) w + take (b + k (c - b))`.
pub(crate) fn blend(w: &[f32], base: &[f32], returned: &[f32], take: f64, k: f64) -> Vec<f32> {
    let one = |at: usize| match (take, k) {
        (0.0, _) => w[at],
        (1.0, 1.0) => returned[at],
        (_, 1.0) => (1.0 - take) as f32 * w[at] + take as f32 * returned[at],
        _ => {
            let near = base[at] + k as f32 * (returned[at] - base[at]);
            (1.0 - take) as f32 * w[at] + take as f32 * near
        }
    };
    (0..w.len()).map(one).collect()
}

pub(crate) fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}
