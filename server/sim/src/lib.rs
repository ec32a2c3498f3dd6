//! Virtual hosts and virtual time around the very same core.
