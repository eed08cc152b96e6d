"""Helpers without IR for all folders: arrays, remarks, threads, the disk cache."""
