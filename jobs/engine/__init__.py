"""What computes: the in-process engine, Spark and its tasks, what one task does, and the twin in the JVM.

It knows no pipeline.
"""
