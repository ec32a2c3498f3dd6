//! Trials that stay on hosts: how far each seems to be, where it stays, and why it moves.

use crate::ids::HostId;
use serde::{Deserialize, Serialize};

/// How far a trial seems to be, by its loss (SpeCon's categories).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// The trial learns (PC, the progressing category).
    #[default]
    Progressing,
    /// At the last look it hardly did (WC, the watching category).
    Watching,
    /// The trial hardly did so again (CC, the converged category).
    Converged,
}

impl Category {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Progressing, Self::Watching, Self::Converged];

    /// The weight of a trial in the score of its host.
    #[must_use]
    pub const fn weight(self) -> f64 {
        match self {
            Self::Progressing => 2.0,
            Self::Watching => 1.5,
            Self::Converged => 1.0,
        }
    }

    /// In a word, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Progressing => "progressing",
            Self::Watching => "watching",
            Self::Converged => "converged",
        }
    }
}

/// Why a trial moves to another host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MoveKind {
    /// The trial seems to have converged, and others on its host haven't (M). The loads are scores of the hosts.
    Speculative,
    /// All have converged, and its host has more trials than the other (R). The loads are numbers of trials.
    Rebalance,
    /// The host has most left to do. The loads are seconds of remaining time.
    Remaining,
}

impl MoveKind {
    /// The kind's letter in charts, as in the thesis' figures.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Speculative => 'M',
            Self::Rebalance | Self::Remaining => 'R',
        }
    }

    /// Why a trial came to its host.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Speculative => "moved here as it seemed to have converged",
            Self::Rebalance => "moved here to rebalance the hosts",
            Self::Remaining => "moved here as its host had most left to do",
        }
    }
}

/// Where a trial stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ResidenceView {
    /// The host; none before its first hop, and while the search holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostId>,
    /// How far it seems to be.
    pub category: Category,
}
