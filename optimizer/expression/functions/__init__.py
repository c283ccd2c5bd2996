"""What a user may write and what a query can hold: one table, a row a function; nothing else enters a query."""
