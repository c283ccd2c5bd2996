"""What plans cost, by the papers' models: statistics in, prices out.

Nothing here measures, chooses or runs anything.
"""
