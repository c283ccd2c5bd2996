"""Many windows over one stream: which are made of which, at what cost, and which windows nobody asked for help (paper
D).

Numbers only, no SQL and no data.
"""
