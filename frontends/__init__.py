"""Reads programs, from text, files, and other frameworks; reading.py finds the format.

Nothing is loaded with this folder: what reads plans (plans/) needs no IR.
"""
