//! The loop that fetches, checks, merges, stores.
