"""What was asked for and what has run: the only transaction over several tables."""
