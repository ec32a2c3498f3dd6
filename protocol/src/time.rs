//! Time as plain integers that can be stored and compared on any machine.

use serde::{Deserialize, Serialize};
use std::ops::{Add, Sub};

/// Milliseconds since the Unix epoch, as the server stamped them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct UnixMillis(pub u64);

/// A length of time in milliseconds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// A length given in whole seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1000)
    }
}

impl Add<Millis> for UnixMillis {
    type Output = UnixMillis;
    fn add(self, rhs: Millis) -> UnixMillis {
        UnixMillis(self.0.saturating_add(rhs.0))
    }
}

impl Sub for UnixMillis {
    type Output = Millis;
    /// Zero where `rhs` is later.
    fn sub(self, rhs: UnixMillis) -> Millis {
        Millis(self.0.saturating_sub(rhs.0))
    }
}
