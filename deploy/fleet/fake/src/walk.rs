//! Prices that move: a path over steps of equal length, and the chance that it is made from.

use super::config::{Prices, Walk};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::{money::MicroUsd, seeds, time::Millis};

/// Milliseconds in an hour.
pub(super) const HOUR: f64 = 3_600_000.0;

/// Prices at the beginning of each of so many steps.
pub(super) fn path(
    prices: &Prices,
    on_demand: MicroUsd,
    steps: u64,
    step: Millis,
    chance: &mut ChaCha8Rng,
) -> Vec<MicroUsd> {
    match prices {
        Prices::Walk(walk) => walk_path(*walk, on_demand, steps, step, chance),
        Prices::Trace(trace) => trace_path(trace, on_demand, steps, step),
    }
}

fn walk_path(
    walk: Walk,
    on_demand: MicroUsd,
    steps: u64,
    step: Millis,
    chance: &mut ChaCha8Rng,
) -> Vec<MicroUsd> {
    let hours = float(step.0) / HOUR;
    // The exact transition of the process over a step (Gillespie, 1996).
    let stays = libm::exp(-walk.reversion.max(0.0) * hours);
    let spread = walk.deviation * libm::sqrt((1.0 - stays * stays).max(0.0));
    let jumps = -libm::expm1(-walk.jumps.max(0.0) * hours);
    let mut away = walk.deviation * normal(chance);
    let price = |away: f64| {
        let ratio = (walk.mean * libm::exp(away)).clamp(walk.least, walk.most.max(walk.least));
        MicroUsd(whole(float(on_demand.0) * ratio).max(1))
    };
    let path = (0..steps).map(|_| {
        let now = price(away);
        away = away * stays + spread * normal(chance);
        if seeds::unit_f64(chance) < jumps {
            away += walk.jump * normal(chance);
        }
        now
    });
    path.collect()
}

fn trace_path(
    trace: &[(Millis, MicroUsd)],
    on_demand: MicroUsd,
    steps: u64,
    step: Millis,
) -> Vec<MicroUsd> {
    let mut rest = trace.iter().peekable();
    let mut price = trace.first().map_or(on_demand, |(_, price)| *price);
    let path = (0..steps).map(|n| {
        while let Some((_, next)) = rest.next_if(|(from, _)| from.0 <= n.saturating_mul(step.0)) {
            price = *next;
        }
        price
    });
    path.collect()
}

/// A normal variate (Box and Muller, 1958).
pub(super) fn normal(chance: &mut ChaCha8Rng) -> f64 {
    let (a, b) = (1.0 - seeds::unit_f64(chance), seeds::unit_f64(chance));
    libm::sqrt(-2.0 * libm::log(a)) * libm::cos(2.0 * std::f64::consts::PI * b)
}

/// An exponential variate with the mean 1.
pub(super) fn exponential(chance: &mut ChaCha8Rng) -> f64 {
    -libm::log(1.0 - seeds::unit_f64(chance))
}

/// As a number for arithmetic that may round.
#[expect(clippy::cast_precision_loss, reason = "rounding is meant")]
pub(super) const fn float(value: u64) -> f64 {
    value as f64
}

/// The nearest whole number, between 0 and 9e18.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
pub(super) fn whole(value: f64) -> u64 {
    libm::round(value.clamp(0.0, 9e18)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALK: Walk = Walk {
        mean: 0.33,
        reversion: 0.1,
        deviation: 0.2,
        jumps: 0.02,
        jump: 0.3,
        least: 0.1,
        most: 1.0,
    };

    #[test]
    fn a_walk_stays_about_its_mean_and_in_its_bounds() {
        let on_demand = MicroUsd(1_000_000);
        let mut chance = seeds::stream("test", &[1]);
        let step = Millis::from_secs(300);
        let path = path(&Prices::Walk(WALK), on_demand, 50_000, step, &mut chance);
        let mean = path.iter().map(|price| float(price.0)).sum::<f64>() / 50_000.0;
        assert!((300_000.0..400_000.0).contains(&mean), "{mean}");
        assert!(path.iter().all(|price| (100_000..=1_000_000).contains(&price.0)));
        assert!(path.windows(2).filter(|pair| pair[0] == pair[1]).count() < 1000, "it moves");
    }

    #[test]
    fn a_trace_holds_until_its_next_price() {
        let trace = vec![(Millis(1000), MicroUsd(5)), (Millis(3000), MicroUsd(7))];
        let mut chance = seeds::stream("test", &[1]);
        let path = path(&Prices::Trace(trace), MicroUsd(9), 5, Millis(1000), &mut chance);
        assert_eq!(path, [5, 5, 5, 7, 7].map(MicroUsd));
    }
}
