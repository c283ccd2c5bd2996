"""What was published and decided, read back."""
