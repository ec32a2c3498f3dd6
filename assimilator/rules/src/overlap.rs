//! How much of a change others have made already.

/// The sums over all parameters that say how a result's change `D` lies to the change `M = W - W_b` that others have
/// made since its base.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Products {
    /// `<D, D>`.
    pub change: f64,
    /// `<D, M>`.
    pub both: f64,
    /// `<M, M>`.
    pub others: f64,
}

impl Products {
    /// As numbers in a list.
    #[must_use]
    pub const fn to_numbers(self) -> [f64; 3] {
        [self.change, self.both, self.others]
    }

    /// From numbers in a list.
    #[must_use]
    pub const fn from_numbers([change, both, others]: [f64; 3]) -> Self {
        Self { change, both, others }
    }
}

impl std::ops::Add for Products {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            change: self.change + other.change,
            both: self.both + other.both,
            others: self.others + other.others,
        }
    }
}

/// The common part of two changes, as a share of each; 0 where either is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Overlap {
    /// `<D, M> / <D, D>`.
    pub of_change: f64,
    /// `<D, M> / <M, M>`.
    pub of_others: f64,
}

impl Overlap {
    /// Of these sums, with `scale D` in place of `D`.
    #[must_use]
    pub fn of(products: Products, scale: f64) -> Self {
        let Products { change, both, others } = products;
        if both == 0.0 || change == 0.0 || others == 0.0 || scale == 0.0 {
            return Self::default();
        }
        Self { of_change: both / (change * scale), of_others: both * scale / others }
    }
}
