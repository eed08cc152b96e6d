"""Replaces symbolic sizes by numbers: `specialize-sizes`."""
