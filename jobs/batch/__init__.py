"""One batch: from its fixed description to orders for tasks, answers, and commits."""
