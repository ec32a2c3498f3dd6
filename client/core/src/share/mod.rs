//! How the units on one device share it. There is one policy: each has all that its slot has.

use crate::slots::SlotId;

/// A share of a slot's device in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(pub u16);

impl Share {
    /// Nothing is held back.
    pub const FULL: Self = Self(1000);
}

/// Says which share of its device a slot gets.
pub trait SharePolicy: std::fmt::Debug + Send + Sync {
    /// For a unit that starts in that slot.
    fn share(&self, slot: SlotId) -> Share;
}

/// Every slot gets its full share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FullShares;

impl SharePolicy for FullShares {
    fn share(&self, _slot: SlotId) -> Share {
        Share::FULL
    }
}
