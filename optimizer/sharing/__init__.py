"""Many queries answered by one work: which belong together, how their selections are told apart, and the statements
that serve all (paper E).

No data here.
"""
