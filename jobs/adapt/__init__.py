"""What the optimizer is told of a running pipeline, and what it decided: statistics, plans, groups."""
