"""Statistics of inputs and joins, from samples, and what follows for sizes; numbers only."""
