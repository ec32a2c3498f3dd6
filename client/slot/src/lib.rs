//! Drives one trainer child.
