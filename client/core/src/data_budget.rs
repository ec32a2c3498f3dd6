//! The bytes that may come and go in a month, as the machine's owner says, and what of them is set aside.
//!
//! Nothing is begun that doesn't fit: a unit reserves the bytes that it has to fetch and those of its result, so that
//! whatever is finished can also be sent. A part that is sent twice, because a connection broke, comes on top.

/// A month counts as used up where a unit doesn't fit and less than this part of the limit is left.
const SPENT_PART: u64 = 20;

/// The budget of the current month.
#[derive(Debug, Clone, Default)]
pub(crate) struct DataBudget {
    /// Names the month.
    period: u32,
    limit: Option<u64>,
    used: u64,
    /// Bytes that units in work have yet to fetch and to send.
    reserved: u64,
    /// A unit didn't fit into the little that is left.
    is_spent: bool,
}

impl DataBudget {
    /// Sets the present month, the bytes that it allows (none for no limit), and those that were used.
    pub(crate) fn set(&mut self, period: u32, limit: Option<u64>, used: u64) {
        if self.period != period || self.limit != limit {
            self.is_spent = false;
        }
        (self.period, self.limit, self.used) = (period, limit, used);
    }

    /// Sets bytes aside for a unit. False where they don't fit.
    #[must_use]
    pub(crate) fn reserve(&mut self, bytes: u64) -> bool {
        if self.left() < bytes {
            self.is_spent |= self.limit.is_some_and(|limit| self.left() < limit / SPENT_PART);
            return false;
        }
        self.reserved = self.reserved.saturating_add(bytes);
        true
    }

    /// Bytes that were set aside aren't needed any more.
    pub(crate) fn release(&mut self, bytes: u64) {
        self.reserved = self.reserved.saturating_sub(bytes);
    }

    /// Is all used up that the owner allows? The little that is left then isn't reserved either.
    pub(crate) fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.used >= limit)
    }

    /// May something new be begun?
    pub(crate) fn is_open(&self) -> bool {
        !self.is_spent && !self.is_over()
    }

    /// Bytes that may be used for what no unit needs yet: those that no unit has set aside, while units may be begun.
    pub(crate) fn free(&self) -> u64 {
        if self.is_open() { self.left() } else { 0 }
    }

    fn left(&self) -> u64 {
        let taken = self.used.saturating_add(self.reserved);
        self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(taken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_count_until_the_month_is_over() {
        let mut budget = DataBudget::default();
        budget.set(1, Some(100), 60);
        assert!(budget.is_open());
        budget.set(1, Some(100), 100);
        assert!(!budget.is_open() && budget.is_over());
        budget.set(2, Some(100), 0);
        assert!(budget.is_open());
        // The owner allows less than was used, then more, then all.
        for (limit, open) in [(Some(5), false), (Some(11), true), (Some(10), false), (None, true)] {
            budget.set(2, limit, 10);
            assert_eq!(budget.is_open(), open, "{limit:?}");
        }
    }

    #[test]
    fn a_unit_that_does_not_fit_is_not_begun() {
        let mut budget = DataBudget::default();
        budget.set(1, Some(1000), 0);
        assert!(budget.reserve(600));
        assert!(!budget.reserve(401));
        assert!(budget.is_open(), "a smaller one may fit");
        budget.set(1, Some(1000), 500);
        budget.release(500);
        assert!(!budget.reserve(401));
        assert!(budget.reserve(390));
        assert!(!budget.reserve(11));
        assert!(!budget.is_open(), "hardly anything is left");
        budget.release(490);
        budget.set(1, Some(2000), 500);
        assert!(budget.is_open() && budget.reserve(1500));
        let mut free = DataBudget::default();
        assert!(free.reserve(u64::MAX) && free.reserve(u64::MAX) && free.is_open());
    }
}
