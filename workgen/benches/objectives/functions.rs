//! The functions of the objectives, to be minimised. `workgen/tests/tpe_optuna.py` has the same ones for Optuna.

use std::f64::consts::{E, PI, TAU};

/// A combination's values, by the last words of their names.
pub(crate) trait Values {
    /// The combination's model table, counted from 0.
    fn table(&self) -> u32;
    /// A number; no number where there is none.
    fn number(&self, name: &str) -> f64;
    /// A word; empty where there is none.
    fn word(&self, name: &str) -> &str;
    /// Yes or no.
    fn is(&self, name: &str) -> bool;
    /// The numbers `x0`, `x1` and so on.
    fn vector(&self) -> Vec<f64>;
}

pub(crate) fn quadratic(of: &dyn Values) -> f64 {
    (of.number("lr").log10() + 2.3).powi(2) + 0.3 * (of.number("decay").log10() + 4.0).powi(2)
}

pub(crate) fn ackley(of: &dyn Values) -> f64 {
    let x = of.vector();
    let mean = |of: fn(f64) -> f64| x.iter().copied().map(of).sum::<f64>() / x.len() as f64;
    20.0 - 20.0 * (-0.2 * mean(|x| x * x).sqrt()).exp() + E - mean(|x| (TAU * x).cos()).exp()
}

pub(crate) fn rosenbrock(of: &dyn Values) -> f64 {
    let x = of.vector();
    let pairs = x.iter().zip(x.iter().skip(1));
    pairs.map(|(a, b)| 100.0 * (b - a * a).powi(2) + (1.0 - a).powi(2)).sum()
}

pub(crate) fn branin(of: &dyn Values) -> f64 {
    let [a, b] = ["x0", "x1"].map(|name| of.number(name));
    let c = b - 5.1 / (4.0 * PI * PI) * a * a + 5.0 / PI * a - 6.0;
    c * c + 10.0 * (1.0 - 1.0 / (8.0 * PI)) * a.cos() + 10.0
}

const HARTMANN: [(f64, [f64; 6], [f64; 6]); 4] = [
    (1.0, [10.0, 3.0, 17.0, 3.5, 1.7, 8.0], [1312.0, 1696.0, 5569.0, 124.0, 8283.0, 5886.0]),
    (1.2, [0.05, 10.0, 17.0, 0.1, 8.0, 14.0], [2329.0, 4135.0, 8307.0, 3736.0, 1004.0, 9991.0]),
    (3.0, [3.0, 3.5, 1.7, 10.0, 17.0, 8.0], [2348.0, 1451.0, 3522.0, 2883.0, 3047.0, 6650.0]),
    (3.2, [17.0, 8.0, 0.05, 10.0, 0.1, 14.0], [4047.0, 8828.0, 8732.0, 5743.0, 1091.0, 381.0]),
];

pub(crate) fn hartmann(of: &dyn Values) -> f64 {
    let x = of.vector();
    let term = |(weight, scales, centre): &(f64, [f64; 6], [f64; 6])| {
        let away = x.iter().zip(scales).zip(centre);
        let away = away.map(|((x, scale), at)| scale * (x - at / 10_000.0).powi(2));
        weight * (-away.sum::<f64>()).exp()
    };
    -HARTMANN.iter().map(term).sum::<f64>()
}

pub(crate) fn styblinski_tang(of: &dyn Values) -> f64 {
    of.vector().iter().map(|x| x.powi(4) - 16.0 * x * x + 5.0 * x).sum::<f64>() / 2.0
}

/// Each optimiser has a best learning rate of its own.
pub(crate) fn category(of: &dyn Values) -> f64 {
    let (rate, more) = match of.word("optimizer") {
        "sgd" => (-1.0, 0.3),
        "adam" => (-3.0, 0.0),
        _ => (-3.5, 0.15),
    };
    let depth = match of.number("depth") {
        0.0 => 0.3,
        1.0 => 0.1,
        2.0 => 0.0,
        _ => 0.2,
    };
    more + depth
        + (of.number("lr").log10() - rate).powi(2)
        + 0.1 * (of.number("batch").log2() - 6.0).powi(2)
        + 50.0 * (of.number("momentum") - 0.85).powi(2)
        + 2e-4 * (of.number("warmup") - 40.0).powi(2)
}

pub(crate) fn tables(of: &dyn Values) -> f64 {
    let lr = of.number("lr").log10();
    match of.table() {
        1 => (lr + 2.0).powi(2) + 0.3 * (of.number("width").log2() - 5.0).powi(2),
        _ => 0.5 + (lr + 3.0).powi(2) + 4.0 * (of.number("dropout") - 0.3).powi(2),
    }
}

pub(crate) fn steps(of: &dyn Values) -> f64 {
    let layers = of.number("layers");
    0.05 * (layers - 7.0).powi(2)
        + 0.002 * (of.number("width") - 88.0).powi(2) / 8.0
        + 0.5 * (of.number("kernel") - 5.0).abs() * (layers + 3.0) / 10.0
        + 0.1 * (of.number("patience") - 12.0).powi(2)
        + 4.0 * (of.number("ratio") - 0.65).powi(2)
}

