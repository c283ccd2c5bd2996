"""Where people find answers: each query's own table, for ever, and its last answer beside it."""
