"""Ways to plan a program, tried out on copies of it.

attempts.py   what is tried, and what is best
fitting.py    how few bytes have to be live to meet a budget
"""