/// A product of two settings matters, in logarithms.
pub(crate) fn interaction(of: &dyn Values) -> f64 {
    let [lr, decay, eps] = ["lr", "decay", "eps"].map(|name| of.number(name).log10());
    (lr + decay + 5.0).powi(2)
        + 0.2 * (lr - decay - 1.0).powi(2)
        + 0.05 * (eps + 6.0).abs()
        + 0.1 * (4.0 * lr).sin().abs()
}

/// Three model tables, each with settings of its own, of which one is better by little.
pub(crate) fn three_tables(of: &dyn Values) -> f64 {
    let lr = of.number("lr").log10();
    match of.table() {
        0 => 0.4 + 0.5 * (lr + 1.5).powi(2) + 3.0 * (of.number("momentum") - 0.8).powi(2),
        1 => {
            let norm = if of.is("norm") { 0.0 } else { 0.3 };
            0.15 + (lr + 3.0).powi(2) + 0.2 * (of.number("width").log2() - 6.0).powi(2) + norm
        }
        _ => {
            (lr + 3.3).powi(2)
                + 0.1 * (of.number("heads") - 6.0).powi(2)
                + 4.0 * (of.number("dropout") - 0.1).powi(2)
                + 0.3 * of.number("depth") / 12.0
        }
    }
}

/// A bowl with noise that is the same at the same place.
pub(crate) fn noisy(of: &dyn Values) -> f64 {
    let x = of.vector();
    let mixed = (0_u32..).zip(&x).map(|(n, x)| (f64::from(n) + 1.7) * 12.9898 * x).sum::<f64>();
    let mixed = mixed.sin() * 43758.5453;
    let bowl = (1_u32..).zip(&x).map(|(n, x)| f64::from(n) * (x - 0.3).powi(2)).sum::<f64>();
    bowl + 0.15 * (2.0 * (mixed - mixed.floor()) - 1.0)
}

/// Whole numbers, a category and numbers together.
pub(crate) fn mixed(of: &dyn Values) -> f64 {
    let bonus = match of.word("activation") {
        "relu" => 0.2,
        "gelu" => 0.0,
        "tanh" => 0.5,
        "elu" => 0.3,
        _ => 0.05,
    };
    let layers = of.number("layers");
    bonus
        + 0.004 * (layers * of.number("width").log2() - 40.0).powi(2)
        + (of.number("dropout") - 0.04 * layers).powi(2) * 10.0
        + 0.02 * (of.number("seed_share") - 30.0).abs()
        + 0.3 * (of.number("lr").log10() + 2.5).powi(2)
}

/// A validation loss as networks have it: rates that are too high diverge, sooner with momentum and small batches.
pub(crate) fn network(of: &dyn Values) -> f64 {
    let dropout = of.number("dropout");
    let rate = of.number("lr").log10()
        - (1.0 - of.number("momentum")).log10()
        - 0.5 * (of.number("batch") / 64.0).log10();
    let capacity = of.number("width").log2() + of.number("layers");
    let kept = 9.0 + 6.0 * dropout + 0.5 * (of.number("decay").log10() + 6.0);
    let fit = 0.3 * (-0.35 * (capacity - 5.0)).exp();
    let overfit = 0.02 * (capacity - kept).max(0.0).powi(2);
    let slow = 0.25 * (-2.0 - rate).max(0.0).powf(1.5);
    let diverged = 2.3 / (1.0 + (-8.0 * (rate + 0.3)).exp());
    let constant = if of.word("schedule") == "constant" { 0.1 } else { 0.0 };
    0.1 + fit + overfit + slow + diverged + 0.4 * dropout * dropout + constant
}

pub(crate) fn levy(of: &dyn Values) -> f64 {
    let w: Vec<f64> = of.vector().iter().map(|x| 1.0 + (x - 1.0) / 4.0).collect();
    let (Some(first), Some((last, rest))) = (w.first(), w.split_last()) else { return f64::NAN };
    let middle = rest
        .iter()
        .map(|w| (w - 1.0).powi(2) * (1.0 + 10.0 * (PI * w + 1.0).sin().powi(2)))
        .sum::<f64>();
    (PI * first).sin().powi(2) + middle + (last - 1.0).powi(2) * (1.0 + (TAU * last).sin().powi(2))
}

/// A slope down to a corner of the space, in eight dimensions of which four matter.
pub(crate) fn corner(of: &dyn Values) -> f64 {
    let targets = [0.0, 1.0, 0.93, 0.5];
    let away =
        of.vector().into_iter().zip(targets).map(|(x, target): (f64, f64)| (x - target).abs());
    (1_u32..).zip(away).map(|(n, away)| f64::from(n) * away).sum()
}
