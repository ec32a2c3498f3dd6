//! Factors that are drawn by chance.

use rand_chacha::ChaCha8Rng;
use sojourn_protocol::seeds;

/// A factor with the mean 1.
pub(crate) fn lognormal(chance: &mut ChaCha8Rng, sigma: f64) -> f64 {
    if sigma <= 0.0 {
        return 1.0;
    }
    // Box and Muller, 1958.
    let (a, b) = (1.0 - seeds::unit_f64(chance), seeds::unit_f64(chance));
    let normal = libm::sqrt(-2.0 * libm::log(a)) * libm::cos(2.0 * std::f64::consts::PI * b);
    libm::exp(sigma * normal - sigma * sigma / 2.0)
}
