"""What a pipeline folder says, as values, and the warehouse: every table of the pipeline by name."""
