"""The papers' operators, event by event in memory, to reproduce their evaluations and to learn from: no pipeline
depends on anything here.
"""
