"""Paper D's tables."""
