//! Pure: job to trials, hop-ordered units, schedule policies.
