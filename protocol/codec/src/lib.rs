//! Canonical safetensors and their bounds. Pure.
