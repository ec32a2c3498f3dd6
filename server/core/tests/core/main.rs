//! Command in, exact effects out.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test ends at what it did not expect"
)]

mod assimilations;
mod batching;
mod blocked;
mod classes;
mod clocks;
mod control;
mod cpu_shares;
mod cross_validation;
mod depth;
mod devices;
mod distinct;
mod early_stopping;
mod ended_jobs;
mod engines;
mod epoch_budget;
mod evaluations;
mod extended;
mod faults;
mod figures;
mod forgotten;
mod graphs;
mod hop_matrix;
mod incarnations;
mod initial_weights;
mod job_owners;
mod lease_ends;
mod machines;
mod merging;
mod owners;
mod phases;
mod placement;
mod plans;
mod population;
mod priority;
mod proved;
mod provisional;
mod recovery;
mod refits;
mod reliability;
mod replicas;
mod requested_evaluations;
mod residency;
mod retention;
mod retries;
mod running_units;
mod search_changes;
mod searches;
mod searching;
mod sequences;
mod slot_shares;
mod speculation;
mod stopping;
mod stopping_rules;
mod storage;
mod strangers;
mod strikes;
mod support;
mod tokens;
mod units;
mod verification;
mod verified_evaluations;
mod visits;
mod waiting;
mod wall_time;
