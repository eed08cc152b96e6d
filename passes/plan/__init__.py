"""The passes that place memory. Folders hold the parts of one pass or of a few.

placement/    plan-memory: streams, results' memory, symbolic offsets
candidates/   ways to plan a program, tried on copies of it
"""
