"""Text to query, the one way in for what users write; the only user of the parser."""
