"""What keeps tables small and sound between batches, and says what is wrong with them."""
