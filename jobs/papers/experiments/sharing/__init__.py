"""Paper E's figures."""
