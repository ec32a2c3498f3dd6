//! Scores of hosts, and where a converged trial goes (SpeCon's algorithm 4).

use sojourn_protocol::{
    ids::HostId,
    residency::Category,
    spec::{Listing, SpeCon},
};

/// A host and the trials that live there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostLoad {
    /// Which host.
    pub host: HostId,
    /// Trials by category: progressing, watching, converged.
    pub trials: [u32; 3],
    /// Beside a host of capacity 1.
    pub capacity: f64,
    /// How much of its processor was busy lately.
    pub busy: f64,
    /// Can it take the trial that is looked at? It needs a slot, memory, arithmetic and data, and its owner's consent.
    pub takes: bool,
}

impl HostLoad {
    /// The sum of the weights of the host's trials, divided by its capacity.
    #[must_use]
    pub fn score(&self) -> f64 {
        let [progressing, watching, converged] = self.trials;
        let all = [
            (progressing, Category::Progressing),
            (watching, Category::Watching),
            (converged, Category::Converged),
        ];
        let sum: f64 = all.iter().map(|(trials, of)| f64::from(*trials) * of.weight()).sum();
        sum / self.capacity
    }
}

/// Where a trial goes that has asked to move.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Destination {
    /// To another host; with the scores of the host that it leaves and of that one, before it moves.
    Move {
        /// The host with the least score.
        to: HostId,
        /// Of the host that it leaves.
        from_score: f64,
        /// Of that host.
        to_score: f64,
    },
    /// The trial stays: no host has a score that is enough lower.
    Stay,
}

/// Where a converged trial of the host `from` goes. The hosts are as they are with it on `from`.
#[must_use]
pub fn destination(from: HostId, hosts: &[HostLoad], rules: &SpeCon) -> Destination {
    let Some(home) = hosts.iter().find(|host| host.host == from) else { return Destination::Stay };
    let others = hosts.iter().filter(|host| host.takes || host.host == from);
    let least = others.clone().map(HostLoad::score).fold(f64::INFINITY, f64::min);
    if home.score() <= least {
        return Destination::Stay;
    }
    let best = others
        .filter(|host| host.score() <= least)
        .min_by(|a, b| a.busy.total_cmp(&b.busy).then_with(|| a.host.cmp(&b.host)));
    let Some(best) = best else { return Destination::Stay };
    let with_it = best.score() + Category::Converged.weight() / best.capacity;
    let is_better = with_it + rules.margin < home.score();
    if rules.listing == Listing::Improved && !is_better {
        return Destination::Stay;
    }
    Destination::Move { to: best.host, from_score: home.score(), to_score: best.score() }
}
