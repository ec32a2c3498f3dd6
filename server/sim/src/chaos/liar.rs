//! Strangers that lie in ways that are hard to find, beside honest ones and the operator's hosts.

/// A way to lie, with hosts that are otherwise as others are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liar {
    /// Two hosts of one owner come to the same wrong results.
    PairOfOneOwner,
    /// Two hosts of two owners come to the same wrong results.
    PairOfOwners,
    /// The host lies about evaluations alone: all rows were right.
    Evaluations,
    /// The host is honest for most of the job.
    Late,
    /// Of two numeric classes its owner has hosts of both, and only one of them lies.
    OneClass,
    /// The host is honest until its party is trusted.
    OnceTrusted,
    /// The host returns a digest that it has seen: of the version that it was given.
    Copier,
}

/// Results of hops that a host is honest about before it lies late.
const LATE: u32 = 8;
/// The same until its party is trusted: ten in a row, and three more.
const TRUSTED: u32 = 13;

impl Liar {
    /// Each of them.
    pub const ALL: [Self; 7] = [
        Self::PairOfOneOwner,
        Self::PairOfOwners,
        Self::Evaluations,
        Self::Late,
        Self::OneClass,
        Self::OnceTrusted,
        Self::Copier,
    ];

    /// Of each liar: the number of its owner, 0 or 1, its class, and when it lies.
    pub(crate) fn hosts(self) -> Vec<(usize, u32, Lies)> {
        match self {
            Self::PairOfOneOwner => vec![(0, 0, Lies::Always), (0, 0, Lies::Always)],
            Self::PairOfOwners => vec![(0, 0, Lies::Always), (1, 0, Lies::Always)],
            Self::Evaluations => vec![(0, 0, Lies::InEvaluations)],
            Self::Late => vec![(0, 0, Lies::After(LATE))],
            Self::OneClass => vec![(0, 0, Lies::Never), (0, 1, Lies::Always)],
            Self::OnceTrusted => vec![(0, 0, Lies::After(TRUSTED))],
            Self::Copier => vec![(0, 0, Lies::Copies)],
        }
    }

    /// Numeric classes of its world.
    pub(crate) const fn classes(self) -> u32 {
        match self {
            Self::OneClass => 2,
            _ => 1,
        }
    }
}

/// When a host lies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Lies {
    /// In all that it reports.
    #[default]
    Always,
    /// Not at all.
    Never,
    /// In evaluations.
    InEvaluations,
    /// In all that it reports, once it has reported so many hops.
    After(u32),
    /// In hops: it returns what it was given.
    Copies,
}

impl Lies {
    /// Does it lie about an evaluation, when it has reported so many hops?
    pub(crate) const fn in_evaluation(self, hops: u32) -> bool {
        match self {
            Self::Always | Self::InEvaluations => true,
            Self::Never | Self::Copies => false,
            Self::After(honest) => hops >= honest,
        }
    }

    /// Does it lie about a hop?
    pub(crate) const fn in_hop(self, hops: u32) -> bool {
        match self {
            Self::Always => true,
            // What it copies isn't made up.
            Self::Never | Self::InEvaluations | Self::Copies => false,
            Self::After(honest) => hops >= honest,
        }
    }
}
