//! A pause in asking for work after a fault that the next unit would meet too (a full disk, no trainer, a blob that
//! can't be had): units would only be given back. The host goes on with the leases that it holds.

use crate::{
    retry::{self, Rng},
    time::Micros,
};

/// The longest that cool-downs grow to.
const MAX_COOLDOWN: Micros = Micros::from_secs(300);

/// Whether the host takes work.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cooldown {
    attempts: u32,
    until: Option<Micros>,
    reason: String,
}

impl Cooldown {
    /// There was a fault: cools down anew, longer each time.
    pub(crate) fn begin(&mut self, reason: String, min: Micros, now: Micros, rng: &mut Rng) {
        let pause = retry::pause(self.attempts, MAX_COOLDOWN, Some(min), rng);
        self.attempts = self.attempts.saturating_add(1);
        self.until = Some(now + pause);
        self.reason = reason;
    }

    /// There was no fault after all.
    pub(crate) fn cancel(&mut self) {
        self.until = None;
    }

    /// A unit went well: the next cool-down is short again.
    pub(crate) fn reset(&mut self) {
        self.attempts = 0;
    }

    /// For how long yet, and after which fault; none where work may be asked for.
    pub(crate) fn left(&self, now: Micros) -> Option<(Micros, &str)> {
        let until = self.until.filter(|until| *until > now)?;
        Some((until - now, &self.reason))
    }

    /// When work may be asked for again, after the last fault.
    pub(crate) const fn until(&self) -> Option<Micros> {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_cools_the_host_down_for_a_while() {
        let (min, mut rng) = (Micros::from_secs(5), Rng::new(1));
        let mut cooldown = Cooldown::default();
        let mut now = Micros::ZERO;
        assert_eq!(cooldown.left(now), None);
        for _ in 0..20 {
            cooldown.begin("no room".into(), min, now, &mut rng);
            let (left, reason) = cooldown.left(now).unwrap();
            assert!(left >= min && left <= MAX_COOLDOWN);
            assert_eq!(reason, "no room");
            assert_eq!(cooldown.until(), Some(now + left));
            now += left;
            assert_eq!(cooldown.left(now), None);
        }
        cooldown.begin("no room".into(), min, now, &mut rng);
        cooldown.cancel();
        assert_eq!((cooldown.left(now), cooldown.until()), (None, None));
    }
    #[test]
    fn after_a_unit_that_went_well_the_next_pause_is_short_again() {
        let (min, mut rng) = (Micros::from_secs(5), Rng::new(1));
        let longest = [true, false].map(|goes_well| {
            let mut cooldown = Cooldown::default();
            let mut longest = Micros::ZERO;
            for _ in 0..20 {
                cooldown.begin("no room".into(), min, Micros::ZERO, &mut rng);
                longest = longest.max(cooldown.until().unwrap());
                if goes_well {
                    cooldown.reset();
                }
            }
            longest
        });
        assert!(longest[0] == min && longest[1] > Micros::from_secs(60), "{longest:?}");
    }
}
