"""Reads programs from text, files, and other frameworks; reading.py detects the format.

This file imports nothing, because the readers of plans (plans/) need no IR.
"""
