//! Ways in which a host that lies alters its results.

use serde::Deserialize;

/// One way to lie. All but the first keep to names, shapes, lineage and finite values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Corruption {
    /// A value is not a number.
    Nan,
    /// The hop's change, the other way.
    SignFlip,
    /// Ten times what the hop has changed.
    Scaled,
    /// The parameters of the trial's first result, returned as new; of that one, those that the hop began from.
    Old,
    /// Another trial's parameters; where there is none yet, those that the hop began from.
    Foreign,
    /// A change by chance, as long as the hop's.
    Noise,
}

impl Corruption {
    /// Each of them.
    pub const ALL: [Corruption; 6] = [
        Corruption::Nan,
        Corruption::SignFlip,
        Corruption::Scaled,
        Corruption::Old,
        Corruption::Foreign,
        Corruption::Noise,
    ];
}
