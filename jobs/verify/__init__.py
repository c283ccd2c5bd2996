"""Answers recomputed from the raw rows by plain SQL; it imports nothing of the planner."""
