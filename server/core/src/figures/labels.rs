//! Labels that figures are split by. Each label is one of a few words, so that the number of figures is bounded.

use sojourn_state::UnitKey;

macro_rules! labels {
    ($($(#[$doc:meta])* $name:ident { $($(#[$said:meta])* $variant:ident => $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$said])* $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// As monitoring names it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    )*};
}

labels! {
    /// The state of a job.
    JobStatus {
        /// The job runs, or waits for hosts.
        Running => "running",
        /// The job's user has paused it.
        Paused => "paused",
        /// Every trial has ended and at least one finished.
        Finished => "finished",
        /// Every trial failed.
        Failed => "failed",
        /// The job's user ended it.
        Cancelled => "cancelled",
    }

    /// The state of a trial.
    TrialStatus {
        /// There is something of it to train or to evaluate.
        Running => "running",
        /// The trial waits for its search to let it go on or to stop it.
        Held => "held",
        /// Trained and evaluated to its end, or stopped by its search.
        Finished => "finished",
        /// Ended by errors.
        Failed => "failed",
        /// Ended with its job.
        Cancelled => "cancelled",
    }

    /// The state of a host.
    HostStatus {
        /// In contact.
        Live => "live",
        /// Not heard of for longer than a lease lasts, or it has said that it ends.
        Away => "away",
        /// The host gets nothing for a while, after repeated errors.
        Cooldown => "cooldown",
        /// The host's token was revoked.
        Revoked => "revoked",
    }

    /// Why a host gets nothing.
    NoWorkReason {
        /// The host's trainer has failed several times in a row.
        Failures => "failures",
        /// The host has given leases back several times in a row.
        Releases => "releases",
        /// The host's disk has less room than its owner keeps free.
        DiskIsLow => "disk-is-low",
        /// The host's owner lends less disk than any unit takes.
        TooLittleDisk => "too-little-disk",
        /// The host has no engine for any unit.
        NoEngine => "no-engine",
        /// No other party offers its numeric class, and all that waits is verified.
        AloneInClass => "alone-in-class",
    }

    /// The kind of a unit.
    UnitKind {
        /// Hops of a trial.
        Train => "train",
        /// An evaluation of an epoch, for the search.
        Evaluate => "evaluate",
        /// An evaluation that a user asked for, or that of the best model on the test data.
        Requested => "requested-evaluation",
    }

    /// How far a lease's unit is.
    LeaseStage {
        /// The host fetches what it needs, or has no free slot yet.
        Waiting => "waiting",
        /// The unit runs in a slot.
        Running => "running",
        /// The unit is done, and its result on the way to the server.
        Uploading => "uploading",
        /// The host has it, and it is granted when the result before it was taken.
        Provisional => "provisional",
    }
}

impl UnitKind {
    /// The kind of a unit.
    #[must_use]
    pub const fn of(unit: &UnitKey) -> Self {
        match unit {
            UnitKey::Train { .. } => Self::Train,
            UnitKey::Evaluate { .. } => Self::Evaluate,
            UnitKey::Extra { .. } => Self::Requested,
        }
    }
}
