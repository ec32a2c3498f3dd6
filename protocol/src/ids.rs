//! Ids as newtypes, so that a trial can't be taken for a shard.

use serde::{Deserialize, Serialize};
use std::{fmt, num::ParseIntError, str::FromStr};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
        )]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The id after this one.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIntError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}

id!(
    /// A job, numbered from 1 in the order of submission.
    JobId(u64)
);
id!(
    /// A trial of a job, numbered from 0 in the order of the search space.
    TrialId(u32)
);
id!(
    /// A shard of a job's training data, numbered from 0.
    ShardId(u32)
);
id!(
    /// An enrolled host, numbered from 1.
    HostId(u64)
);
id!(
    /// A token that the server has issued, numbered from 1.
    TokenId(u64)
);
id!(
    /// One attempt at a unit by one host; never used again.
    LeaseId(u64)
);
id!(
    /// An epoch of a trial, counted from 0.
    Epoch(u32)
);
id!(
    /// One claim of an assimilation unit by one assimilator; never used again.
    ClaimId(u64)
);
id!(
    /// A trial's checkpoint number: 0 is the initial weights, each assimilation makes the next.
    Version(u32)
);
