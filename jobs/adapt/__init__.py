"""What the optimizer gets to know of a running pipeline, and what it decides: statistics, plans, groups."""
