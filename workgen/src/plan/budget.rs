//! How long a planner may go on trying.

/// All of a budget.
pub const WHOLE: u32 = 1 << 16;

/// Asked before each iteration. An iteration is about as much work as one forward simulation of the
/// whole problem. A count makes a planner a pure function of problem, seed and count.
pub trait Budget {
    /// May there be another iteration? Then the share of the budget that is spent, below [`WHOLE`]:
    /// planners that cool down go by it. It never falls.
    fn next(&mut self) -> Option<u32>;
}

/// So many iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iterations {
    count: u64,
    done: u64,
}

impl Iterations {
    /// `count` of them.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self { count, done: 0 }
    }

    /// How many have been done.
    #[must_use]
    pub const fn done(&self) -> u64 {
        self.done
    }
}

impl Budget for Iterations {
    fn next(&mut self) -> Option<u32> {
        if self.done >= self.count {
            return None;
        }
        let share = u128::from(self.done) * u128::from(WHOLE) / u128::from(self.count);
        self.done += 1;
        u32::try_from(share).ok()
    }
}
