//! FlowCon's algorithm 1: lists by growth efficiency, then shares by it.

use crate::{
    efficiency::efficiency,
    member::{List, Member},
    policy::{FlowCon, Share},
};
use sojourn_protocol::quantity::Micros;

/// Does any trial learn?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Learning {
    Some,
    /// All are in the completing list: each has what it wants, and the next plan can wait.
    None,
}

impl FlowCon {
    /// Plans the shares of all trials of a host.
    pub(crate) fn plan<'a>(
        &self,
        now: Micros,
        capacity: f64,
        members: impl Iterator<Item = &'a mut Member>,
    ) -> Learning {
        let mut rated: Vec<(&mut Member, Option<f64>)> = members
            .map(|member| {
                let growth = efficiency(self, &member.history, capacity);
                (member, growth)
            })
            .collect();
        for (member, growth) in &mut rated {
            if let Some(growth) = *growth {
                member.is_known = true;
                self.classify(now, member, growth);
            }
        }
        if rated.iter().all(|(member, _)| member.list == List::Completing) {
            rated.iter_mut().for_each(|(member, _)| member.share = Share::FULL);
            return Learning::None;
        }
        let least = self.least(rated.len());
        let sum: f64 = rated.iter().filter_map(|(_, growth)| *growth).sum();
        for (member, growth) in rated {
            let share = match growth {
                None if !member.is_known => 1.0,
                Some(growth) if sum > 0.0 && member.list != List::Watching => growth / sum,
                // It keeps what it has.
                _ => member.share.get(),
            };
            member.share = Share::between(least, share);
        }
        Learning::Some
    }

    /// The least share of each of so many trials.
    #[expect(clippy::cast_precision_loss, reason = "trials of one host are few")]
    fn least(&self, members: usize) -> f64 {
        1.0 / (self.beta * members as f64)
    }

    /// One list at most, and not before an interval has passed since the last time.
    fn classify(&self, now: Micros, member: &mut Member, growth: f64) {
        if now - member.classified < self.interval {
            return;
        }
        let Some(learns) = self.learns(growth, member.estimate) else { return };
        member.classified = now;
        member.list = match member.list {
            _ if learns => List::New,
            List::New => List::Watching,
            List::Watching | List::Completing => List::Completing,
        };
    }
}
