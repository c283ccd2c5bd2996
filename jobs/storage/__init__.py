"""Where bytes are: paths and stores, Delta tables and their logs, the lock; it knows no query."""
