//! One direction of a host's line: transfers one after the other, first come, first served.

use super::quantity::{float, whole};
use std::collections::VecDeque;

/// A line with what is on its way and what waits for it.
#[derive(Debug)]
pub(crate) struct Link<T> {
    /// Bytes a microsecond; 0: free and instant.
    rate: f64,
    /// Before each transfer.
    latency: u64,
    queue: VecDeque<(T, u64)>,
    /// When the first one began.
    begun: u64,
    /// Names the first one: what was scheduled for an earlier one is void.
    serial: u32,
}

/// The end of the transfer that is first now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) at: u64,
    pub(crate) serial: u32,
}

impl<T> Link<T> {
    /// A line of so many Mbit/s.
    pub(crate) fn new(mbits: f64, latency: u64) -> Self {
        // A Mbit/s is an eighth of a byte a microsecond.
        Self { rate: mbits / 8.0, latency, queue: VecDeque::new(), begun: 0, serial: 0 }
    }

    /// Bytes a second, where there is a limit.
    pub(crate) fn bytes_per_second(&self) -> Option<u64> {
        (self.rate > 0.0).then(|| whole(self.rate * 1e6)).flatten()
    }

    /// Does every transfer end as it begins?
    pub(crate) fn is_instant(&self) -> bool {
        self.rate <= 0.0 && self.latency == 0
    }

    /// Adds a transfer; its end, where it is the first.
    pub(crate) fn push(&mut self, now: u64, item: T, bytes: u64) -> Option<Ending> {
        self.queue.push_back((item, bytes));
        (self.queue.len() == 1).then(|| self.begin(now)).flatten()
    }

    /// The first transfer has ended, if it is still this one; with the end of the next.
    pub(crate) fn end(&mut self, now: u64, serial: u32) -> Option<(T, u64, Option<Ending>)> {
        if serial != self.serial {
            return None;
        }
        let (item, bytes) = self.queue.pop_front()?;
        Some((item, bytes, self.begin(now)))
    }

    /// Drops transfers that nobody wants any more; the end of the first, where that is another now.
    pub(crate) fn retain(
        &mut self,
        now: u64,
        mut wanted: impl FnMut(&T) -> bool,
    ) -> Option<Ending> {
        let first_stays = self.queue.front().is_none_or(|(item, _)| wanted(item));
        self.queue.retain(|(item, _)| wanted(item));
        if first_stays { None } else { self.begin(now) }
    }

    /// All that is on its way is lost.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.serial = self.serial.wrapping_add(1);
    }

    /// The transfers that are on their way or wait.
    pub(crate) fn items(&self) -> impl Iterator<Item = &T> {
        self.queue.iter().map(|(item, _)| item)
    }

    /// Bytes of the first transfer that are through.
    pub(crate) fn progress(&self, now: u64) -> u64 {
        let bytes = self.queue.front().map_or(0, |(_, bytes)| *bytes);
        let passed = now.saturating_sub(self.begun + self.latency);
        whole(float(passed) * self.rate).map_or(bytes, |through| through.min(bytes))
    }

    fn begin(&mut self, now: u64) -> Option<Ending> {
        self.serial = self.serial.wrapping_add(1);
        self.begun = now;
        let (_, bytes) = self.queue.front()?;
        let way = if self.rate > 0.0 { float(*bytes) / self.rate } else { 0.0 };
        let way = whole(way).unwrap_or(u64::MAX / 4);
        Some(Ending { at: now + self.latency + way, serial: self.serial })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_wait_for_each_other() {
        // 8 Mbit/s is a byte a microsecond.
        let mut link = Link::new(8.0, 10);
        let first = link.push(0, 'a', 100).unwrap();
        assert_eq!(first.at, 110);
        assert_eq!(link.push(5, 'b', 50), None);
        assert_eq!(link.push(6, 'c', 50), None);
        assert_eq!((link.progress(5), link.progress(60), link.progress(999)), (0, 50, 100));
        let (item, bytes, next) = link.end(110, first.serial).unwrap();
        assert_eq!((item, bytes, next.unwrap().at), ('a', 100, 170));
        assert!(link.end(111, first.serial).is_none(), "that one is over");
        // The first is given up half-way, and the next begins.
        assert_eq!(link.retain(120, |item| *item != 'b').unwrap().at, 180);
        assert_eq!(link.items().collect::<String>(), "c");
    }

    #[test]
    fn a_line_without_limits_is_instant() {
        let mut link = Link::new(0.0, 0);
        assert_eq!(link.push(7, (), 1 << 40).unwrap().at, 7);
    }
}
