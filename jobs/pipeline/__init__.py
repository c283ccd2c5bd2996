"""What a pipeline folder says, as values, and the handles of its tables."""
