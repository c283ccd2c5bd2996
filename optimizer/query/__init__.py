"""A question: what it asks of each input, and when a row counts; no syntax and no plan."""
