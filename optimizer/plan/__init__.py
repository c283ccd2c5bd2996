"""Plans as values, and the statements that they are."""
