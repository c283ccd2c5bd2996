"""Scalar expressions: typed trees, Spark's typing rules, the functions, their SQL for both engines."""
