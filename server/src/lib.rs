//! HTTP, journal and the shell around the core.
