//! The daemon: asks, fetches, trains, uploads, reports.
