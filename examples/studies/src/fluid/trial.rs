//! A trial as its owner of a processor sees it.

/// How a trial's loss falls: `floor + (1 - floor) exp(-decay f)` once the part `f` of its work is done, so from 1 on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curve {
    /// How steeply.
    pub decay: f64,
}

/// The loss that no training gets below.
const FLOOR: f64 = 0.02;
/// The part of the whole reduction at which a model counts as usable.
const USABLE: f64 = 0.99;

impl Curve {
    /// A variational autoencoder, as in the thesis' figure of loss against time.
    pub const VAE: Self = Self { decay: 5.25 };
    /// A recurrent network of gated units.
    pub const GRU: Self = Self { decay: 11.5 };
    /// A bidirectional recurrent network.
    pub const BIDIRECTIONAL: Self = Self { decay: 19.6 };

    /// The loss after that part of the work.
    #[must_use]
    pub fn loss(self, done: f64) -> f64 {
        FLOOR + (1.0 - FLOOR) * libm::exp(-self.decay * done)
    }

    /// The part of the work after which 99 % of the whole reduction is made.
    #[must_use]
    pub fn usable(self) -> f64 {
        let last = libm::exp(-self.decay);
        -libm::log(1.0 - USABLE * (1.0 - last)) / self.decay
    }
}

/// A trial that wants a processor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SharedTrial {
    /// When it comes, in seconds.
    pub arrival: f64,
    /// How many seconds it takes on a host of capacity 1 that it has for itself.
    pub work: f64,
    /// How its loss falls.
    pub curve: Curve,
}
