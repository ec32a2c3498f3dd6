//! The money that may still be spent, counting what machines cost until they can be ended.

use sojourn_protocol::{money::MicroUsd, quantity::mul_div_ceil, time::Millis};

/// Milliseconds of an hour.
const HOUR: u64 = 3_600_000;

/// Money for machines: of the whole fleet, or of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Budget {
    /// The limit, where there is one.
    pub(super) limit: Option<MicroUsd>,
    /// The money that was spent up to now, with what can't be undone: the rest of drains.
    pub(super) spent: MicroUsd,
    /// The price of an hour of the machines that aren't to end.
    pub(super) rate: MicroUsd,
}

/// The cost of so much time at this price of an hour, rounded up.
pub(super) fn cost(price: MicroUsd, time: Millis) -> MicroUsd {
    MicroUsd(mul_div_ceil(price.0, time.0, HOUR))
}

impl Budget {
    /// May so many more machines of this price be there for so long, beside all that are there?
    pub(super) fn fits(&self, price: MicroUsd, life: Millis) -> u32 {
        let Some(limit) = self.limit else { return u32::MAX };
        let taken = self.spent + cost(self.rate, life);
        let left = limit.saturating_sub(taken);
        if taken > limit {
            return 0;
        }
        u32::try_from(left.0 / cost(price, life).0.max(1)).unwrap_or(u32::MAX)
    }

    /// More machines are there.
    pub(super) fn add(&mut self, count: u32, price: MicroUsd) {
        self.rate += MicroUsd(price.0.saturating_mul(u64::from(count)));
    }

    /// How many of the machines with these prices may stay until the next plan, the first first. All of them have to be
    /// ended in time, which takes `stop`, an `interval` of it for those alone that stay.
    pub(super) fn affordable(&self, prices: &[MicroUsd], stop: Millis, interval: Millis) -> usize {
        let Some(limit) = self.limit else { return prices.len() };
        let end = Millis(stop.0.saturating_sub(interval.0));
        let ends = prices.iter().map(|price| cost(*price, end)).sum();
        let mut left = limit.saturating_sub(self.spent).saturating_sub(ends);
        let stays = prices.iter().take_while(|price| {
            let stay = cost(**price, interval);
            let may = stay <= left && left.0 > 0;
            left = left.saturating_sub(stay);
            may
        });
        stays.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOLLAR: MicroUsd = MicroUsd(1_000_000);

    #[test]
    fn so_many_machines_are_affordable_until_their_end() {
        let budget = Budget { limit: Some(DOLLAR), spent: MicroUsd(390_000), rate: DOLLAR };
        // Six minutes of a dollar an hour are ten cents.
        let stop = Millis::from_secs(360);
        // Seven take 58.1 cents, and 1.7 cents for each that stays a minute longer.
        let minute = Millis::from_secs(60);
        assert_eq!(budget.affordable(&[DOLLAR; 7], stop, minute), 1);
        assert_eq!(budget.affordable(&[DOLLAR; 8], stop, minute), 0);
        assert_eq!(budget.affordable(&[DOLLAR; 2], stop, minute), 2);
        assert_eq!(budget.fits(DOLLAR, stop), 5);
        assert_eq!(budget.fits(MicroUsd(500_000), stop), 10);
        let broke = Budget { spent: MicroUsd(1_000_001), ..budget };
        assert_eq!(
            (broke.affordable(&[DOLLAR], stop, minute), broke.fits(MicroUsd(0), stop)),
            (0, 0)
        );
        let free = Budget { limit: None, ..budget };
        assert_eq!(
            (free.affordable(&[DOLLAR; 3], stop, minute), free.fits(DOLLAR, stop)),
            (3, u32::MAX)
        );
    }
}
