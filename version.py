"""The version of tensorplan, for all that need it without the public functions."""

VERSION = "0.2.0"
