//! Policies by which one trial goes before the others.

use crate::{
    member::Member,
    policy::{First, Order, Share},
};
use sojourn_protocol::quantity::Micros;

impl First {
    /// Gives the first of a host's trials all, and the others the least. Of trials that are alike the one that comes first does.
    pub(crate) fn plan<'a>(&self, members: impl Iterator<Item = &'a mut Member>) {
        let mut members: Vec<&mut Member> = members.collect();
        let first = (0..members.len()).min_by_key(|n| members.get(*n).map(|of| self.rank(of)));
        for (n, member) in members.iter_mut().enumerate() {
            let share = if Some(n) == first { 1.0 } else { self.least };
            member.share = Share::between(self.least, share);
        }
    }

    fn rank(&self, member: &Member) -> Micros {
        match self.order {
            // Of which nothing is known comes last.
            Order::ShortestRemaining => member.estimate.remaining.unwrap_or(Micros::MAX),
            Order::LeastAttained => member.history.attained(),
        }
    }
}
