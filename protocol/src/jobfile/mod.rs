//! `job.toml` to [`crate::spec::JobSpec`].
