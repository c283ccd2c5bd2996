"""What computes: the in-process engine, Spark and its tasks, what one task does, and the twin in the JVM; it knows no pipeline."""
