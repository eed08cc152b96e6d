"""Candidates for a plan, made on copies of the program and measured.

candidates.py  what is tried, and what is best
fitting.py     how few bytes have to be live to meet a budget
"""
