"""What was observed of inputs and joins, and what follows for sizes; numbers only."""
