//! Merge rules and screening, pure.
