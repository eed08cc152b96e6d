"""`specialize-sizes`."""
