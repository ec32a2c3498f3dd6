//! A rule's counters, and their numbers in a file.

use crate::{
    clip::{Norms, WINDOW},
    pass::Pass,
    state::StateError,
};
use sojourn_protocol::{ids::Version, quantity::SaturatingFrom as _, spec::RuleSpec};

/// Of the numbers' order.
const FORMAT: i64 = 1;
/// Numbers before those of the norms.
const FIRST: usize = 5;

/// The counters of a rule up to a version.
#[derive(Debug, Clone, PartialEq)]
pub struct Counters {
    version: Version,
    gathered: u32,
    norms: Norms,
}

impl Counters {
    /// Numbers in the tensor.
    pub(crate) const LENGTH: usize = FIRST + WINDOW;

    /// The counters of a version that nothing has been merged into.
    #[must_use]
    pub fn new(version: Version) -> Self {
        Self { version, gathered: 0, norms: Norms::default() }
    }

    /// The same with so many changes gathered.
    pub(crate) fn with_gathered(self, gathered: u32) -> Self {
        Self { gathered, ..self }
    }

    /// The version whose model these belong to.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Changes gathered since the rule's last step.
    #[must_use]
    pub const fn gathered(&self) -> u32 {
        self.gathered
    }

    /// The norms of the last changes.
    #[must_use]
    pub const fn norms(&self) -> &Norms {
        &self.norms
    }

    /// The counters of the next version, made by this pass over a change of this norm.
    #[must_use]
    pub fn after(&self, pass: &Pass, norm: f64) -> Self {
        let mut norms = self.norms.clone();
        norms.extend([norm]);
        let gathered = pass.gathered_after(self.gathered);
        Self { version: self.version.next(), gathered, norms }
    }

    /// The tensor's numbers: format, rule, version, gathered, norms known, and the norms as the bits of
    /// their `f64`, the oldest first, then zeros.
    pub(crate) fn to_numbers(&self, rule: &RuleSpec) -> Vec<i64> {
        let known = self.norms.known();
        let count = i64::saturating_from(known.len());
        let version = i64::from(self.version.0);
        let mut numbers = vec![FORMAT, code(rule), version, i64::from(self.gathered), count];
        numbers.extend(known.iter().map(|norm| norm.to_bits().cast_signed()));
        numbers.resize(Self::LENGTH, 0);
        numbers
    }

    /// The counters that a tensor's numbers say.
    pub(crate) fn from_numbers(numbers: &[i64], rule: &RuleSpec) -> Result<Self, StateError> {
        let (&[format, of, version, gathered, known], norms) =
            numbers.split_first_chunk::<FIRST>().ok_or(StateError::Format)?;
        if format != FORMAT {
            return Err(StateError::Format);
        }
        if of != code(rule) {
            return Err(StateError::Rule { expected: rule.name(), actual: name(of) });
        }
        let norms: Vec<f64> =
            norms.iter().map(|norm| f64::from_bits(norm.cast_unsigned())).collect();
        let known = usize::try_from(known).ok().and_then(|count| norms.get(..count));
        let known = known.filter(|norms| norms.iter().all(|norm| *norm >= 0.0));
        let (Some(known), Ok(gathered), Ok(version)) =
            (known, u32::try_from(gathered), u32::try_from(version))
        else {
            return Err(StateError::Counters);
        };
        let norms = Norms::new(known.iter().copied());
        Ok(Self { version: Version(version), gathered, norms })
    }
}

const fn code(rule: &RuleSpec) -> i64 {
    match rule {
        RuleSpec::VcAsgd { .. } => 1,
        RuleSpec::Delta { .. } => 2,
        RuleSpec::Fedbuff { .. } => 3,
        RuleSpec::DelayedNesterov { .. } => 4,
        RuleSpec::Adasum { .. } => 5,
        RuleSpec::Easgd { .. } => 6,
        RuleSpec::Downpour { .. } => 7,
        RuleSpec::DcAsgd { .. } => 8,
    }
}

fn name(code: i64) -> &'static str {
    let of = RuleSpec::ALL.iter().find(|rule| self::code(rule) == code);
    of.map_or("one that this version doesn't know", RuleSpec::name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_round_trip(
            version: u32,
            gathered: u32,
            norms in prop::collection::vec(0.0..f64::MAX, 0..=WINDOW),
        ) {
            let counters = Counters {
                version: Version(version),
                gathered,
                norms: Norms::new(norms),
            };
            let numbers = counters.to_numbers(&RuleSpec::FEDBUFF);
            prop_assert_eq!(numbers.len(), Counters::LENGTH);
            prop_assert_eq!(Counters::from_numbers(&numbers, &RuleSpec::FEDBUFF), Ok(counters));
        }
    }

    #[test]
    fn bad_numbers_are_refused_with_the_reason() {
        let good = Counters::new(Version(7)).to_numbers(&RuleSpec::DELTA);
        let refused = |at: usize, number: i64| {
            let mut numbers = good.clone();
            numbers[at] = number;
            Counters::from_numbers(&numbers, &RuleSpec::DELTA).unwrap_err()
        };
        assert_eq!(refused(0, 2), StateError::Format);
        assert_eq!(refused(1, 3), StateError::Rule { expected: "delta", actual: "fedbuff" });
        assert!(refused(1, 9).to_string().contains("doesn't know"));
        for (at, number) in [(2, -1), (3, -1), (4, -1), (4, 102)] {
            assert_eq!(refused(at, number), StateError::Counters);
        }
        let mut numbers = good.clone();
        (numbers[4], numbers[5]) = (1, f64::NAN.to_bits().cast_signed());
        assert_eq!(Counters::from_numbers(&numbers, &RuleSpec::DELTA), Err(StateError::Counters));
        assert_eq!(Counters::from_numbers(&[1, 2], &RuleSpec::DELTA), Err(StateError::Format));
    }
}
