//! From a uniform number in `[0, 1)` to a normal number.

use sojourn_protocol::spec::dimension::Normal;
use std::f64::consts::SQRT_2;

/// The normal number that `uniform` numbers of all are below: the inverse of the distribution function.
pub(super) fn number(normal: &Normal, uniform: f64) -> f64 {
    let Normal { mean, deviation, truncate } = *normal;
    let at = |below: f64| mean + deviation * quantile(below);
    match truncate {
        None => at(uniform),
        Some([low, high]) => {
            let [first, last] = shares_of_ends(normal);
            at(first + (last - first) * uniform).clamp(low, high)
        }
    }
}

/// The shares of the whole distribution that are below its ends: 0 and 1 where it has none.
pub(super) fn shares_of_ends(normal: &Normal) -> [f64; 2] {
    let Normal { mean, deviation, truncate } = *normal;
    truncate.map_or([0.0, 1.0], |ends| ends.map(|end| below((end - mean) / deviation)))
}

/// The share of standard normal numbers that are below one.
pub(super) fn below(number: f64) -> f64 {
    libm::erfc(-number / SQRT_2) / 2.0
}

/// The standard normal number that a share of all are below; of 0 that of a share of 2^-54, which is half a draw's smallest
/// step. M. J. Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution", Applied Statistics 37 (1988): its
/// routine PPND16, with a relative error of about 1e-16.
fn quantile(share: f64) -> f64 {
    const LEAST: f64 = 1.0 / 18_014_398_509_481_984.0;
    let share = share.clamp(LEAST, 1.0 - 2.0 * LEAST);
    let from_median = share - 0.5;
    if from_median.abs() <= 0.425 {
        let r = 0.180_625 - from_median * from_median;
        return from_median * ratio(r, &CENTRE);
    }
    let tail = if from_median < 0.0 { share } else { 1.0 - share };
    let r = libm::sqrt(-libm::log(tail));
    let number = if r <= 5.0 { ratio(r - 1.6, &INTERMEDIATE) } else { ratio(r - 5.0, &FAR) };
    if from_median < 0.0 { -number } else { number }
}

/// One polynomial over another, by their coefficients from the highest power down.
fn ratio(r: f64, [numerator, denominator]: &[[f64; 8]; 2]) -> f64 {
    let polynomial = |coefficients: &[f64; 8]| coefficients.iter().fold(0.0, |sum, c| sum * r + c);
    polynomial(numerator) / polynomial(denominator)
}

const CENTRE: [[f64; 8]; 2] = [
    [
        2509.0809287301227,
        33430.57558358813,
        67265.7709270087,
        45921.95393154987,
        13731.69376550946,
        1971.5909503065513,
        133.14166789178438,
        3.3871328727963665,
    ],
    [
        5226.495278852854,
        28729.085735721943,
        39307.89580009271,
        21213.794301586597,
        5394.196021424751,
        687.1870074920579,
        42.31333070160091,
        1.0,
    ],
];
const INTERMEDIATE: [[f64; 8]; 2] = [
    [
        0.0007745450142783414,
        0.022723844989269184,
        0.2417807251774506,
        1.2704582524523684,
        3.6478483247632045,
        5.769497221460691,
        4.630337846156546,
        1.4234371107496835,
    ],
    [
        1.0507500716444169e-09,
        0.0005475938084995345,
        0.015198666563616457,
        0.14810397642748008,
        0.6897673349851,
        1.6763848301838038,
        2.053191626637759,
        1.0,
    ],
];
const FAR: [[f64; 8]; 2] = [
    [
        2.0103343992922881e-07,
        2.7115555687434876e-05,
        0.0012426609473880784,
        0.026532189526576124,
        0.29656057182850487,
        1.7848265399172913,
        5.463784911164114,
        6.657904643501103,
    ],
    [
        2.0442631033899397e-15,
        1.421511758316446e-07,
        1.8463183175100548e-05,
        0.0007868691311456133,
        0.014875361290850615,
        0.1369298809227358,
        0.599832206555888,
        1.0,
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures are those of `statistics.NormalDist().inv_cdf` in Python.
    #[test]
    fn percentage_points_are_those_of_the_normal_distribution() {
        for (share, expected) in [
            (1e-12, -7.034483825301132),
            (0.001, -3.090232306167813),
            (0.3, -0.5244005127080409),
            (0.5, 0.0),
            (0.95, 1.6448536269514715),
        ] {
            assert!((quantile(share) - expected).abs() < 1e-14, "{share}: {}", quantile(share));
            assert!((below(expected) - share).abs() < 1e-15, "{share}");
        }
        assert!((quantile(0.0) + 8.3).abs() < 0.1 && (quantile(1.0) - 8.2).abs() < 0.1);
    }
}
