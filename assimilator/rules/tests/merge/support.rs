//! A model in memory, results, threads, and any rule.

use proptest::prelude::*;
use sojourn_protocol::{
    ids::Version,
    spec::{Alpha, Outer, RuleSpec, Staleness},
    unit::Flush,
};
use sojourn_rules::{Arrival, Counters, Element, MergeRule, Overlap, Slices, products, rule_of};

/// A model in memory, moved by the kernels.
pub(crate) struct Model<E> {
    rule: Box<dyn MergeRule>,
    pub(crate) counters: Counters,
    pub(crate) w: Vec<E>,
    pub(crate) sum: Vec<f32>,
    pub(crate) m: Vec<f32>,
    pub(crate) v: Vec<f32>,
}

impl<E: Element> Model<E> {
    pub(crate) fn new(rule: RuleSpec, w: Vec<E>) -> Self {
        let [sum, m, v] = [(); 3].map(|()| vec![0.0; w.len()]);
        Self { rule: rule_of(&rule), counters: Counters::new(Version(0)), w, sum, m, v }
    }

    pub(crate) fn arrive(&mut self, base: &[E], returned: &[E], arrival: Arrival, scale: f64) {
        let overlap = Overlap::of(products(base, &self.w, returned), scale);
        let pass = self.rule.pass(&self.counters, arrival, overlap).scaled(scale);
        pass.apply(self.slices(base, returned)).unwrap();
        self.counters = self.counters.after(&pass, 1.0);
    }

    fn slices<'a>(&'a mut self, base: &'a [E], returned: &'a [E]) -> Slices<'a, E, f32> {
        let Self { w, sum, m, v, .. } = self;
        Slices { current: w, base, returned, sum, momentum: m, mean_square: v }
    }
}

pub(crate) fn arrival(staleness: u64) -> Arrival {
    Arrival { staleness, epoch: 1, in_flight: 4, flush: Flush::ByRule }
}

/// Does the work with this many threads.
pub(crate) fn in_pool<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

/// Whether a result is the last for now.
pub(crate) fn flushes() -> impl Strategy<Value = Flush> {
    prop_oneof![5 => Just(Flush::ByRule), 1 => Just(Flush::Now)]
}

/// Any rule.
pub(crate) fn rules() -> impl Strategy<Value = RuleSpec> {
    let staleness = prop_oneof![
        Just(Staleness::Constant),
        (0.0..2.0).prop_map(|a| Staleness::Polynomial { a }),
        (0.1..10.0, 0u32..4).prop_map(|(a, b)| Staleness::Hinge { a, b }),
    ];
    let alpha = prop_oneof![(0.0..=1.0).prop_map(Alpha::Constant), Just(Alpha::Epochs)];
    let outer = prop_oneof![
        (0.1..2.0).prop_map(|rate| Outer::Sgd { rate }),
        (0.1..2.0, 0.0..0.99).prop_map(|(rate, momentum)| Outer::Nesterov { rate, momentum }),
    ];
    let count = || prop::option::of(1u32..5);
    prop_oneof![
        (alpha, staleness.clone())
            .prop_map(|(alpha, staleness)| RuleSpec::VcAsgd { alpha, staleness }),
        staleness.clone().prop_map(|staleness| RuleSpec::Adasum { staleness }),
        (prop::option::of(0.1..1.5), staleness.clone())
            .prop_map(|(gain, staleness)| RuleSpec::Delta { gain, staleness }),
        (count(), outer, staleness).prop_map(|(arrivals, outer, staleness)| {
            RuleSpec::Fedbuff { arrivals, outer, staleness }
        }),
        (count(), 0.1..1.5, 0.0..0.99).prop_map(|(period, rate, momentum)| {
            RuleSpec::DelayedNesterov { period, rate, momentum }
        }),
        prop::option::of(0.01..=1.0).prop_map(|moving_rate| RuleSpec::Easgd { moving_rate }),
        (0.1..1.5).prop_map(|rate| RuleSpec::Downpour { rate }),
        (0.0..10.0, 0.0..0.99).prop_map(|(lambda, decay)| RuleSpec::DcAsgd { lambda, decay }),
    ]
}
