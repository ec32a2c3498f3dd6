//! How long a planner may go on trying.

/// Asked before each iteration. An iteration is about as much work as one forward simulation of the
/// whole problem. A count makes a planner a pure function of problem, seed and count.
pub trait Budget {
    /// May there be another iteration?
    fn more(&mut self) -> bool;
}

/// So many iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iterations {
    /// Iterations left.
    pub left: u64,
}

impl Iterations {
    /// `count` of them.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self { left: count }
    }
}

impl Budget for Iterations {
    fn more(&mut self) -> bool {
        let more = self.left > 0;
        self.left = self.left.saturating_sub(1);
        more
    }
}
