//! The search for a job's last events, of which an answer has the earliest first.
//!
//! Ever longer parts of the journal are looked through from its end. Once one has too many events for an answer, the position is found by
//! bisection. That is a few dozen requests at most, whatever the journal's length.

/// Journal positions that are looked through first.
const FIRST_LENGTH: u64 = 256;

/// Looks for a journal position after which a job has enough events, and fewer than an answer's limit.
#[derive(Debug)]
pub struct TailSearch {
    end: u64,
    /// So many events are enough.
    enough: usize,
    /// An answer has so many at most.
    limit: usize,
    /// A position after which there are too few events.
    too_few: u64,
    /// A position after which there are too many for one answer.
    too_many: Option<u64>,
    is_over: bool,
}

impl TailSearch {
    /// Of a journal that ends at position `end`. `enough` must be below `limit`.
    #[must_use]
    pub const fn new(end: u64, enough: usize, limit: usize) -> Self {
        Self { end, enough, limit, too_few: end, too_many: None, is_over: false }
    }

    /// The position to ask for next; none where the search is over.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        if self.is_over {
            return None;
        }
        match self.too_many {
            None => {
                let length = self.end.saturating_sub(self.too_few).saturating_mul(4);
                Some(self.end.saturating_sub(length.max(FIRST_LENGTH)))
            }
            // Events that came meanwhile can close the gap.
            Some(low) => Some(low.midpoint(self.too_few)).filter(|middle| *middle > low),
        }
    }

    /// Takes the number of events that were found after a position. True where they are the last ones.
    pub const fn take(&mut self, after: u64, found: usize) -> bool {
        if found >= self.limit {
            self.too_many = Some(after);
            return false;
        }
        self.too_few = after;
        self.is_over = found >= self.enough || after == 0;
        true
    }

    /// Has the job no events before those that were taken last?
    #[must_use]
    pub const fn reached_the_first(&self) -> bool {
        self.is_over && self.too_few == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENOUGH: usize = 50;
    const LIMIT: usize = 200;

    /// Searches a journal for the events of a job at these positions: the requests that it took, the number of events that were
    /// found, and whether they are all.
    fn search(end: u64, events: &[u64]) -> (u32, usize, bool) {
        let mut search = TailSearch::new(end, ENOUGH, LIMIT);
        let (mut requests, mut last) = (0, 0);
        while let Some(after) = search.next() {
            requests += 1;
            let found = events.iter().filter(|position| **position > after).count().min(LIMIT);
            if search.take(after, found) {
                last = found;
            }
        }
        (requests, last, search.reached_the_first())
    }

    #[test]
    fn a_jobs_last_events_are_found_wherever_they_are() {
        let enough = |found| (ENOUGH..LIMIT).contains(&found);
        assert_eq!(search(0, &[]), (1, 0, true));
        assert_eq!(search(10, &[1, 5, 9]), (1, 3, true));
        assert_eq!(search(1_000_000, &[3]), (7, 1, true), "a job that ended long ago");
        let busy: Vec<u64> = (1..=100_000).collect();
        let (requests, found, all) = search(100_000, &busy);
        assert!(enough(found) && requests < 5 && !all, "{found} in {requests}");
        // A busy job that ended long ago.
        let (requests, found, all) = search(10_000_000, &busy);
        assert!(enough(found) && requests < 40 && !all, "{found} in {requests}");
    }
}
