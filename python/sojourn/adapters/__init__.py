"""Bridges to other packages, each imported where it is used: `sojourn.adapters.sklearn`, `sojourn.adapters.spaces`."""
