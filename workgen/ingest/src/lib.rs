//! Readers of data files to shards.
